"""The benchmarks' definition once more, one row at a time, in the plainest Python: what the fast code is held against.

Nothing here is shared with ``aegen``; the evaluation uses ``fractions`` and ordinary precedence.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import lru_cache

OPERATORS = "+-*/"


def evaluate(first: int, rest: list[tuple[str, int]]) -> Fraction:
    """Terms are products and quotients, left to right; then they are summed."""
    terms = [Fraction(first)]
    for operator, operand in rest:
        if operator == "*":
            terms[-1] *= operand
        elif operator == "/":
            terms[-1] /= operand
        else:
            terms.append(Fraction(operand if operator == "+" else -operand))
    return sum(terms, Fraction(0))


def left_side(n: int, l: int, rng: random.Random) -> tuple[int, list[tuple[str, int]]]:
    first = rng.choice([*range(-n, -1), *range(2, n + 2)])
    return first, [(rng.choice(OPERATORS), rng.randint(2, n + 1)) for _ in range(l - 2)]


def equations(n: int, l: int, d: int, rng: random.Random) -> tuple[list[list[str]], int]:
    """d unique equations as tokens, and how many candidates it took."""
    seen, found, tried = set(), [], 0
    while len(found) < d:
        first, rest = left_side(n, l, rng)
        tried += 1
        value = evaluate(first, rest)
        if value.denominator != 1 or not 2 <= value <= n + 1:
            continue
        tokens = ["-", str(-first)] if first < 0 else [str(first)]
        for operator, operand in rest:
            tokens += [operator, str(operand)]
        if tuple(tokens) in seen:
            continue
        seen.add(tuple(tokens))
        found.append([*tokens, "=", str(value)])
    return found, tried


def aor_source(target: list[str]) -> list[str]:
    return [token for token in target if token.isdigit()]


@lru_cache(maxsize=4)
def expressions(n: int, division: bool = False) -> dict[int, list[list[str]]]:
    """All ``( a o b )`` by value."""
    table: dict[int, list[list[str]]] = {}
    for a in [*range(-n, -1), *range(2, n + 2)]:
        for b in range(2, n + 2):
            for operator, value in (("+", a + b), ("-", a - b), ("*", a * b), ("/", Fraction(a, b))):
                if (operator != "/" or division) and Fraction(value).denominator == 1 and 2 <= value <= n + 1:
                    first = ["-", str(-a)] if a < 0 else [str(a)]
                    table.setdefault(int(value), []).append(["(", *first, operator, str(b), ")"])
    return table


def aes_source(target: list[str], table: dict[int, list[list[str]]], rng: random.Random) -> list[str]:
    places = [index for index, token in enumerate(target) if token.isdigit()]
    chosen = set(rng.sample(places, rng.randint(0, len(places))))
    source: list[str] = []
    for index, token in enumerate(target):
        source += rng.choice(table[int(token)]) if index in chosen and int(token) in table else [token]
    return source


def aec_source(target: list[str], n: int, errors: int, rng: random.Random) -> list[str]:
    chosen = set(rng.sample(range(len(target) - 1), rng.randint(0, errors)))
    tokens = [*OPERATORS, *map(str, range(2, n + 2))]
    source: list[str] = []
    for index, token in enumerate(target):
        kind = rng.choice(["delete", "insert", "substitute"]) if index in chosen else "keep"
        if kind in ("insert", "substitute"):
            source.append(rng.choice(tokens))
        if kind in ("insert", "keep"):
            source.append(token)
    return source


def pairs(task: str, n: int, l: int, d: int, seed: int, errors: int = 3) -> list[tuple[str, str]]:
    """d pairs (source, target) as text."""
    rng = random.Random(seed)
    table = expressions(n) if task == "aes" else {}
    made = []
    for target in equations(n, l, d, rng)[0]:
        if task == "aor":
            source = aor_source(target)
        elif task == "aes":
            source = aes_source(target, table, rng)
        else:
            source = aec_source(target, n, errors, rng)
        made.append((" ".join(source), " ".join(target)))
    return made
