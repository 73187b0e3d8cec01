from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegen.columns.arrow import of_texts
from aegen.columns.ragged import Ragged, intern
from aegen.core.edits import Splice, replay
from aegen.core.errors import InvalidEdit, InvalidSpec
from aegen.experts.custom import Custom
from aegen.experts.metrics import METRICS, character, load_metric, to_strings
from tests.aegen.strategies import LCS, LEVENSHTEIN, pairs, sequences


def distance(source, goal, replacement):
    """Edit distance by the textbook, with a price for replacing."""
    row = list(range(len(goal) + 1))
    for i, left in enumerate(source, start=1):
        above, row = row, [i]
        for j, right in enumerate(goal, start=1):
            change = above[j - 1] + (0 if left == right else replacement)
            row.append(min(above[j] + 1, row[j - 1] + 1, change))
    return row[-1]


@pytest.mark.parametrize("metric,replacement", [(LEVENSHTEIN, 1), (LCS, 2)], ids=["levenshtein", "lcs"])
@given(pairs)
def test_scripts_are_minimal_and_reach_the_goal(metric, replacement, pair):
    found = metric.splices(*pair)
    assert replay(pair[0], found) == pair[1]
    assert len(found) == distance(*pair, replacement)
    assert all(a.start + len(a.new) <= b.start for a, b in pairwise(found))
    if metric is LCS:
        assert all(len(edit.new) + edit.stop - edit.start == 1 for edit in found)


def columns(many):
    texts = of_texts([" ".join(side) for pair in many for side in pair])
    both, alphabet = intern(texts)
    index = np.arange(len(many))
    return both.rows(2 * index), both.rows(2 * index + 1), alphabet


def as_splices(scripts, many):
    made = []
    for k, (_, goal) in enumerate(many):
        edits = zip(
            *(column[scripts.offsets[k] : scripts.offsets[k + 1]].tolist() for column in scripts.edits), strict=True
        )
        made.append([Splice(c, c + b - a, goal[c:d]) for a, b, c, d in edits])
    return made


@pytest.mark.parametrize("metric", [LEVENSHTEIN, LCS], ids=["levenshtein", "lcs"])
@given(st.lists(pairs, min_size=1, max_size=8))
def test_columns_are_the_same_as_one_by_one(metric, many):
    wanted = [metric.splices(*pair) for pair in many]
    states, goals, alphabet = columns(many)
    assert as_splices(metric.scripts(states, goals, alphabet), many) == wanted


def test_more_than_a_batch_of_pairs():
    many = [(("a",) * (i % 7), ("b",) * (i % 5)) for i in range(700)]
    assert LEVENSHTEIN.scripts(*columns(many)).counts.tolist() == [max(i % 7, i % 5) for i in range(700)]


def test_long_texts():
    source = tuple(f"w{i % 13}" for i in range(400))
    goal = (*source[:200], "x", *source[201:])
    assert as_splices(LEVENSHTEIN.scripts(*columns([(source, goal)])), [(source, goal)]) == [[Splice(200, 201, ("x",))]]


def test_large_alphabets_pass_by_the_surrogates():
    count = 0xD800 + 3000
    strings = to_strings(Ragged(np.arange(count, dtype=np.int32), np.array([0, count])))
    assert strings == ["".join(map(character, range(count)))]
    assert len(set(strings[0])) == count and strings[0].encode()


def one_replacement(state, goal):
    """A metric that rewrites everything at once."""
    return [Splice(0, len(state), goal)] if state != goal else []


def backwards(state, goal):
    return [Splice(1, 1, ("x",)), Splice(0, 0, ("y",))]


def lost(state, goal):
    return [Splice(0, 0, ("lost",))]


def outside(state, goal):
    return [Splice(7, 9, ())]


def idle(state, goal):
    return [Splice(0, 0, ()), Splice(0, len(state), goal)]


@given(pairs)
def test_own_metric(pair):
    metric = load_metric("tests.aegen.experts.test_metrics:one_replacement")
    assert replay(pair[0], metric.splices(*pair)) == pair[1]


@pytest.mark.parametrize(
    "function,problem",
    [(backwards, "right of"), (lost, "end at 'lost a'"), (outside, "does not fit"), (idle, "changes nothing")],
)
def test_a_broken_metric_is_told_by_its_pair(function, problem):
    with pytest.raises(InvalidEdit, match=f"{problem}.*") as caught:
        Custom("mine", function, {}).splices(("a",), ("b",))
    assert "mine" in str(caught.value) and "'a'" in str(caught.value)


@pytest.mark.parametrize("name", ["nothing", "no.such.module:function", "aegen.core.edits:missing", "aegen.core.edits"])
def test_unknown_metrics(name):
    with pytest.raises(InvalidSpec, match="metric="):
        load_metric(name)


def test_an_entry_point_adds_a_metric(tmp_path, monkeypatch):
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[aegen.metrics]\nrewrite = tests.aegen.experts.test_metrics:one_replacement\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert load_metric("rewrite").splices(("a",), ("b", "c")) == [Splice(0, 1, ("b", "c"))]


def test_the_registry_builds_each_under_its_name():
    assert [load_metric(name).name for name in METRICS] == list(METRICS)
    assert set(LEVENSHTEIN.backend) == {"python-Levenshtein", "rapidfuzz"}


@given(sequences)
def test_nothing_to_do_is_no_edit(sequence):
    assert LEVENSHTEIN.splices(sequence, sequence) == []
