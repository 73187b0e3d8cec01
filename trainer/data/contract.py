"""What a shard says about itself, checked before anything is believed, and merged over the shards read.

Metadata comes from strangers: every field has a type and a limit, and nothing is allocated from a declared
number before it passed. A shard's own description is one JSON object under the key ``aegen`` of its
Parquet schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

from trainer.core.errors import BadData
from trainer.core.text import DELETE, DONE, INSERT_AFTER, KEEP, OPERATIONS, POSITION, SUBSTITUTE, is_special

FORMAT = 1
KEY = b"aegen"

MAX_JSON = 1 << 26  # bytes of one description
MAX_TOKENS = 1 << 18  # entries of one vocabulary
MAX_TOKEN = 1 << 10  # characters of one token
MAX_STATE = 1 << 16  # tokens of one state
MAX_STEPS = 1 << 15  # steps of one trajectory: the column is int16

SLOTS = {
    ("position", "token"),
    ("operation", "position", "token"),
    ("left", "right", "token"),
    ("left", "token", "right"),
    ("right", "left", "token"),
    ("right", "token", "left"),
    ("token", "left", "right"),
    ("token", "right", "left"),
    ("tags",),
    ("text",),
}


def parse_object(text: bytes | str, where: str) -> dict[str, Any]:
    """One JSON object from an untrusted text."""
    if len(text) > MAX_JSON:
        raise BadData(f"{where}: {len(text):,} bytes of JSON, at most {MAX_JSON:,} are read")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadData(f"{where}: not readable as JSON ({type(error).__name__})") from error
    if not isinstance(value, dict):
        raise BadData(f"{where}: a JSON object is needed, found {type(value).__name__}")
    return value


class Fields:
    """Typed access to an untrusted JSON object; what is wrong names the file and the field."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = values, where

    def wrong(self, name: str, needed: str) -> BadData:
        shown = repr(self.values.get(name, "nothing"))
        return BadData(f"{self.where}: field {name!r}: {needed} is needed, found {shown[:60]}")

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= MAX_TOKEN:
            raise self.wrong(name, f"a text of 1 to {MAX_TOKEN} characters")
        return value

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        value = self.values.get(name)
        if value not in choices:
            raise self.wrong(name, f"one of {', '.join(choices)}")
        return str(value)

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def number(self, name: str, least: int, most: int) -> int:
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(name, f"a whole number from {least} to {most:,}")
        return value

    def object(self, name: str) -> dict[str, Any]:
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return value

    def tokens(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name)
        if not isinstance(value, list) or len(value) > MAX_TOKENS:
            raise self.wrong(name, f"a list of at most {MAX_TOKENS:,} tokens")
        for token in value:
            if not isinstance(token, str) or not 0 < len(token) <= MAX_TOKEN or any(map(str.isspace, token)):
                raise BadData(f"{self.where}: field {name!r}: {str(token)[:60]!r} is not a token")
        if any(one >= two for one, two in pairwise(value)):
            raise BadData(f"{self.where}: field {name!r}: the tokens must be sorted, without repetition")
        return tuple(value)


@dataclass(frozen=True)
class Contract:
    """All that the trainer knows of a dataset: vocabularies, the slots of an action, and sizes."""

    task: str
    tokens: str
    arithmetic: bool
    spec: dict[str, Any]
    metric: str
    backend: dict[str, Any]
    design: str
    slots: tuple[str, ...]
    state_tokens: tuple[str, ...]
    action_tokens: tuple[str, ...]
    writable: tuple[str, ...]
    max_state: int
    action_length: int
    max_steps: int

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str) -> Contract:
        """Check every field of a description that came from outside."""
        read = Fields(values, where)
        check_format(values, where)
        slots = values.get("slots")
        if not isinstance(slots, list) or not all(isinstance(slot, str) for slot in slots) or tuple(slots) not in SLOTS:
            raise read.wrong("slots", '["position", "token"], with "operation" before them, or left, right and token')
        contract = cls(
            task=read.text("task"),
            tokens=read.choice("tokens", ("words", "chars")),
            arithmetic=read.flag("arithmetic"),
            spec=read.object("spec"),
            metric=read.text("metric"),
            backend=read.object("backend"),
            design=read.text("design"),
            slots=tuple(slots),
            state_tokens=read.tokens("state_tokens"),
            action_tokens=read.tokens("action_tokens"),
            writable=read.tokens("writable"),
            max_state=read.number("max_state", 1, MAX_STATE),
            action_length=read.number("action_length", *_lengths(slots, values.get("max_state"))),
            max_steps=read.number("max_steps", 1, MAX_STEPS),
        )
        contract._check_tokens(where)
        return contract

    def _check_tokens(self, where: str) -> None:
        known, writable = set(self.state_tokens), set(self.writable)
        for token in self.action_tokens if self.game == "tags" else ():
            new = next((token.removeprefix(k) for k in (SUBSTITUTE, INSERT_AFTER) if token.startswith(k)), None)
            if token not in (KEEP, DELETE) and new not in known:
                raise BadData(f"{where}: action token {token!r} is no tag")
        for token in self.action_tokens if self.game != "tags" else ():
            position = POSITION.fullmatch(token)
            if position and int(position[1]) > self.max_state:
                raise BadData(f"{where}: action token {token} lies beyond the longest state ({self.max_state} tokens)")
            if not is_special(token) and (token not in known or token not in writable):
                missing = "state_tokens" if token not in known else "writable"
                raise BadData(f"{where}: action token {token!r} is not in {missing}")
        for name, tokens in (("state_tokens", self.state_tokens), ("writable", self.writable)):
            for token in tokens:
                if is_special(token):
                    raise BadData(f"{where}: field {name!r}: {token} is a word of the game, not of the text")

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """The action vocabulary: the sorted action tokens, with every position 0 … max_state."""
        if self.game == "tags":
            return tuple(sorted({*self.action_tokens, KEEP}))
        words = (token for token in self.action_tokens if not POSITION.fullmatch(token))
        if self.game == "text":
            return (DONE, *sorted({*words} - {DONE}))
        return (*sorted({*words, DONE}), *(f"POS_{index}" for index in range(self.max_state + 1)))

    @property
    def game(self) -> str:
        """What an action is: one of the edits, a round of tags, or the whole text."""
        return self.slots[0] if self.slots in (("tags",), ("text",)) else "edits"

    @cached_property
    def action_ids(self) -> dict[str, int]:
        """Action token → id; the ids begin at 0."""
        return {token: index for index, token in enumerate(self.actions)}

    @cached_property
    def state_ids(self) -> dict[str, int]:
        """State token → id; 0 is the padding."""
        return {token: index for index, token in enumerate(self.state_tokens, start=1)}

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that occur."""
        return tuple(token for token in self.action_tokens if token in OPERATIONS)

    def to_json(self) -> dict[str, Any]:
        """The same fields as a plain object that :meth:`parse` reads."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"format": FORMAT} | {
            name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
        }


UNITED = ("state_tokens", "action_tokens", "writable")
LARGEST = ("max_state", "max_steps", "action_length")


def _lengths(slots: list[str], longest: Any) -> tuple[int, int]:
    """How long an action may be: as the slots, or as a state and one more."""
    if slots in (["tags"], ["text"]) and isinstance(longest, int) and not isinstance(longest, bool):
        return (longest + 1 if slots == ["tags"] else 1), min(longest, MAX_STATE) + 1
    return len(slots), len(slots)


def check_format(values: Mapping[str, Any], where: str) -> None:
    """Refuse another version of the format, and say what to do."""
    version = values.get("format")
    if version != FORMAT or isinstance(version, bool):
        advice = "update the package" if isinstance(version, int) and version > FORMAT else "rebuild the dataset"
        raise BadData(f"{where}: format {version!r}, this version reads format {FORMAT}: {advice}")


def merge(described: Iterable[tuple[str, Contract]]) -> Contract:
    """One contract for several shards: vocabularies united, sizes at their largest, the rest equal."""
    named = list(described)
    if not named:
        raise BadData("no shards to read")
    first_name, first = named[0]
    merged: dict[str, Any] = {}
    for field in fields(Contract):
        name = field.name
        values = [getattr(contract, name) for _, contract in named]
        if name in UNITED:
            merged[name] = tuple(sorted(set().union(*values)))
        elif name in LARGEST:
            merged[name] = max(values)
        else:
            for (shard, _), value in zip(named, values, strict=True):
                if value != values[0]:
                    raise BadData(f"{shard}: field {name!r} differs from {first_name}")
            merged[name] = getattr(first, name)
    return Contract(**merged)
