"""All that the trainer knows of a dataset: what its shards say of themselves, merged over the shards that are read."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from msgspec import structs

from trainer.core import description
from trainer.core.description import PairsDescription, StepsDescription, checked
from trainer.core.errors import BadData
from trainer.core.format import DONE, KEEP, OPERATIONS, POSITION
from trainer.core.records import convert, plain


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
