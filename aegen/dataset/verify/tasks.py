"""Generated pairs: every target is an equation of the spec, every source one of its target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegen.arithmetic.candidates import Space
from aegen.arithmetic.equation import DIVIDE, EQUALS, OPERATORS, fold, integer_type, is_integer, value
from aegen.arithmetic.vocabulary import EQUALS_ID, FIRST_INTEGER_ID, SYMBOLS, arithmetic_vocabulary, integers_of
from aegen.columns.ragged import intern
from aegen.core.errors import BadData
from aegen.core.types import Integers
from aegen.dataset.verify.counted import Place
from aegen.pairs.spec import Spec


def equation_numbers(texts: pa.StringArray, spec: Spec) -> Integers:
    """The number of each equation in its space; -1 for a text that is no true equation of this N and L."""
    space, kind = Space(spec.n, spec.l), integer_type(spec.n, spec.l)
    longest = 2 * spec.l * (len(str(spec.n + 1)) + 1)  # bytes; more is no equation, and would take many more once split
    fitting = pc.if_else(pc.less_equal(pc.binary_length(texts), longest), texts, "")
    ragged, _ = intern(fitting, arithmetic_vocabulary(spec.n).to_pylist())
    numbers = np.full(len(texts), -1, dtype=np.int64)
    for signed in (False, True):
        (rows,) = np.nonzero(ragged.lengths == 2 * spec.l - 1 + signed)
        cells = ragged.values[ragged.offsets[rows][:, None] + np.arange(2 * spec.l - 1 + signed)]
        body = cells[:, 1:] if signed else cells
        integers, operators = body[:, 0::2], body[:, 1:-1:2]
        good = (integers >= FIRST_INTEGER_ID).all(axis=1) & (integers < FIRST_INTEGER_ID + spec.n).all(axis=1)
        good &= (operators[:, :-1] < 4).all(axis=1) & (operators[:, -1] == EQUALS_ID)
        if signed:
            good &= (cells[:, 0] == SYMBOLS.index("-")) & (integers_of(integers[:, 0]) <= spec.n)
        rows, values = rows[good], integers_of(integers[good]).astype(kind)
        first, operators = (-values[:, 0] if signed else values[:, 0]), operators[good, :-1]
        total, term, denominator = fold(np.zeros_like(first), first, np.ones_like(first), operators, values[:, 1:-1])
        true = total + term == values[:, -1] * denominator
        numbers[rows[true]] = space.encode(first, operators, values[:, 1:-1])[true]
    return numbers


def check_task_sources(path: Place, first: int, batch: pa.RecordBatch, spec: Spec) -> None:
    from Levenshtein import distance

    checks: dict[str, Callable[[list[str], list[str]], bool]] = {
        "aor": _is_aor_source,
        "aes": partial(_is_aes_source, spec),
        "aec": partial(_is_aec_source, spec, distance),
    }
    check = checks[spec.task]
    for row, (source, target) in enumerate(
        zip(*(batch.column(c).to_pylist() for c in ("source", "target")), strict=True)
    ):
        if not check(source.split(" "), target.split(" ")):
            raise BadData(f"{path}: row {first + row}: {source!r} is not an {spec.task} source of {target!r}")


def _is_aor_source(source: list[str], target: list[str]) -> bool:
    return source == [token for token in target if is_integer(token)]


def _is_aes_source(spec: Spec, source: list[str], target: list[str]) -> bool:
    """The target, but for integers written as ``( a o b )`` or ``( - a o b )``."""
    simplified: list[str] = []
    operators = OPERATORS if spec.division else OPERATORS[:DIVIDE]
    while "(" in source and ")" in source:
        start, stop = source.index("("), source.index(")")
        match inside := source[start + 1 : stop]:
            case [a, operator, b] | ["-", a, operator, b] if operator in operators:
                if not (_is_operand(a, spec.n) and _is_operand(b, spec.n)):
                    return False
            case _:
                return False
        simplified += [*source[:start], str(value(inside))]
        source = source[stop + 1 :]
    return simplified + source == target


def _is_aec_source(
    spec: Spec, distance: Callable[[list[str], list[str]], int], source: list[str], target: list[str]
) -> bool:
    """At most so many mistakes, none at the last token, and no new token but operators and integers."""
    if source == target:
        return True
    if not source or source[-1] != target[-1] or source.count(EQUALS) > 1:
        return False
    return distance(source[:-1], target[:-1]) <= spec.errors and all(_is_token(token, spec.n) for token in source)


def _is_token(token: str, n: int) -> bool:
    return token in (*OPERATORS, EQUALS) or _is_operand(token, n)


def _is_operand(token: str, n: int) -> bool:
    """Whether a token is an integer in 2 … N+1."""
    fits = is_integer(token) and not token.startswith("0") and len(token) <= len(str(n + 1))
    return fits and 2 <= int(token) <= n + 1
