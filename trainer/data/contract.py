"""All that the trainer knows of a dataset: what its shards say of themselves, merged over the shards that are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from msgspec import structs

from trainer.core import description
from trainer.core.description import PairsDescription, StepsDescription, checked
from trainer.core.errors import BadData
from trainer.core.format import DONE, KEEP, OPERATIONS, POSITION
from trainer.core.records import convert, plain

if TYPE_CHECKING:
    from torch import Tensor


class Contract(StepsDescription, frozen=True, kw_only=True, dict=True):
    """Vocabularies, the slots of an action, and sizes."""

    open: ClassVar[bool] = False  # whether states may have any words and any length

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
    def names(self) -> Sequence[str]:
        """State token by id; 0 is the padding."""
        return ("", *self.state_tokens)

    def word_id(self, word: str) -> int:
        """The id of a state token."""
        return self.state_ids[word]

    @property
    def longest(self) -> int:
        """The most tokens of a state."""
        return self.max_state

    @property
    def action_bound(self) -> int:
        """More than the largest action id."""
        return len(self.actions)

    def action_names(self, ids: Iterable[int]) -> list[str]:
        """The tokens of an action; the id after the vocabulary is a model's BOS."""
        return [self.actions[one] if one < len(self.actions) else "BOS" for one in ids]

    def most_steps(self, lengths: Tensor) -> Tensor:
        """The most rounds of games that begin with states of these lengths (b)."""
        return lengths.new_full(lengths.shape, self.max_steps)

    def forget(self) -> None:
        """Between texts: forget what was met besides the dataset's own tokens, which here is nothing."""

    @property
    def sentences(self) -> bool:
        """Whether states are texts by words, of which single edits are right or wrong."""
        return not self.arithmetic and self.tokens == "words"

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that occur."""
        return tuple(token for token in self.action_tokens if token in OPERATIONS)


SPECIAL = (DONE, *OPERATIONS)  # the first action ids of an open contract; words follow,
POSITIONS = 1 << 30  # and from here on positions, without end
MOST_WORDS = 1 << 17  # that are met and remembered, besides the dataset's own


class OpenContract(Contract, frozen=True, kw_only=True, dict=True):
    """The same for an agent that reads any words: ids go on after the contract's own tokens, as words are met.

    Its actions are numbered without a vocabulary: DONE and the operations, every word, every position.

    >>> contract = OpenContract(
    ...     config="expert", split="train", task="text", tokens="words", arithmetic=False, spec={},
    ...     metric="levenshtein", backend={}, design="edit", slots=("operation", "position", "token"),
    ...     state_tokens=("a", "b"), action_tokens=("DONE",), writable=("a", "b"), max_state=2, action_length=3,
    ...     max_steps=2)
    >>> [contract.word_id(word) for word in ("b", "new", "b", "newer", "new")]
    [2, 3, 2, 4, 3]
    >>> contract.action_names([contract.action_id(token) for token in ("REPLACE", "POS_100000", "newer")])
    ['REPLACE', 'POS_100000', 'newer']
    """

    open: ClassVar[bool] = True

    @cached_property
    def state_ids(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.state_tokens, start=1)}

    @cached_property
    def names(self) -> list[str]:
        return ["", *self.state_tokens]

    def word_id(self, word: str) -> int:
        """The id of a word, a new one if it has not been met."""
        found = self.state_ids.get(word)
        if found is None:
            found = self.state_ids[word] = len(self.names)
            self.names.append(word)
        return found

    def forget(self) -> None:
        """Between texts: forget the words that have been met if they are many. Their ids mean nothing any more."""
        if len(self.names) > self.own + MOST_WORDS:
            self.__dict__["names"] = self.names[: self.own]  # another list, so that whoever has read it can tell
            del self.__dict__["state_ids"]

    @property
    def own(self) -> int:
        """The ids that stay: those of the dataset's own words, and the padding."""
        return 1 + len(self.state_tokens)

    def action_id(self, token: str | None) -> int:
        """The id of an action token; -1 for what cannot be one."""
        if not token:
            return -1
        if token in SPECIAL:
            return SPECIAL.index(token)
        if position := POSITION.fullmatch(token):
            place = int(position[1])
            return POSITIONS + place if place < POSITIONS else -1
        return len(SPECIAL) - 1 + self.word_id(token)

    @property
    def longest(self) -> int:
        return POSITIONS

    @property
    def action_bound(self) -> int:
        return 2 * POSITIONS

    def action_names(self, ids: Iterable[int]) -> list[str]:
        return [
            f"POS_{one - POSITIONS}"
            if one >= POSITIONS
            else SPECIAL[one]
            if one < len(SPECIAL)
            else self.names[one - len(SPECIAL) + 1]
            for one in ids
        ]

    def most_steps(self, lengths: Tensor) -> Tensor:
        """As many as in training, or for a longer text one for each token."""
        return lengths.clamp(min=self.max_steps)


def merge(described: Iterable[tuple[str, Contract]]) -> Contract:
    """One contract for several shards: vocabularies united, sizes at their largest, the rest equal."""
    named = list(described)
    if not named:
        raise BadData("no shards to read")
    merged = description.merge(named)
    assert isinstance(merged, Contract)  # of the type of the first
    return merged._playable(named[0][0])
