"""What the shards of a config say together: the merged self-descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aegen.core.actions import Design, load_design
from aegen.core.environment import Environment
from aegen.core.errors import BadData, InvalidSpec
from aegen.dataset.folder import Folder, capped_pairs
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import open_shard
from aegen.engines.local import Engine, Local, bundled
from aegen.experts.tags import TAGS, TaggingGame
from aegen.files.places import Remote

_SETS = ("state_tokens", "action_tokens", "writable")
_MAXIMA = ("max_state", "max_steps", "action_length")
MAX_STATE = 1 << 20  # tokens
MAX_STEPS = 1 << 15  # the column is int16
_SAME = ("task", "tokens", "arithmetic", "metric", "design", "slots")


@dataclass(frozen=True)
class Contract:
    """The vocabularies, sizes and rules of a config."""

    task: str
    tokens: str
    arithmetic: bool
    metric: str
    design: Design
    state_tokens: frozenset[str]
    action_tokens: frozenset[str]
    writable: frozenset[str]
    max_state: int
    max_steps: int
    capped_pairs: int

    @property
    def environment(self) -> Environment | TaggingGame:
        """The game as these demonstrations play it."""
        if self.design is TAGS:
            return TaggingGame(self.writable, self.max_state)
        return Environment(self.design, self.writable, self.max_state)


def read_contract(folder: Folder, manifest: Manifest, config: str, engine: Engine | None = None) -> Contract:
    """Merge what all shards of a config say; they must agree on everything that is not a vocabulary or a size."""
    names = manifest.shards(config)
    if not names:
        raise BadData(f"{folder.path}: has no config {config}; there are {', '.join(manifest.configs)}")
    merged: dict[str, Any] = {}
    described = bundled(engine or Local(), _described, ((folder / name, config) for name in names))
    for name, about in zip(names, described, strict=True):
        _check(folder, name, about)
        for key in _SAME:
            if merged.setdefault(key, about[key]) != about[key]:
                raise BadData(
                    f"{folder / name}: {key} is {str(about[key])[:100]!r}, in other shards {str(merged[key])[:100]!r}"
                )
        for key in _SETS:
            merged[key] = merged.get(key, frozenset()) | frozenset(about[key])
        for key in _MAXIMA:
            merged[key] = max(merged.get(key, 0), about[key])
        merged["capped_pairs"] = merged.get("capped_pairs", 0) + capped_pairs(about, folder / name)
    name = merged.pop("design")
    try:
        design = TAGS if name == TAGS.name else load_design(name)
    except InvalidSpec as error:
        raise BadData(f"{folder.path}: {config}: {str(error)[:200]}") from None
    length = merged["max_state"] + 1 if design is TAGS else len(design.slots)
    if list(design.slots) != merged.pop("slots") or length != merged.pop("action_length"):
        raise BadData(f"{folder.path}: the shards of {config} declare other slots than the design {design.name} has")
    return Contract(design=design, **merged)


def _described(path: Path | Remote, config: str) -> dict[str, Any]:
    file, about = open_shard(path, config)
    file.close()
    return about


def _check(folder: Folder, name: str, about: dict[str, Any]) -> None:
    kinds = {**dict.fromkeys((*_SETS, "slots"), list), **dict.fromkeys(_MAXIMA, int)}
    kinds |= {**dict.fromkeys(("task", "tokens", "metric", "design"), str), "arithmetic": bool}
    for key, kind in kinds.items():
        entry = about.get(key)
        if type(entry) is not kind or (isinstance(entry, list) and not all(isinstance(token, str) for token in entry)):
            raise BadData(f"{folder / name}: metadata field {key} is not what it should be")
    for key, most in (("max_state", MAX_STATE), ("max_steps", MAX_STEPS)):
        if not 0 <= about[key] <= most:
            raise BadData(f"{folder / name}: metadata field {key} is {about[key]}; expected 0 to {most:,}")
