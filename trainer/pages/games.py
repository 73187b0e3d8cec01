"""Games as the stepper shows them, and the files that a page with a stepper needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

from msgspec import Struct

from trainer.core.format import detokenize, split_state, unescape, visible
from trainer.game.accuracy import value
from trainer.game.outcomes import GameRecord


class ShownMove(Struct, frozen=True):
    """One step: tokens as a person reads them, and the places of the edit."""

    state: list[str]
    action: list[str]
    verdict: str
    probabilities: list[float]
    removed: Sequence[int] = ()
    written: Sequence[int] = ()
    holds: bool | None = None  # the equation; None: not arithmetic


class ShownGame(Struct, frozen=True):
    """A game; ``source`` and ``text`` are the whole texts before and after it."""

    source: str
    text: str
    tokens: Literal["words", "chars"]
    moves: list[ShownMove]
    result: list[str]
    ended: str  # "done", "limit", or the reason of a refusal
    holds: bool | None = None
    right: bool | None = None  # None: no target to compare with
    failure: str = ""
    target: str | None = None


def shown(tokens: Iterable[str]) -> list[str]:
    r"""Tokens as a person reads them: what cannot be printed is escaped.

    >>> shown(["a", "\\s", "\\u202e"])
    ['a', ' ', '\\u202e']
    """
    return [visible(unescape(token)) for token in tokens]


def holds(tokens: tuple[str, ...], arithmetic: bool) -> bool | None:
    """Whether tokens are an equation whose sides are equal, whatever was wanted; None if the data is not arithmetic.

    Unlike an equation that counts as solved, it may have parentheses on both sides.

    >>> holds(tuple("( 2 + 3 ) = ( 6 - 1 )".split()), True), holds(("2", "3", "5"), True), holds(("a", "word"), False)
    (True, False, None)
    """
    if not arithmetic:
        return None
    if tokens.count("=") != 1:
        return False
    middle = tokens.index("=")
    left, right = value(tokens[:middle]), value(tokens[middle + 1 :])
    return left is not None and left == right


def recorded(game: GameRecord, arithmetic: bool) -> ShownGame:
    """A game that an evaluation has kept."""
    states = [split_state(move.state) for move in game.moves]
    moves = [
        ShownMove(
            shown(state),
            shown(move.action),
            move.verdict,
            move.chances,
            move.removed,
            move.written,
            holds(state, arithmetic),
        )
        for state, move in zip(states, game.moves, strict=True)
    ]
    source, target, predicted = (split_state(text) for text in (game.source, game.target, game.predicted))
    verdict = game.moves[-1].verdict if game.moves else "done"
    return ShownGame(
        source=visible(detokenize(source, game.tokens)),
        text=visible(detokenize(predicted, game.tokens)),
        tokens=game.tokens,
        moves=moves,
        result=shown(predicted),
        ended="limit" if verdict == "applied" else verdict,
        holds=holds(predicted, arithmetic),
        right=game.right,
        failure=game.failure,
        target=visible(detokenize(target, game.tokens)),
    )


@cache
def asset(name: str) -> str:
    """The text of a file that pages share: ``page.css``, ``stepper.css``, ``stepper.js``."""
    return (files("trainer.pages") / "static" / name).read_text(encoding="utf-8")
