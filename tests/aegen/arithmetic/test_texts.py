from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegen.arithmetic import texts as pieces
from aegen.arithmetic.candidates import Order
from aegen.arithmetic.equation import OPERATORS
from aegen.arithmetic.texts import Pieces, Vocabulary, equation_cells
from aegen.arithmetic.vocabulary import FIRST_INTEGER_ID, arithmetic_vocabulary
from aegen.columns.ragged import ABSENT, Ragged

N = 120
TOKENS = FIRST_INTEGER_ID + N
MORE = np.array([[5, 7, 0, 126, 6], [5, 1, 90, 0, 6], [3, 99, ABSENT, ABSENT, ABSENT]])
VOCABULARY = Vocabulary.of(N, MORE)
ROWS = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.integers(ABSENT, TOKENS + len(MORE) - 1)] * (width - 1), st.integers(0, TOKENS + len(MORE) - 1)),
        max_size=8,
    ).map(lambda rows: np.array(rows, dtype=np.int16).reshape(len(rows), width))
)


def tokens_of(numbers: np.ndarray) -> list[list[int]]:
    """The tokens of each row, read off one piece at a time."""
    plain = [*([token] for token in range(TOKENS)), *([t for t in row if t != ABSENT] for row in MORE.tolist()), []]
    return [[token for number in row for token in plain[number]] for row in numbers.tolist()]


@given(ROWS)
def test_texts_are_the_tokens_joined_by_one_space(numbers):
    words = arithmetic_vocabulary(N).to_pylist()
    texts = Pieces(numbers, VOCABULARY).texts()
    texts.validate(full=True)
    assert texts.to_pylist() == [" ".join(words[token] for token in row) for row in tokens_of(numbers)]


@given(ROWS, st.integers(0, 2**64 - 1))
def test_hashes_depend_on_the_tokens_alone(numbers, key):
    """However the tokens are cut into pieces."""
    rows = tokens_of(numbers)
    width = max(map(len, rows), default=1)
    single = np.array([[ABSENT] * (width - len(row)) + row for row in rows], dtype=np.int16).reshape(len(rows), width)
    hashes = Pieces(numbers, VOCABULARY).hashes(key).tolist()
    assert hashes == Pieces(single, Vocabulary.of(N)).hashes(key).tolist()
    assert len(set(hashes)) == len({tuple(row) for row in rows})


@pytest.mark.parametrize("n,l", [(3, 3), (10, 5), (40_000, 3), (5, 8)])
@pytest.mark.parametrize("table", [0, 1 << 20])
def test_cells_are_the_equation(n, l, table, monkeypatch):
    monkeypatch.setattr(pieces, "TABLE", table)
    pieces._half_cells.cache_clear()
    _, found = Order(n, l, 5).equations(0, 3000)
    cells = equation_cells(found)
    pieces._half_cells.cache_clear()
    first, operators, operands = found.space.decode(found.prefix, found.suffix)
    wanted = [
        " ".join(
            [str(a).replace("-", "- "), *(f"{OPERATORS[o]} {b}" for o, b in zip(ops, ints, strict=True)), f"= {c}"]
        )
        for a, ops, ints, c in zip(*map(np.ndarray.tolist, (first, operators, operands, found.right)), strict=True)
    ]
    assert wanted and Pieces(cells, Vocabulary.of(n)).texts().to_pylist() == wanted
    assert Ragged.of_cells(cells).texts(arithmetic_vocabulary(n)).to_pylist() == wanted
