"""All that the trainer knows of a dataset: what its shards say of themselves, merged over the shards that are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

from msgspec import structs

from trainer.core import description
from trainer.core.description import PairsDescription, StepsDescription, check_version, checked
from trainer.core.errors import BadData
from trainer.core.format import DONE, KEEP, MAX_STATE, OPERATIONS, POSITION, VERSION  # noqa: F401
from trainer.core.records import convert, decode, plain


class Contract(StepsDescription, frozen=True, kw_only=True, dict=True):
    """Vocabularies, the slots of an action, and sizes."""

    @classmethod
    def parse(cls, values: object, where: object) -> Contract:
        """A contract from untrusted values, as a run's ``config.json`` holds them."""
        return checked(convert(values, cls, where), where)._playable(where)

    @classmethod
    def of(cls, said: PairsDescription, where: object) -> Contract:
        """The contract of a shard's description."""
        if not isinstance(said, StepsDescription):
            raise BadData(f"{where}: config {said.config} has no demonstrations")
        return cls(**structs.asdict(said))

    def _playable(self, where: object) -> Contract:
        if not self.max_state or not self.max_steps:
            raise BadData(f"{where}: no states to play from")
        return self

    def to_json(self) -> dict[str, object]:
        """The same fields as plain values that :meth:`parse` accepts."""
        values: dict[str, object] = plain(self)
        return values

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """The action vocabulary: the sorted action tokens, with every position 0 … max_state."""
        if self.game == "tags":
            return tuple(sorted({*self.action_tokens, KEEP}))
        words = (token for token in self.action_tokens if not POSITION.fullmatch(token))
        if self.game == "text":
            return (DONE, *sorted({*words} - {DONE}))
        return (*sorted({*words, DONE}), *(f"POS_{index}" for index in range(self.max_state + 1)))

    @cached_property
    def action_ids(self) -> dict[str, int]:
        """Action token -> id; the ids begin at 0."""
        return {token: index for index, token in enumerate(self.actions)}

    @cached_property
    def state_ids(self) -> dict[str, int]:
        """State token -> id; 0 is the padding."""
        return {token: index for index, token in enumerate(self.state_tokens, start=1)}

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that occur."""
        return tuple(token for token in self.action_tokens if token in OPERATIONS)


def merge(described: Iterable[tuple[str, Contract]]) -> Contract:
    """One contract for several shards: vocabularies united, sizes at their largest, the rest equal."""
    named = list(described)
    if not named:
        raise BadData("no shards to read")
    merged = description.merge(named)
    assert isinstance(merged, Contract)  # of the type of the first
    return merged._playable(named[0][0])


# Temporary, until nobody uses them any more.
MAX_JSON = 1 << 26
MAX_TOKEN, MAX_TOKENS = 1 << 12, 1 << 20
FORMAT = VERSION


def parse_object(text: bytes | str, where: str) -> dict[str, Any]:
    return decode(text, dict[str, Any], where, MAX_JSON)


def check_format(values: Mapping[str, Any], where: str) -> None:
    check_version(json.dumps({"format": values.get("format")}), where)


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
