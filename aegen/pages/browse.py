"""The pairs and trajectories of a dataset as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from itertools import groupby, islice
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from aegen.core.edits import Splice
from aegen.core.format import (
    DELETE,
    DONE,
    INSERT_AFTER,
    KEEP,
    SPLITS,
    SUBSTITUTE,
    detokenize,
    split_state,
    unescape,
    visible,
)
from aegen.core.types import Tokens
from aegen.dataset.contract import Contract, read_contract
from aegen.dataset.dataset import Dataset, Trajectory
from aegen.dataset.shards import read_description_of
from aegen.experts.tags import TAGS

STARTS = 10  # trajectories of a pair: the expert's, and from shifted states


@dataclass(frozen=True)
class Browser:
    """What the template shows; the names are those in the template."""

    name: str
    config: str
    split: str
    counts: dict[str, dict[str, int]]  # rows by config and split
    facts: str
    pairs: list[dict[str, Any]]

    @property
    def shown(self) -> str:
        """How many of how many are on the page."""
        what = "sources" if self.config == "sources" else "pairs"
        whole = self.counts[what]
        total = sum(whole.values()) if what == "sources" else whole[self.split]
        some = f"all {total:,}" if len(self.pairs) == total else f"the first {len(self.pairs):,} of {total:,}"
        return f"{some} {what}" + (f" of {self.config}" if self.config not in (what, "pairs") else "")

    @property
    def script(self) -> Markup:
        """What the page runs; nothing in it comes from the dataset."""
        return Markup(_asset("stepper.js") + _asset("browse.js"))  # noqa: S704 - our own files

    @property
    def style(self) -> Markup:
        return Markup("".join(map(_asset, ("page.css", "stepper.css", "browse.css"))))  # noqa: S704 - our own files

    @property
    def policy(self) -> str:
        """What the page may load and run: its own script, and nothing from anywhere."""
        digest = base64.b64encode(sha256(self.script.encode()).digest()).decode()
        return (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
            "base-uri 'none'; form-action 'none'"
        )


def _asset(name: str) -> str:
    return (files("aegen.pages") / "static" / name).read_text(encoding="utf-8")


def browse(dataset: Dataset, config: str, split: str, rows: int) -> tuple[str, str]:
    """The page with the first pairs of a split, and how many of how many they are."""
    facts, pairs = "", list[dict[str, Any]]()
    if config in ("pairs", "sources"):
        names = dataset.manifest.shards(config)
        kind = read_description_of(dataset.folder / names[0], config).tokens if names else "words"
        found: Iterable[tuple[Any, ...]] = dataset.sources() if config == "sources" else dataset.pair_rows(split)
        for number, *sides in islice(found, rows):
            pairs.append({"id": number, "texts": [_text(split_state(side), kind) for side in sides], "games": []})
    else:
        contract = read_contract(dataset.folder, dataset.manifest, config)
        facts = f"{contract.metric} edits, design {contract.design.name}, at most {contract.max_steps:,} steps"
        pairs = list(islice(_pairs(dataset, contract, config, split), rows))
    counts: dict[str, dict[str, int]] = {
        name: {one: dataset.rows(name, one) for one in SPLITS} for name in dataset.configs
    }
    page = Browser(dataset.folder.path.name, config, split, counts, facts, pairs)
    return TEMPLATES.get_template("browse.html").render(page=page), page.shown


def _pairs(dataset: Dataset, contract: Contract, config: str, split: str) -> Iterator[dict[str, Any]]:
    for pair, trajectories in groupby(dataset.trajectories(split, config), lambda one: one.pair):
        found = list(trajectories)
        texts = [_text(side, contract.tokens) for side in (found[0].source, found[0].goal)]
        games = [game(contract, one) for one in found[:STARTS]]
        yield {"id": pair, "texts": texts, "games": games, "starts": len(found)}


def game(contract: Contract, one: Trajectory) -> dict[str, Any]:
    """A trajectory as the stepper shows it."""
    moves = []
    for step in one.steps:
        removed, written = marks(contract, step.action)
        done = step.action[0] == DONE or (contract.design is TAGS and set(step.action) == {KEEP})
        said = {"state": _shown(step.state), "action": _shown(step.action), "verdict": "done" if done else "applied"}
        moves.append(said | {"removed": removed, "written": written})
    return {"origin": one.origin, "tokens": contract.tokens, "moves": moves, "result": _shown(one.goal)}


def marks(contract: Contract, action: Tokens) -> tuple[list[int], list[int]]:
    """The places that an action removes, and those that it writes in the next state."""
    if contract.design is TAGS:
        return tag_marks(action)
    edit = contract.design.decode(action) if action[0] != DONE else None
    if not isinstance(edit, Splice):
        return [], []
    return list(range(edit.start, edit.stop)), list(range(edit.start, edit.start + len(edit.new)))


def tag_marks(tags: Tokens) -> tuple[list[int], list[int]]:
    """The same for a round of tags.

    >>> tag_marks(("INSERT_7", "DELETE", "SUB_5", "KEEP"))
    ([0, 1], [0, 1])
    """
    removed, written, after = [], [], 0
    for place, tag in enumerate(tags, -1):
        if tag == DELETE or tag.startswith(SUBSTITUTE):
            removed.append(place)
        elif place >= 0:
            after += 1  # the token stays
        if tag.startswith((SUBSTITUTE, INSERT_AFTER)):
            written.append(after)
            after += 1
    return removed, written


def _shown(tokens: Tokens) -> list[str]:
    return [visible(unescape(token)) for token in tokens]


def _text(tokens: Tokens, kind: str) -> str:
    return visible(detokenize(tokens, kind))


TEMPLATES = Environment(
    loader=PackageLoader("aegen.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
TEMPLATES.filters["comma"] = "{:,}".format
