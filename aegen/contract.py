"""What the shards of a config say together: the merged self-descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aegen.actions import Design, load_design
from aegen.environment import Environment
from aegen.errors import BadData
from aegen.folder import Folder, Manifest
from aegen.shards import open_shard
from aegen.tags import TAGS, TaggingGame

_SETS = ("state_tokens", "action_tokens", "writable")
_MAXIMA = ("max_state", "max_steps", "action_length")
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


def read_contract(folder: Folder, manifest: Manifest, config: str) -> Contract:
    """Merge what all shards of a config say; they must agree on everything that is not a vocabulary or a size."""
    names = manifest.shards(config)
    if not names:
        raise BadData(f"{folder.path}: has no config {config}; there are {', '.join(manifest.configs)}")
    merged: dict[str, Any] = {}
    for name in names:
        file, about = open_shard(folder / name, config)
        file.close()
        _check(folder, name, about)
        for key in _SAME:
            if merged.setdefault(key, about[key]) != about[key]:
                raise BadData(f"{folder / name}: {key} is {about[key]!r}, in other shards {merged[key]!r}")
        for key in _SETS:
            merged[key] = merged.get(key, frozenset()) | frozenset(about[key])
        for key in _MAXIMA:
            merged[key] = max(merged.get(key, 0), about[key])
        merged["capped_pairs"] = merged.get("capped_pairs", 0) + about.get("capped_pairs", 0)
    name = merged.pop("design")
    design = TAGS if name == TAGS.name else load_design(name)
    length = merged["max_state"] + 1 if design is TAGS else len(design.slots)
    if list(design.slots) != merged.pop("slots") or length != merged.pop("action_length"):
        raise BadData(f"{folder.path}: the shards of {config} declare other slots than the design {design.name} has")
    return Contract(design=design, **merged)


def _check(folder: Folder, name: str, about: dict[str, Any]) -> None:
    kinds = {**dict.fromkeys((*_SETS, "slots"), list), **dict.fromkeys(_MAXIMA, int)}
    kinds |= {**dict.fromkeys(("task", "tokens", "metric", "design"), str), "arithmetic": bool}
    for key, kind in kinds.items():
        entry = about.get(key)
        if type(entry) is not kind or (isinstance(entry, list) and not all(isinstance(token, str) for token in entry)):
            raise BadData(f"{folder / name}: metadata field {key} is not what it should be")
