"""The three accuracies of the paper, decided exactly: rational arithmetic, no floats, no ``eval``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from trainer.core.format import MAX_DIGITS

Tokens = Sequence[str]


def is_integer(token: str) -> bool:
    """Whether a token is a plain decimal integer.

    >>> is_integer("101"), is_integer("-3"), is_integer("²")
    (True, False, False)
    """
    return token.isascii() and token.isdigit() and len(token) <= MAX_DIGITS


def value(tokens: Tokens) -> Fraction | None:
    """The exact value of an expression, or None: ``+ - * /``, parentheses, and a leading minus.

    >>> value("- 3 - 6 / 2 + 9".split())
    Fraction(3, 1)
    >>> value("4 / / 2".split()) is None, value("( 2 + 3".split()) is None
    (True, True)
    """
    # A parenthesis is a frame of terms and a waiting operator; closed, it is an operand of the frame below.
    frames: list[tuple[list[Fraction], str]] = []
    terms: list[Fraction] = []
    waiting = "+"
    operand: Fraction | None = None  # the operand just read, if one was
    for place, token in enumerate(tokens):
        leads = place == 0 or tokens[place - 1] == "("
        if operand is None and token == "(":
            frames.append((terms, waiting))
            terms, waiting = [], "+"
        elif operand is None and token == "-" and leads:
            waiting = "-"
        elif operand is None and is_integer(token):
            operand = Fraction(int(token))
        elif operand is not None and token in ("+", "-", "*", "/", ")"):
            if not _apply(terms, waiting, operand):
                return None
            if token == ")":
                if not frames:
                    return None
                operand = sum(terms, Fraction(0))
                terms, waiting = frames.pop()
            else:
                operand, waiting = None, token
        else:
            return None
    if operand is None or frames or not _apply(terms, waiting, operand):
        return None
    return sum(terms, Fraction(0))


def _apply(terms: list[Fraction], operator: str, operand: Fraction) -> bool:
    """Add an operand to the open terms; False for a division by zero."""
    if operator in ("+", "-"):
        terms.append(operand if operator == "+" else -operand)
    elif operator == "*":
        terms[-1] *= operand
    elif operand:
        terms[-1] /= operand
    else:
        return False
    return True


def equation_holds(predicted: Tokens, target: Tokens) -> bool:
    """The target's integers in order, ``= integer`` at the end, and both sides equal.

    >>> equation_holds("3 + 2 = 5".split(), "2 + 3 = 5".split())
    False
    >>> equation_holds("4 / 2 = 2".split(), "4 - 2 = 2".split())
    True
    """
    if len(predicted) < 3 or predicted[-2] != "=" or not is_integer(predicted[-1]):
        return False
    if list(filter(is_integer, predicted)) != list(filter(is_integer, target)):
        return False
    return value(predicted[:-2]) == int(predicted[-1])


def token_accuracy(predicted: Tokens, target: Tokens) -> float:
    """Matches where both have a token, as a share of the target's length.

    >>> token_accuracy("1 + 2".split(), "1 + 3 = 4".split())
    0.4
    """
    if not target:
        return float(not predicted)
    return sum(map(str.__eq__, predicted, target)) / len(target)


@dataclass
class Scores:
    """What came of playing some pairs, as sums."""

    pairs: int = 0
    token: float = 0.0
    sequence: int = 0
    equation: int = 0
    arithmetic: bool = True
    unreadable: int = 0
    steps: int = 0
    ended: dict[str, int] = field(default_factory=dict)

    def add(self, predicted: Tokens, target: Tokens) -> None:
        """Count one pair."""
        self.pairs += 1
        self.token += token_accuracy(predicted, target)
        self.sequence += tuple(predicted) == tuple(target)
        self.equation += self.arithmetic and equation_holds(predicted, target)

    @property
    def key(self) -> float:
        """The accuracy that selects a checkpoint: of equations where they make sense, else of sequences."""
        return (self.equation if self.arithmetic else self.sequence) / max(self.pairs, 1)

    def to_json(self) -> dict[str, Any]:
        """Accuracies in percent, and how the games ended."""
        count = max(self.pairs, 1)
        result: dict[str, Any] = {
            "pairs": self.pairs,
            "token_accuracy": round(100 * self.token / count, 4),
            "sequence_accuracy": round(100 * self.sequence / count, 4),
        }
        if self.arithmetic:
            result["equation_accuracy"] = round(100 * self.equation / count, 4)
        refused = {name: number for name, number in self.ended.items() if name not in ("done", "limit")}
        return result | {
            "steps_per_game": round(self.steps / count, 4),
            "done": self.ended.get("done", 0),
            "limit": self.ended.get("limit", 0),
            "refused": sum(refused.values()),
            "refused_because": dict(sorted(refused.items())),
            "unreadable": self.unreadable,
        }
