"""The card of a dataset: README.md, its pictures and croissant.json, a pure function of the shards.

The manifest does not list them: they say nothing that the shards do not say, and can be rendered again at any time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from aegen import __version__
from aegen.card import pictures
from aegen.card.croissant import CROISSANT, croissant
from aegen.card.frontmatter import front_matter
from aegen.card.header import default_config, header
from aegen.core.errors import BadData, FolderConflict, InvalidSpec
from aegen.core.format import SPLITS, VERSION
from aegen.dataset.commands import commands
from aegen.dataset.contract import Contract, read_contract
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import open_shard
from aegen.dataset.show import Trajectory, draw_steps, trajectories
from aegen.dataset.stats import DEMONSTRATIONS, figures
from aegen.dataset.survey import Survey, survey, together
from aegen.dataset.verify import overlaps
from aegen.engines.local import Engine, Local
from aegen.files.atomic import Aside
from aegen.files.places import Remote
from aegen.pairs.spec import Imported, Spec

CARD = "README.md"
COMPANIONS = (CARD, CROISSANT, pictures.LENGTHS, pictures.KINDS)
TEMPLATES = Path(__file__).parent / "templates"
MARK = "<!-- Rendered by `aegen card`"
WIDEST, LONGEST, TRIED = 100, 12, 1000  # columns and steps of a trajectory that is drawn; how many are looked at
FEW_TOKENS = 40


@dataclass(frozen=True)
class Terms:
    """What only its owner knows of an imported dataset."""

    license: str = "unknown"
    language: str = "und"

    @classmethod
    def of(cls, folder: Folder, manifest: Manifest) -> Terms:
        """Ours for what aegen generated; else what the card said so far."""
        if manifest.recipe.spec:
            return cls("mit", "zxx")  # the code for no linguistic content
        said = _read(folder / CARD)
        found = {
            name: match[1]
            for name, pattern in (("license", r'^license: "([^"\n]*)"$'), ("language", r'^language:\n- "([^"\n]*)"$'))
            if (match := re.search(pattern, said, flags=re.MULTILINE))
        }
        return cls(**found)

    def stated(self, licence: str | None, language: str | None) -> Terms:
        """With what the owner states now."""
        for name, text in (("license", licence), ("language", language)):
            if text is not None and not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", text):
                raise InvalidSpec(f"{name}={text}: expected small letters, digits, dots and dashes")
        return Terms(licence or self.license, language or self.language)


def check_card(folder: Folder) -> None:
    """Refuse to overwrite a page that somebody else wrote."""
    if (folder / CARD).is_file() and MARK not in _read(folder / CARD):
        raise FolderConflict(f"{folder / CARD}: not a card that aegen rendered; move it away first")


def write_card(
    folder: Folder, manifest: Manifest, terms: Terms | None = None, engine: Engine | None = None
) -> list[str]:
    """Render all companions into the folder; those that no longer belong there go. Their names."""
    made = render(folder, manifest, terms or Terms.of(folder, manifest), engine)
    write_companions(folder, made)
    return list(made)


def write_companions(folder: Folder, made: dict[str, bytes]) -> None:
    """Make the folder's companions these; what is right already is not touched."""
    check_card(folder)
    for name in COMPANIONS:
        path = folder / name
        if name not in made:
            path.unlink(missing_ok=True)
        elif not path.is_file() or path.read_bytes() != made[name]:
            with Aside(path) as aside:
                aside.write_bytes(made[name])


def render(folder: Folder, manifest: Manifest, terms: Terms, engine: Engine | None = None) -> dict[str, bytes]:
    """The companions by name. Rows are read where the engine runs, but for the few that are shown."""
    engine = engine or Local()
    if not manifest.shards("pairs", "train") or not manifest.shards(default_config(manifest), "train"):
        raise BadData(f"{folder.path}: the manifest lists no pairs to train on")
    contracts = {c: read_contract(folder, manifest, c, engine) for c in DEMONSTRATIONS if c in manifest.configs}
    surveys = survey(folder, manifest, contracts, engine)
    counted = {config: together(found for key, found in surveys.items() if key[0] == config) for config in contracts}
    drawn = pictures.draw(counted) if pictures.can_draw() else {}
    counts = figures(manifest, contracts, surveys)
    page = Page(folder, manifest, terms, contracts, counts, _shared(folder, manifest, engine), counted, _sizes(surveys))
    return {
        CARD: page.text(list(drawn)).encode(),
        CROISSANT: croissant(manifest, page.name, page.summary, terms.license).encode(),
        **drawn,
    }


@dataclass(frozen=True)
class Page:
    """The card, section by section; ``shared`` counts the sources that two splits share."""

    folder: Folder
    manifest: Manifest
    terms: Terms
    contracts: dict[str, Contract]
    figures: dict[str, Any]
    shared: dict[str, int]
    counted: dict[str, Survey]
    in_memory: dict[tuple[str, str], int]  # bytes by config and split

    @property
    def name(self) -> str:
        return self.manifest.recipe.name

    @property
    def spec(self) -> Spec | None:
        return self.manifest.recipe.spec

    @property
    def task(self) -> str:
        return self.manifest.recipe.task

    @property
    def summary(self) -> str:
        """The task in one sentence."""
        return self._prose()[0].partition(".")[0] + "."

    def text(self, drawn: list[str]) -> str:
        """The whole page."""
        return _fill(
            "dataset",
            front=front_matter(
                header(self.manifest, self.in_memory, self.name, self.terms.license, self.terms.language)
            ).rstrip(),
            title=self.name,
            about="\n\n".join(self._prose()),
            example=self.example(),
            data="\n\n".join([self.sizes(), *self.vocabularies(), *self.pictures(drawn)]),
            columns=self.columns(),
            name=self.name,
            load="\n".join(f'{config} = load_dataset("{self.name}", "{config}")' for config in self.manifest.configs),
            shard=self.manifest.shards(default_config(self.manifest), "train")[0],
            train=self.train(),
            recipe="\n".join(commands(self.manifest.recipe)),
            made=self.made(),
            limits="\n".join(f"- {line}" for line in self.limits()),
            licence=self.licence(),
        )

    def _prose(self) -> list[str]:
        """The paragraphs about the task; only the first holds for what was not generated."""
        spec = self.spec
        if not spec:
            return [_template(self.task).partition("\n\n")[0].strip()]
        forms = "a sum, a difference, a product or a quotient" if spec.division else "a sum, a difference or a product"
        return _fill(self.task, largest=spec.n + 1, l=spec.l, errors=spec.errors, forms=forms).strip().split("\n\n")

    def example(self) -> str:
        """One pair's trajectory and one from a shifted state, if any are short enough to be read."""
        if not self.contracts:
            return "Only the pairs are here: `aegen trajectories` adds the demonstrations."
        config = list(self.contracts)[-1]
        drawn: list[str] = []
        chosen = None
        for number, (pair, steps) in enumerate(trajectories(self.folder, config, "train", self.manifest)):
            origin = steps[0][0]
            if number == TRIED or (chosen is not None and pair != chosen):
                break
            if (origin == 0 and _readable(steps)) or (origin == 1 and pair == chosen):
                chosen = pair
                start = "the expert" if origin == 0 else "from a state off the expert's path"
                drawn += [f"pair {pair}, {start}", *draw_steps(self.contracts[config], steps), ""]
        if not drawn:
            return "Its trajectories are too long to be shown here: `aegen show` draws them."
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", "\n".join(drawn))), default=0))
        return "\n".join([f"{fence}text", *drawn[:-1], fence])

    def sizes(self) -> str:
        """Counts by split."""
        pairs = self.figures["pairs"]
        rows = {"pairs": [f"{pairs[split]:,}" for split in SPLITS]}
        if "variants" in self.figures:
            rows["variants"] = [f"{self.figures['variants']:,}", "0", "0"]
        for config in self.contracts:
            for what in ("trajectories", "steps"):
                rows[f"{config}: {what}"] = [f"{self.figures[config][what][split]:,}" for split in SPLITS]
        return _table(["", *SPLITS], rows)

    def vocabularies(self) -> Iterator[str]:
        """Sizes of the game."""
        if not self.contracts:
            return
        labels = {
            "longest trajectory, DONE included (T_max)": "T_max", "longest state (m)": "m", "action tokens (n)": "n",
            "state vocabulary": "state vocabulary", "action vocabulary": "action vocabulary",
            "edit metric": "metric", "action design": "design",
        }  # fmt: skip
        rows = {label: [str(self.figures[c][key]) for c in self.contracts] for label, key in labels.items()}
        yield _table(["", *self.contracts], rows)
        richest = list(self.contracts.values())[-1]
        if richest.arithmetic and len(richest.state_tokens) <= FEW_TOKENS:
            tokens = sorted(richest.state_tokens, key=lambda token: (token.isdecimal(), len(token), token))
            yield f"States are made of `{' '.join(tokens)}`."

    def pictures(self, drawn: list[str]) -> Iterator[str]:
        """The histograms, or how to get them."""
        kinds = sorted({kind for found in self.counted.values() for kind in found.kinds})
        if pictures.LENGTHS in drawn:
            yield f"![How long the trajectories are]({pictures.LENGTHS})"
        if pictures.KINDS in drawn:
            yield f"![Of which kinds the edits are]({pictures.KINDS})"
        elif len(kinds) == 1:
            yield f"All edits are of one kind: {kinds[0]}."
        if self.contracts and not drawn:
            yield 'For histograms here: `pip install "aegen[report]"`, and `aegen card` again.'

    def columns(self) -> str:
        """The columns of each kind of config."""
        more = " and `variants` (more sources of training targets)" if "variants" in self.manifest.configs else ""
        parts = [_fill("columns-pairs", variants=more).strip()]
        if self.contracts:
            slots = ", ".join(list(self.contracts.values())[-1].design.slots)
            configs = " and ".join(f"`{config}`" for config in self.contracts)
            parts.append(_fill("columns-steps", configs=configs, slots=slots).strip())
        return "\n\n".join(parts)

    def train(self) -> str:
        """How to train on it, if there is what to train on."""
        if not self.contracts:
            return ""
        return f"```sh\ntrainer fit {self.name} --model nar-star --preset cpu --out run\n```\n\n"

    def made(self) -> str:
        """What the bytes depend on beside the command."""
        recipe = self.manifest.recipe
        file, _ = open_shard(self.folder / self.manifest.shards("pairs")[0], "pairs")
        with file:
            writer = file.metadata.created_by
        backend = recipe.expert.backend if recipe.expert else {}
        versions = [f"format {VERSION}", *(f"{package} {version}" for package, version in sorted(backend.items()))]
        lines = [f"Seed {recipe.pairs.seed}; {', '.join(versions)}; written by {writer}; card by aegen {__version__}."]
        inputs = recipe.pairs.inputs if isinstance(recipe.pairs, Imported) else ()
        lines += [f"- `{file.name}`, SHA-256 `{file.sha256}`" for file in inputs]
        return "\n".join(lines)

    def limits(self) -> Iterator[str]:
        """What one should know before using it."""
        listed = ", ".join(f"{count:,} ({where})" for where, count in self.shared.items() if count)
        yield f"Splits share sources: {listed}." if listed else "No two splits share a source."
        pairs, unchanged = self.figures["pairs"], self.figures["unchanged"]
        listed = ", ".join(
            f"{unchanged[split]:,} in {split} ({unchanged[split] / pairs[split]:.1%})"
            for split in SPLITS
            if pairs[split]
        )
        yield f"Pairs that need no edit, so that `DONE` is the whole trajectory: {listed}."
        if "augmented" in self.contracts:
            capped = self.contracts["augmented"].capped_pairs
            yield (
                f"Of {capped:,} pairs with many edits the shifted states are a sample."
                if capped
                else "All shifted states that the algorithm finds are there; no pair was sampled."
            )
        if self.task == "text":
            yield "The texts are as they were imported: nothing was checked but their form."

    def licence(self) -> str:
        """The licence in words."""
        if self.spec:
            return "MIT, as the software that made it."
        return f"`{self.terms.license}`: that of the imported texts, as whoever rendered this card stated it."


def _sizes(surveys: dict[tuple[str, str], Survey]) -> dict[tuple[str, str], int]:
    return {key: found.bytes for key, found in surveys.items()}


def _shared(folder: Folder, manifest: Manifest, engine: Engine) -> dict[str, int]:
    """Sources that two splits share; split by source has none by construction, and `aegen verify` counts them."""
    spec = manifest.recipe.spec
    if spec and spec.split == "source":
        return {}
    (found,) = engine.map(overlaps, [(folder, manifest)])
    return found


def _read(path: Path | Remote) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _fill(template: str, **values: object) -> str:
    return Template(_template(template)).substitute(values)


def _template(name: str) -> str:
    path = TEMPLATES / f"{name}.md"
    if path not in TEMPLATES.glob("*.md"):  # the name of a task comes from a manifest, and could lead anywhere
        raise BadData(f"the task {name[:80]!a} is unknown here")
    return path.read_text(encoding="utf-8")


def _readable(steps: Trajectory) -> bool:
    return 1 < len(steps) <= LONGEST and max(len(state) for _, state, _ in steps) <= WIDEST


def _table(head: list[str], rows: dict[str, list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *([label, *cells] for label, cells in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
