"""Which tokens of a text a move removes, and which it writes: what a page or a terminal marks."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.core.format import DELETE, DONE, INSERT_AFTER, REPLACE, SUBSTITUTE
from trainer.data.contract import Contract

Tokens = tuple[str, ...]


@dataclass(frozen=True)
class Marks:
    """Places in the state before a move, and in the state after it; all other tokens are kept, in order."""

    removed: tuple[int, ...] = ()
    written: tuple[int, ...] = ()


def marks(contract: Contract, state: Tokens, action: Tokens) -> Marks:
    """What an action changes that the environment has executed."""
    if contract.game == "tags":
        return of_tags(action)
    if contract.game == "text":
        return of_texts(state, action[: action.index(DONE)] if DONE in action else action)
    return of_edit(contract.slots, action)


def of_edit(slots: Tokens, action: Tokens) -> Marks:
    """What one edit changes.

    >>> of_edit(("left", "right", "token"), ("POS_4", "POS_6", "8"))
    Marks(removed=(4, 5, 6), written=(4,))
    >>> of_edit(("operation", "position", "token"), ("DELETE", "POS_3", "POS_3"))
    Marks(removed=(3,), written=())
    """
    part = dict(zip(slots, action, strict=True))
    start = int(part.get("left", part.get("position", ""))[4:])
    operation = part.get("operation")
    stop = int(part["right"][4:]) + 1 if "right" in part else start + (operation in (DELETE, REPLACE))
    return Marks(tuple(range(start, stop)), () if operation == DELETE else (start,))


def of_tags(tags: Tokens) -> Marks:
    """What a round of tags changes: one for the beginning, then one for each token.

    >>> of_tags(("INSERT_7", "DELETE", "SUB_5", "KEEP"))
    Marks(removed=(0, 1), written=(0, 1))
    """
    removed, written, after = [], [], 0
    for place, tag in enumerate(tags, -1):
        drops = tag == DELETE or tag.startswith(SUBSTITUTE)
        if drops:
            removed.append(place)
        if tag.startswith((SUBSTITUTE, INSERT_AFTER)):
            written.append(after + (place >= 0 and not drops))
        after += (place >= 0 and tag != DELETE) + tag.startswith(INSERT_AFTER)
    return Marks(tuple(removed), tuple(written))


def of_texts(old: Tokens, new: Tokens) -> Marks:
    """Where a text that was written anew differs: all between what both begin and end with.

    >>> of_texts(("3", "6", "9"), ("3", "+", "6", "9"))
    Marks(removed=(), written=(1,))
    """
    shorter = min(len(old), len(new))
    first = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    last = next((place for place in range(shorter - first) if old[-1 - place] != new[-1 - place]), shorter - first)
    return Marks(tuple(range(first, len(old) - last)), tuple(range(first, len(new) - last)))
