from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegen.arithmetic import candidates as sampling
from aegen.arithmetic import pruning as tiles
from aegen.arithmetic.candidates import Equations, Order, Space
from aegen.arithmetic.equation import OPERATORS
from aegen.arithmetic.permutation import Permutation
from aegen.core.randomness import Draws, below, derive_key, keyed_hash, picked, subsets
from tests import oracle
from tests.aegen.statistics import same_distribution


def numbers(equations: Equations) -> list[int]:
    """The number of each left side: no two have the same."""
    return (equations.prefix * equations.space.suffixes + equations.suffix).tolist()


@given(st.integers(0, 2**64 - 1), st.integers(1, 60), st.integers(1, 60))
def test_a_permutation_visits_everything_once(key, a, b):
    left, right = Permutation(key, a, b)(np.arange(a * b))
    assert sorted((left * b + right).tolist()) == list(range(a * b))


def test_tables_change_nothing(monkeypatch):
    positions = np.arange(0, 760 * 1600, 1009)
    fast = Permutation(7, 760, 1600)(positions)
    monkeypatch.setattr(sampling, "TABLE", 0)
    slow = Permutation(7, 760, 1600)(positions)
    assert all((x == y).all() for x, y in zip(fast, slow, strict=True))


@pytest.mark.parametrize("n,l", [(1500, 6), (20_000, 4), (100_000, 4), (10**6, 3)])
def test_large_spaces_do_not_wrap(n, l):
    space = Space(n, l)
    assert 2**40 < space.candidates < 2**63
    order = Order(n, l, derive_key("large"))
    positions = np.concatenate([np.arange(5000), space.candidates - 1 - np.arange(5000)])
    left, right = order.permutation(positions)
    assert ((left >= 0) & (left < space.prefixes) & (right >= 0) & (right < space.suffixes)).all()
    assert len(set(zip(left.tolist(), right.tolist(), strict=True))) == len(positions)
    for half, size in ((left, space.prefixes), (right, space.suffixes)):
        assert same_distribution((half * 10 // size).tolist(), [i % 10 for i in range(len(half))])  # all of the range


@given(st.integers(2, 40), st.integers(3, 6), st.data())
def test_decode_is_the_inverse_of_encode(n, l, data):
    space = Space(n, l)
    numbers = np.array(
        data.draw(st.lists(st.integers(0, space.candidates - 1), min_size=1, max_size=20)), dtype=np.int64
    )
    prefix, suffix = np.divmod(numbers, space.suffixes)
    first, operators, operands = space.decode(prefix, suffix)
    assert space.encode(first, operators, operands).tolist() == numbers.tolist()
    assert set(np.abs(first).tolist()) <= set(range(2, n + 2)) and (first >= -n).all()


@pytest.mark.parametrize("n,l", [(2, 3), (3, 3), (2, 4), (4, 4), (3, 5)])
def test_listing_finds_exactly_the_valid_equations(n, l):
    space = Space(n, l)
    everything = np.arange(space.candidates)
    first, operators, operands = space.decode(*np.divmod(everything, space.suffixes))
    values = [
        oracle.evaluate(int(a), [(OPERATORS[o], int(b)) for o, b in zip(ops, ints, strict=True)])
        for a, ops, ints in zip(first, operators, operands, strict=True)
    ]
    wanted = {i: v for i, v in enumerate(values) if v.denominator == 1 and 2 <= v <= n + 1}
    *halves, rights = space.listed
    numbers = np.array(halves[0]) * space.suffixes + halves[1]
    assert dict(zip(numbers.tolist(), map(Fraction, rights.tolist()), strict=True)) == wanted


@pytest.mark.parametrize("runs,table", [(1, 1 << 20), (7, 1 << 20), (100, 1 << 20), (640, 1 << 20), (640, 0)])
@pytest.mark.parametrize("n,l", [(2, 3), (7, 4), (4, 5), (2, 7)])
def test_scanning_a_space_finds_what_listing_finds(n, l, runs, table, monkeypatch):
    """However the tiles are cut, and without tiles: every equation once, with its right-hand side."""
    listed = Order(n, l, 1)
    monkeypatch.setattr(sampling, "ENUMERABLE", 0)
    monkeypatch.setattr(sampling, "TABLE", table)
    monkeypatch.setattr(tiles, "RUNS", runs)
    scanned = Order(n, l, 1)
    assert listed.listed is not None and scanned.listed is None and (scanned.tiles is not None) == bool(table)

    def found(order):
        _, equations = order.equations(0, order.size)
        return sorted(zip(numbers(equations), equations.right.tolist(), strict=True))

    assert found(scanned) == found(listed)


def test_tiles_leave_little_to_try():
    order = Order(100, 5, 1)
    assert len(order.equations(0, 50_000)[0]) > 0.3 * 50_000
    assert order.size < 0.15 * order.space.candidates


def test_tiles_of_a_large_space_hold_every_equation():
    """Of equations found without tiles, none lies in a tile that is left out."""
    space = Space(100, 5)
    prefix, suffix = np.divmod(np.random.default_rng(3).integers(0, space.candidates, 300_000), space.suffixes)
    hits, _ = space.valid(prefix, suffix)
    there = set(
        zip(
            (space.tiles.first_row // space.tiles.prefixes.length).tolist(),
            (space.tiles.first_column // space.tiles.suffixes.length).tolist(),
            strict=True,
        )
    )
    place = [
        np.argsort(runs.order[: runs.count]) // runs.length for runs in (space.tiles.prefixes, space.tiles.suffixes)
    ]
    wanted = set(zip(place[0][prefix[hits]].tolist(), place[1][suffix[hits]].tolist(), strict=True))
    assert len(hits) > 10_000 and wanted <= there


@pytest.mark.parametrize("n,rate", [(10, 0.068), (100, 0.046)])
def test_acceptance_rates(n, rate):
    space = Space(n, 5)
    rng = np.random.default_rng(5)
    candidates = rng.integers(0, space.candidates, 400_000)
    hits, _ = space.valid(*np.divmod(candidates, space.suffixes))
    assert len(hits) / len(candidates) == pytest.approx(rate, abs=0.002)


def test_block_boundaries_change_nothing():
    order = Order(100, 5, 3)
    whole = order.equations(1000, 90_000)[0]
    parts = np.concatenate([order.equations(a, b)[0] for a, b in ((1000, 1001), (1001, 40_000), (40_000, 90_000))])
    assert whole.tolist() == parts.tolist()


def test_draws_depend_on_key_position_and_number_alone():
    positions = np.array([5, 17, 2**40])
    draws = Draws(9, positions)
    assert draws.words(3).tolist() == [int(Draws(9, positions[[i]]).words(3)[0]) for i in range(3)]
    assert draws.words(3).tolist() != draws.words(4).tolist() != draws.fork("x").words(4).tolist()


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 100])
def test_below_is_uniform(bound):
    drawn = below(keyed_hash(3, np.arange(40_000)), bound)
    assert same_distribution(drawn.tolist(), [i % bound for i in range(40_000)])


@pytest.mark.parametrize("size", [1, 4, 5])
def test_every_subset_is_picked_equally_often(size):
    rows = 40_000
    counts = np.arange(rows) % (size + 1)
    row, place = picked(Draws(1, np.arange(rows)), counts, np.full(rows, size))
    found = [set() for _ in range(rows)]
    for r, p in zip(row.tolist(), place.tolist(), strict=True):
        found[r].add(p)
    assert [len(places) for places in found] == counts.tolist()
    for count in range(size + 1):
        subsets = [frozenset(places) for places in combinations(range(size), count)]
        drawn = [frozenset(places) for places, wanted in zip(found, counts, strict=True) if wanted == count]
        assert same_distribution(drawn, [subsets[i % len(subsets)] for i in range(len(drawn))])


@pytest.mark.parametrize("most,size", [(0, 4), (3, 9), (3, 8), (5, 5)])
def test_the_list_of_subsets_weighs_counts_and_subsets_equally(most, size):
    found = Counter(subsets(most, size))
    wanted = {places for count in range(most + 1) for places in combinations(range(size), count)}
    assert set(found) == wanted
    for count in range(most + 1):
        weights = [weight for places, weight in found.items() if len(places) == count]
        assert len(set(weights)) == 1 and sum(weights) * (most + 1) == found.total()


def test_a_long_list_of_subsets_is_not_made():
    assert subsets(20, 40) is None


def test_digits_are_uniform_and_independent():
    """Also where the bounds take more than one word."""
    bounds = [7, 1000, 6, 1 << 20, 5, 3]
    digits = Draws(5, np.arange(60_000)).digits(bounds)
    for digit, bound in zip(digits, bounds, strict=True):
        assert same_distribution(
            (digit * 9 // bound).tolist(), [i * bound // 60_000 * 9 // bound for i in range(60_000)]
        )
    joint = zip(digits[0].tolist(), digits[2].tolist(), digits[5].tolist(), strict=True)
    assert same_distribution(list(joint), [(i % 7, i // 7 % 6, i // 42 % 3) for i in range(60_000 - 60_000 % 126)])


@settings(max_examples=20)
@given(st.integers(0, 2**62))
def test_neighbouring_seeds_share_no_more_than_chance(seed):
    """Two orders of the same list agree at a place with probability 1 / size."""
    first, second = (Order(4, 4, derive_key("order", s)) for s in (seed, seed + 1))
    left, right = (numbers(o.equations(0, o.size)[1]) for o in (first, second))
    assert sum(a == b for a, b in zip(left, right, strict=True)) <= 12
