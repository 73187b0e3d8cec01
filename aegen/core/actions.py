"""Action designs: how an edit is written as a short token sequence of fixed length, and read back.

A design declares its slots, which is all a reader needs to execute its actions. Slot kinds: ``operation``;
``position``, ``left``, ``right`` (tokens POS_i); ``token``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegen.core.edits import Splice
from aegen.core.errors import InvalidEdit, InvalidSpec
from aegen.core.format import DELETE, DONE, INSERT, OPERATIONS, POSITION, POSITION_SLOTS, REPLACE, Refusal
from aegen.core.types import Integers, Tokens

SPECIAL = (DONE, INSERT, DELETE, REPLACE)


def position(index: int) -> str:
    """The action token of a place in the state."""
    return f"POS_{index}"


def index_of(token: str) -> int | None:
    """The place that a token names, None for a token that names none.

    >>> index_of("POS_12"), index_of("POS_012"), index_of("+")
    (12, None, None)
    """
    match = POSITION.fullmatch(token)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class Design:
    """The slots of an action, in order; which edits it can express follows from them."""

    name: str
    slots: Tokens

    @property
    def done(self) -> Tokens:
        """The action that ends the game."""
        return (DONE,) * len(self.slots)

    def expresses(self, removed: Integers, added: Integers) -> Integers:
        """Which edits fit, by how many tokens they remove and add."""
        if "operation" in self.slots:
            fits: Integers = (removed <= 1) & (added <= 1) & (removed + added > 0)
        else:
            fits = (added == 1) & ((removed >= 1) if "left" in self.slots else (removed == 0))
        return fits

    def encode(self, edit: Splice) -> Tokens:
        """The action of an edit.

        >>> DESIGNS["edit"].encode(Splice(3, 4, ()))
        ('DELETE', 'POS_3', 'POS_3')
        """
        removed = edit.stop - edit.start
        if not self.expresses(np.array(removed), np.array(len(edit.new))):
            raise InvalidEdit(f"design {self.name} cannot express {edit}")
        operation = (INSERT if not removed else REPLACE) if edit.new else DELETE
        written = {
            "operation": operation,
            "position": position(edit.start),
            "left": position(edit.start),
            "right": position(edit.stop - 1),
            "token": edit.new[0] if edit.new else position(edit.start),
        }
        return tuple(written[slot] for slot in self.slots)

    def decode(self, action: Tokens) -> Splice | Refusal:
        """The edit of an action that is not DONE, whatever the state; or why it is none.

        >>> DESIGNS["span"].decode(("POS_4", "POS_8", "96"))
        Splice(start=4, stop=9, new=('96',))
        >>> DESIGNS["insert"].decode(("+", "POS_6"))
        <Refusal.WRONG_KIND: 'wrong-kind'>
        """
        if DONE in action:
            return Refusal.PARTLY_DONE
        if len(action) != len(self.slots):
            return Refusal.WRONG_KIND
        filled = dict(zip(self.slots, action, strict=True))
        operation = filled.get("operation", INSERT if "position" in self.slots else REPLACE)
        places = {slot: index_of(filled[slot]) for slot in self.slots if slot in POSITION_SLOTS}
        if operation not in OPERATIONS or None in places.values():
            return Refusal.WRONG_KIND
        token = filled["token"]
        place = index_of(token)
        if operation == DELETE:
            if place is None:
                return Refusal.WRONG_KIND
            if place != places["position"]:
                return Refusal.DELETE_TWO_POSITIONS
            return Splice(place, place + 1, ())
        if place is not None or token in OPERATIONS:
            return Refusal.WRONG_KIND
        if "left" in places:
            left, right = places["left"], places["right"]
            assert left is not None and right is not None
            return Splice(left, right + 1, (token,)) if left <= right else Refusal.OUT_OF_RANGE
        start = places["position"]
        assert start is not None
        return Splice(start, start + (operation == REPLACE), (token,))


DESIGNS = {
    design.name: design
    for design in (
        Design("insert", ("position", "token")),
        Design("edit", ("operation", "position", "token")),
        Design("span", ("left", "right", "token")),
        Design("span2", ("left", "token", "right")),
        Design("span3", ("token", "left", "right")),
    )
}


def load_design(name: str) -> Design:
    """A design by its name."""
    if name not in DESIGNS:
        raise InvalidSpec(f"design={name}: expected one of {', '.join(DESIGNS)}")
    return DESIGNS[name]
