"""Edits as classes: what may be done at a place, what may be written there, and how both become actions.

A place is a gap, where a token can be inserted, or a token, which has one class for each operation or, for spans, for
each width; class 0 leaves a place as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import torch
from msgspec import Meta
from torch import Tensor

from trainer.core.errors import BadData, InvalidConfig
from trainer.core.format import DELETE, DONE, INSERT, REPLACE, is_special
from trainer.data.contract import POSITIONS, SPECIAL, Contract, OpenContract
from trainer.models.editor.variants import CASES, COPIES, MOST, apply
from trainer.models.policy import Knowledge

WIDEST = 64  # tokens of a span


class EditorKnowledge(Knowledge, frozen=True):
    """What the editor must know of its data besides the contract."""

    variants: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=MOST)] = ()
    span: Annotated[int, Meta(ge=0, le=WIDEST)] = 0  # tokens of the widest span; 0: no spans
    encoder: dict[str, Any] | None = None  # the config of a pretrained encoder
    tokenizer: Annotated[int, Meta(ge=0, le=1 << 27)] = 0  # bytes of its tokenizer

    def check(self, contract: Contract, where: str) -> None:
        for name in self.variants:
            if name not in CASES and name not in COPIES and name.count(">") != 1:
                raise BadData(f"{where}: field variants: no such variant: {name!r}")
        if self.encoder is not None and not isinstance(self.encoder.get("model_type"), str):
            raise BadData(f"{where}: field encoder: expected the config of an encoder with its model_type")
        if ("left" in contract.slots) != bool(self.span):
            raise BadData(f"{where}: field span: {self.span} does not belong to actions of {', '.join(contract.slots)}")


class Edit(NamedTuple):
    """``state[start:stop] = new``, of word ids; without ``new`` it only removes."""

    start: int
    stop: int
    new: int | None

    def touches(self, other: Edit) -> bool:
        """Whether no token lies between two edits.

        >>> Edit(1, 2, 9).touches(Edit(2, 2, 9)), Edit(1, 2, 9).touches(Edit(3, 4, None))
        (True, False)
        """
        return self.start <= other.stop and other.start <= self.stop


class EditClasses:
    """The classes of one contract."""

    def __init__(self, contract: OpenContract, knowledge: EditorKnowledge) -> None:
        self.contract, self.variants, self.span = contract, knowledge.variants, knowledge.span
        self.slots = contract.slots
        operations = contract.operations if "operation" in self.slots else (INSERT,)
        self.inserts = INSERT in operations and not self.span
        self.kinds: tuple[str, ...] = tuple(one for one in (DELETE, REPLACE) if one in operations)
        self.words = tuple(word for word in contract.action_tokens if not is_special(word))
        self.classes = {word: len(self.variants) + index for index, word in enumerate(self.words)}

    @property
    def token_classes(self) -> int:
        """Classes of a token's place, the one that keeps it included."""
        return 1 + (self.span or len(self.kinds))

    @property
    def word_classes(self) -> int:
        """What may be written: variants of the state's tokens, then the words that demonstrations write."""
        return max(len(self.variants) + len(self.words), 1)

    def kind(self, edit: Edit) -> int | None:
        """The class of an edit at its place, a gap or a token; None for one that training does not show."""
        width, operation = edit.stop - edit.start, DELETE if edit.new is None else REPLACE
        if not width:
            return 1 if self.inserts else None
        if self.span:
            return width if width <= self.span else None
        return 1 + self.kinds.index(operation) if operation in self.kinds else None

    def edit(self, place: int, gap: bool, kind: int, new: int | None) -> Edit:
        """The inverse of :meth:`kind`."""
        if gap:
            return Edit(place, place, new)
        if self.span:
            return Edit(place, place + kind, new)
        return Edit(place, place + 1, None if self.kinds[kind - 1] == DELETE else new)

    def writes(self, gap: bool, kind: int) -> bool:
        """Whether an edit of this class writes a token."""
        return gap or bool(self.span) or self.kinds[kind - 1] != DELETE

    def writing(self, gap: Tensor, kind: Tensor) -> Tensor:
        """The same of many."""
        if self.span or DELETE not in self.kinds:
            return torch.ones_like(gap, dtype=torch.bool)
        return gap.bool() | (kind != 1 + self.kinds.index(DELETE))

    def around(self, edit: Edit, state: Sequence[int]) -> tuple[str, str, str]:
        """The one token that an edit replaces, and its neighbours; '' for none."""
        names = self.contract.names
        word = names[state[edit.start]] if edit.stop - edit.start == 1 else ""
        left = names[state[edit.start - 1]] if edit.start else ""
        return word, left, names[state[edit.stop]] if edit.stop < len(state) else ""

    def answer(self, edit: Edit, state: Sequence[int]) -> int:
        """The class of the word that an edit writes: the first variant that makes it, else its own."""
        assert edit.new is not None
        new, near = self.contract.names[edit.new], self.around(edit, state)
        for number, name in enumerate(self.variants):
            if apply(name, *near) == new:
                return number
        return self.classes.get(new, -1)

    def word(self, answer: int, edit: Edit, state: Sequence[int]) -> int | None:
        """The inverse of :meth:`answer`; None for what would change nothing."""
        near = self.around(edit, state)
        if answer >= len(self.variants):
            made: str | None = self.words[answer - len(self.variants)]
        else:
            made = apply(self.variants[answer], *near)
        return None if made is None or made == near[0] else self.contract.word_id(made)

    def action(self, edit: Edit) -> list[int]:
        """The ids of the action that makes an edit."""
        place = POSITIONS + edit.start
        token = place if edit.new is None else len(SPECIAL) - 1 + edit.new
        operation = INSERT if edit.start == edit.stop else DELETE if edit.new is None else REPLACE
        parts = {"position": place, "left": place, "right": POSITIONS + edit.stop - 1, "token": token}
        parts["operation"] = SPECIAL.index(operation)
        return [parts[name] for name in self.slots]

    @property
    def done(self) -> list[int]:
        """The ids of the action DONE."""
        return [SPECIAL.index(DONE)] * len(self.slots)


def remaining(edits: Sequence[Edit]) -> list[Edit]:
    """The edits of the rest of a trajectory, each in the positions of the first one's state.

    One that touches what an earlier one wrote cannot be told from there: it and those after it are left out, as they
    are seen once the earlier ones are made. Of several insertions into one gap the first is kept.

    >>> remaining([Edit(0, 1, 7), Edit(1, 1, 8), Edit(2, 2, 9), Edit(5, 6, None)])
    [Edit(start=0, stop=1, new=7), Edit(start=1, stop=1, new=8), Edit(start=3, stop=4, new=None)]
    """
    found: list[Edit] = []
    played: list[Edit] = []
    for edit in edits:
        start, stop = edit.start, edit.stop
        for before in reversed(played):
            width = before.new is not None
            if start >= before.start + width:
                shift = before.stop - before.start - width
                start, stop = start + shift, stop + shift
            elif stop > before.start:
                return found
        played.append(edit)
        told = Edit(start, stop, edit.new)
        if any(one.start == start and (one.stop == start) == (stop == start) for one in found):
            continue
        if any(max(one.start, start) < min(one.stop, stop) for one in found):
            return found
        found.append(told)
    return found


def made(state: Sequence[int], edits: Sequence[Edit], chosen: Sequence[bool]) -> tuple[list[int], list[Edit]]:
    """The state after some of its edits, and the others in its positions.

    >>> made([4, 5, 6], [Edit(0, 0, 3), Edit(1, 2, None), Edit(3, 3, 7)], [True, False, True])
    ([3, 4, 5, 6, 7], [Edit(start=2, stop=3, new=None)])
    """
    after, left = list(state), []
    shift = 0
    for edit, take in sorted(zip(edits, chosen, strict=True), key=lambda one: one[0][:2]):
        moved = Edit(edit.start + shift, edit.stop + shift, edit.new)
        if not take:
            left.append(moved)
            continue
        new = [] if edit.new is None else [edit.new]
        after[moved.start : moved.stop] = new
        shift += len(new) - (edit.stop - edit.start)
    return after, left


def check_spans(edits: Sequence[Edit]) -> int:
    """The tokens of the widest span; spans that are too wide for a class each are refused."""
    widest = max((edit.stop - edit.start for edit in edits), default=1)
    if widest > WIDEST:
        raise InvalidConfig(f"the editor reads spans of at most {WIDEST} tokens, these have up to {widest}")
    return max(widest, 1)
