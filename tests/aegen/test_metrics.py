from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegen.edits import Splice, replay
from aegen.errors import InvalidEdit, InvalidSpec
from aegen.metrics import METRICS, Custom, character, interned, load_metric, splices, to_strings
from tests.aegen.strategies import LCS, LEVENSHTEIN, SPAN, pairs, sequences, spans


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
    found = splices(metric, *pair)
    assert replay(pair[0], found) == pair[1]
    assert len(found) == distance(*pair, replacement)
    assert all(a.start + len(a.new) <= b.start for a, b in pairwise(found))
    if metric is LCS:
        assert all(len(edit.new) + edit.stop - edit.start == 1 for edit in found)


@given(spans())
def test_span_reaches_the_goal_in_one_edit_a_parenthesis(pair):
    found = splices(SPAN, *pair)
    assert replay(pair[0], found) == pair[1]
    assert len(found) == pair[0].count("(")


@given(st.lists(pairs, max_size=6))
def test_many_pairs_at_once_are_the_same_as_one_by_one(many):
    for metric in (LEVENSHTEIN, LCS):
        scripts = metric.scripts(*interned(many))
        assert [scripts.splices(i, goal) for i, (_, goal) in enumerate(many)] == [
            splices(metric, *pair) for pair in many
        ]


def test_more_than_a_batch_of_pairs():
    many = [(("a",) * (i % 7), ("b",) * (i % 5)) for i in range(700)]
    scripts = LEVENSHTEIN.scripts(*interned(many))
    assert scripts.counts.tolist() == [max(i % 7, i % 5) for i in range(700)]


def test_large_alphabets_pass_by_the_surrogates():
    import numpy as np

    count = 0xD800 + 3000
    strings = to_strings(np.arange(count, dtype=np.int32), np.array([0, count]))
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


@given(pairs)
def test_own_metric(pair):
    metric = load_metric("tests.aegen.test_metrics:one_replacement")
    assert replay(pair[0], splices(metric, *pair)) == pair[1]


@pytest.mark.parametrize("function,problem", [(backwards, "right of"), (lost, "not 'b'"), (outside, "does not fit")])
def test_a_broken_metric_is_told_by_its_pair(function, problem):
    with pytest.raises(InvalidEdit, match=f"{problem}.*") as caught:
        splices(Custom("mine", function, {}), ("a",), ("b",))
    assert "mine" in str(caught.value) and "'a'" in str(caught.value)


def test_span_needs_parentheses_that_close():
    with pytest.raises(InvalidEdit, match="span"):
        splices(SPAN, ("(", "1"), ("1",))
    with pytest.raises(InvalidEdit, match="not '2'"):
        splices(SPAN, ("1",), ("2",))


@pytest.mark.parametrize("name", ["nothing", "no.such.module:function", "aegen.edits:missing", "aegen.edits"])
def test_unknown_metrics(name):
    with pytest.raises(InvalidSpec, match="metric="):
        load_metric(name)


def test_an_entry_point_adds_a_metric(tmp_path, monkeypatch):
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[aegen.metrics]\nrewrite = tests.aegen.test_metrics:one_replacement\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert splices(load_metric("rewrite"), ("a",), ("b", "c")) == [Splice(0, 1, ("b", "c"))]


def test_the_registry_builds_each_under_its_name():
    assert [load_metric(name).name for name in METRICS] == list(METRICS)
    assert set(LEVENSHTEIN.backend) == {"python-Levenshtein", "rapidfuzz"}


@given(sequences)
def test_nothing_to_do_is_no_edit(sequence):
    assert splices(LEVENSHTEIN, sequence, sequence) == []
