"""What the shards of a config say together: their merged descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aegen.core.actions import Design, load_design
from aegen.core.description import Goal, StepsDescription, merge
from aegen.core.environment import Environment
from aegen.core.errors import BadData, InvalidSpec
from aegen.core.format import COLUMNS, STEP_COLUMNS
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import read_description_of
from aegen.engines.engine import Engine, bundled
from aegen.engines.local import Local
from aegen.experts.tags import TAGS, TaggingGame
from aegen.files.places import Remote

STEP_CONFIGS = tuple(config for config, columns in COLUMNS.items() if columns is STEP_COLUMNS)


@dataclass(frozen=True)
class Contract:
    """The vocabularies, sizes and rules of a config."""

    task: str
    tokens: str
    arithmetic: bool
    goal: Goal | None
    metric: str
    design: Design
    state_tokens: frozenset[str]
    action_tokens: frozenset[str]
    writable: frozenset[str]
    max_state: int
    max_steps: int
    capped_pairs: int

    @classmethod
    def of(cls, said: StepsDescription, where: object) -> Contract:
        """The contract of a description, merged over shards."""
        try:
            design = TAGS if said.design == TAGS.name else load_design(said.design)
        except InvalidSpec as error:
            raise BadData(f"{where}: {error}") from None
        if design.slots != said.slots:
            raise BadData(f"{where}: field slots: expected those of design {design.name}, got {list(said.slots)}")
        return cls(
            said.task,
            said.tokens,
            said.arithmetic,
            said.goal,
            said.metric,
            design,
            frozenset(said.state_tokens),
            frozenset(said.action_tokens),
            frozenset(said.writable),
            said.max_state,
            said.max_steps,
            said.capped_pairs,
        )

    @property
    def action_length(self) -> int:
        """Tokens of an action, at most: a round of tags has one for the beginning and one for each token."""
        return self.max_state + 1 if self.design is TAGS else len(self.design.slots)

    @property
    def environment(self) -> Environment | TaggingGame:
        """The game as these demonstrations play it."""
        if self.design is TAGS:
            return TaggingGame(self.writable, self.max_state)
        return Environment(self.design, self.writable, self.max_state)


def read_contracts(folder: Folder, manifest: Manifest, engine: Engine | None = None) -> dict[str, Contract]:
    """The contracts of all demonstrations that there are."""
    there = [config for config in STEP_CONFIGS if config in manifest.configs]
    return {config: read_contract(folder, manifest, config, engine) for config in there}


def read_contract(folder: Folder, manifest: Manifest, config: str, engine: Engine | None = None) -> Contract:
    """Merge what all shards of a config say; they must agree on everything but vocabularies and sizes."""
    names = manifest.shards(config)
    if not names:
        raise BadData(f"{folder.path}: no config {config}; existing: {', '.join(manifest.configs)}")
    described = bundled(engine or Local(), _describe, ((folder / name, config) for name in names))
    where = [str(folder / name) for name in names]
    return Contract.of(merge(zip(where, described, strict=True)), f"{folder.path}: {config}")


def _describe(path: Path | Remote, config: str) -> StepsDescription:
    described = read_description_of(path, config)
    assert isinstance(described, StepsDescription)  # by the config
    return described
