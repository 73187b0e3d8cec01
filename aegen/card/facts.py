"""The facts on a card: counted from the shards, or recorded in the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aegen import __version__
from aegen.arithmetic.tasks import TASKS
from aegen.card.header import Terms, default_config, header
from aegen.core.errors import BadData
from aegen.core.format import VERSION, join_state
from aegen.dataset.commands import commands
from aegen.dataset.contract import Contract, read_contracts
from aegen.dataset.counts import Counts
from aegen.dataset.dataset import Dataset, Trajectory
from aegen.dataset.folder import Folder
from aegen.dataset.footers import read_counts
from aegen.dataset.manifest import Manifest
from aegen.dataset.recipe import Recipe
from aegen.dataset.shards import open_shard
from aegen.dataset.show import draw_steps
from aegen.dataset.stats import figures, shared_sources
from aegen.engines.engine import Engine

MAX_WIDTH, MAX_DRAWN, MAX_TRIED = 100, 12, 1000  # characters and steps of the example; trajectories tried for it
MAX_LISTED = 40  # tokens of a vocabulary that is listed


@dataclass(frozen=True)
class Facts:
    """What the template of a card shows; the names are those in the template."""

    header: dict[str, Any]
    recipe: Recipe
    terms: Terms
    configs: list[str]
    shard: str
    commands: list[str]
    versions: dict[str, Any]
    writer: str
    contracts: dict[str, Contract]
    figures: dict[str, Any]
    tokens: list[str]
    kinds: list[str]
    pictures: list[str]
    example: str
    shared: dict[str, int]


@dataclass(frozen=True)
class Totals:
    """The rows of a dataset in numbers, as the shards' footers count them."""

    contracts: dict[str, Contract]
    figures: dict[str, Any]
    by_config: dict[str, Counts]
    in_memory: dict[tuple[str, str], int]  # bytes by config and split

    @property
    def capped_pairs(self) -> int:
        """Pairs whose shifted states are a sample."""
        return self.contracts["augmented"].capped_pairs if "augmented" in self.contracts else 0


def count(folder: Folder, manifest: Manifest, engine: Engine) -> Totals:
    """All counts that a card shows."""
    contracts = read_contracts(folder, manifest, engine)
    found = read_counts(folder, manifest, engine)
    return Totals(
        contracts,
        figures(manifest, contracts, found),
        {config: sum((part for key, part in found.items() if key[0] == config), Counts()) for config in contracts},
        {key: part.bytes for key, part in found.items()},
    )


def check(folder: Folder, manifest: Manifest) -> None:
    """Refuse a manifest from which no card can be rendered."""
    if (task := manifest.recipe.task) not in (*TASKS, "text"):  # it becomes the name of a template
        raise BadData(f"{folder.path}: unknown task {task[:80]!a} in manifest")
    if (manifest.recipe.sources is None and not manifest.shards("pairs", "train")) or not manifest.shards(
        default_config(manifest), "train"
    ):
        raise BadData(f"{folder.path}: no training pairs in manifest")


def gather(
    folder: Folder, manifest: Manifest, terms: Terms, counts: Totals, pictures: list[str], engine: Engine
) -> Facts:
    """The facts; of the rows only those of the example are read here."""
    recipe = manifest.recipe
    config = "sources" if recipe.sources else "pairs"
    file, _ = open_shard(folder / manifest.shards(config)[0], config)
    with file:
        writer = str(file.metadata.created_by)
    return Facts(
        header=header(manifest, counts.in_memory, terms),
        recipe=recipe,
        terms=terms,
        configs=manifest.configs,
        shard=manifest.shards(default_config(manifest), "train")[0],
        commands=commands(recipe),
        versions={"aegen": __version__, "format": VERSION, **_backends(recipe)},
        writer=writer,
        contracts=counts.contracts,
        figures=counts.figures,
        tokens=_tokens(counts.contracts),
        kinds=sorted({kind for part in counts.by_config.values() for kind in part.kinds}),
        pictures=pictures,
        example=_example(folder, manifest, counts.contracts),
        shared=_shared(folder, manifest, engine),
    )


def _backends(recipe: Recipe) -> dict[str, str]:
    """The packages that chose between equally short scripts; tags may have been added with others."""
    found = dict(sorted(recipe.expert.backend.items())) if recipe.expert else {}
    for package, version in sorted(recipe.tags.backend.items()) if recipe.tags else []:
        found[package if found.get(package, version) == version else f"{package} (tags)"] = version
    return found


def _shown(contracts: Mapping[str, Contract]) -> str | None:
    """The config whose vocabulary and trajectories are shown."""
    return next((config for config in ("augmented", "expert", "tags") if config in contracts), None)


def _tokens(contracts: Mapping[str, Contract]) -> list[str]:
    """The state vocabulary of equations, if it is short enough to list."""
    config = _shown(contracts)
    if config is None or not contracts[config].arithmetic or len(contracts[config].state_tokens) > MAX_LISTED:
        return []
    return sorted(contracts[config].state_tokens, key=lambda token: (token.isdecimal(), len(token), token))


def _example(folder: Folder, manifest: Manifest, contracts: Mapping[str, Contract]) -> str:
    """One pair's trajectory and one from a shifted state, if there are any that fit a page."""
    drawn: list[str] = []
    chosen = None
    if (config := _shown(contracts)) is None:
        return ""
    for number, one in enumerate(Dataset(folder, manifest).trajectories("train", config)):
        if number == MAX_TRIED or (chosen is not None and one.pair != chosen):
            break
        if (one.origin == 0 and _fits(one)) or (one.origin == 1 and one.pair == chosen):
            chosen = one.pair
            start = "expert" if one.origin == 0 else "from a shifted state"
            drawn += [f"pair {one.pair}, {start}", *draw_steps(contracts[config], one), ""]
    return "\n".join(drawn).rstrip("\n")


def _fits(one: Trajectory) -> bool:
    return 1 < len(one.steps) <= MAX_DRAWN and max(len(join_state(step.state)) for step in one.steps) <= MAX_WIDTH


def _shared(folder: Folder, manifest: Manifest, engine: Engine) -> dict[str, int]:
    """Sources that two splits share, by the splits' names."""
    (found,) = engine.map(shared_sources, [(folder, manifest)])
    return {splits: number for splits, number in found.items() if number}
