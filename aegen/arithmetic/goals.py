"""What winning is in each task, decided exactly: rational arithmetic, no floats.

The reward of a game is 1 if the agent says DONE in a state that wins, else 0. It is a function of the source, of that
state and, where there is one, of the target:

- AOR keeps the source's integers in order, AES the values of its integers and parentheses. Both follow from the source
  and are the target's integers, so a win needs no target, and each of them is right by the paper's equation accuracy.
- AEC has no such trace of its target in the source. With a target, its integers must be kept, as the paper's equation
  accuracy has it. Without one, a win is a repair by the rules of the game: an equation with as many integers as the
  task's, within as many edits as it makes mistakes. Several repairs win, and one of them was meant.
- Texts win if they equal their target, so without a target there is no reward. What is near the target can pay a share.
"""

from __future__ import annotations

from aegen.arithmetic.equation import EQUALS, is_integer, value
from aegen.core.description import Goal
from aegen.core.format import MAX_DIGITS
from aegen.core.types import Tokens

LIMIT = 10**MAX_DIGITS
ERRORS = 3  # that AEC makes, unless its spec says otherwise


def goal_of(task: str, errors: int = ERRORS, integers: int = 0) -> Goal:
    """What winning is in a task; of AEC the number of errors and, where it is known, of integers matter.

    >>> goal_of("aor"), goal_of("text").wins
    (Goal(wins='equation', keeps='integers', edits=0, integers=0), 'target')
    """
    if task == "aec":
        return Goal("equation", "edits", errors, integers)
    if task == "aes":
        return Goal("equation", "values")
    return Goal("equation", "integers") if task == "aor" else Goal("target")


def reward(goal: Goal, source: Tokens, state: Tokens, target: Tokens | None = None) -> float | None:
    """What DONE pays in a state; None if the goal needs a target and there is none.

    >>> reward(goal_of("aor"), tuple("264"), tuple("-2+6=4"))
    1.0
    >>> reward(goal_of("aor"), tuple("264"), tuple("2+6=8"))
    0.0
    """
    if goal.wins == "target":
        return None if target is None else float(state == target)
    if not equation_holds(state):
        return 0.0
    integers = tuple(filter(is_integer, state))
    if target is not None:
        return float(integers == tuple(filter(is_integer, target)))
    if goal.keeps == "edits":
        return float((not goal.integers or len(integers) == goal.integers) and _near(source, state, goal.edits))
    return float(integers == kept_integers(goal, source))


def share(state: Tokens, target: Tokens) -> float:
    """How much of a target a state has: 1 for the target itself, less by each edit between them.

    >>> share(tuple("abcd"), tuple("abxd")), share(tuple("a"), tuple("b"))
    (0.75, 0.0)
    """
    from Levenshtein import distance  # takes a while to import

    return 1 - distance(state, target) / max(len(state), len(target), 1)


def equation_holds(state: Tokens) -> bool:
    """Whether a state is an expression without parentheses, ``=``, and the integer that it equals."""
    if len(state) < 3 or state[-2] != EQUALS or not is_integer(state[-1]) or "(" in state:
        return False
    return value(state[:-2]) == int(state[-1])


def kept_integers(goal: Goal, source: Tokens) -> Tokens | None:
    """The integers that a win has, in order, as they follow from the source; None if nothing can win.

    >>> kept_integers(goal_of("aes"), tuple("65 + ( 25 - 20 ) = ( 7 * 10 )".split()))
    ('65', '5', '70')
    """
    if goal.keeps == "integers":
        return tuple(filter(is_integer, source))
    kept, depth, start = [], 0, 0
    for place, token in enumerate(source):
        if token == "(":
            start = start if depth else place + 1
            depth += 1
        elif token == ")":
            depth -= 1
            found = value(source[start:place]) if not depth else None
            if depth < 0 or (not depth and (found is None or found.denominator != 1 or not 0 <= found < LIMIT)):
                return None
            kept += [str(found)] if not depth else []
        elif not depth and is_integer(token):
            kept.append(token)
    return None if depth else tuple(kept)


def _near(source: Tokens, state: Tokens, edits: int) -> bool:
    from Levenshtein import distance  # takes a while to import

    return bool(distance(source, state, score_cutoff=edits) <= edits)
