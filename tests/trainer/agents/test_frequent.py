"""The baseline of most frequent corrections."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.cli.test_commands import call, refuse
from tests.trainer.reference import write_dataset
from trainer.agents.frequent import Frequent, outcomes

words = st.lists(st.sampled_from("abc"), max_size=5).map(tuple)


def pair(source, target):
    return source.split(), target.split()


def test_the_most_frequent_outcome_is_written():
    learned = Frequent.learn(
        [
            pair("he go home", "he goes home"),
            pair("he go out", "he goes out"),
            pair("he go on", "he went on"),
            pair("they go home", "they go home"),
            pair("we go home", "we goes home"),
            pair("we go home", "we go home"),  # a tie: unchanged wins
        ]
    )
    source, target = pair("he go and they go and we go", "he goes and they go and we go")
    assert learned.edit(source) == tuple(target)
    assert learned.edit(["go"]) == ("go",)  # never seen at the beginning


@pytest.mark.parametrize(
    "source,target",
    [
        ("a cat sat", "the cat sat"),
        ("cat sat", "the cat sat"),
        ("a a b", "a b"),
        ("x y z", "q"),
        ("a", "a b c"),
        ("", "b"),
    ],
)
def test_what_training_did_is_done_again(source, target):
    source, target = pair(source, target)
    assert Frequent.learn([(source, target)]).edit(source) == tuple(target)


@given(words, words)
def test_the_outcomes_of_all_words_make_the_target(source, target):
    found = list(outcomes(source, target))
    assert len(found) == len(source) + 1
    written = [word for place, new in found for word in ((place[1],) if new is None else new)]
    assert tuple(word for word in written if word != " end") == target


@given(st.lists(st.tuples(words, words), max_size=5))
def test_the_order_of_training_changes_nothing(pairs):
    assert Frequent.learn(pairs) == Frequent.learn(pairs[::-1])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    pairs = [(("he", "go", name), ("he", "goes", name)) for name in ("home", "out")]
    splits = {"train": pairs, "validation": pairs, "test": [*pairs, (("x", "y"), ("x", "z"))]}
    return write_dataset(tmp_path_factory.mktemp("text") / "data", "edit", splits, arithmetic=False)


def test_the_command(data, tmp_path):
    found = json.loads(call("baselines", data, "--json").stdout)
    assert found["unchanged"]["recall"] == 0 and found["unchanged"]["gold"] == 3
    assert (found["frequent"]["precision"], found["frequent"]["correct"]) == (100.0, 2)
    (tmp_path / "dev.m2").write_text("S he go there\nA 1 2|||R:VERB|||goes|||REQUIRED|||-NONE-|||0\n")
    shown = call("baselines", data, "--m2", tmp_path / "dev.m2").stdout.splitlines()
    assert shown[1].split() == ["unchanged", "100.00", "0.00", "0.00", "0", "0", "1"]
    assert shown[2].split() == ["frequent", "100.00", "100.00", "100.00", "1", "1", "1"]
    assert "--m2 cannot be combined with --split" in refuse(
        "baselines", data, "--m2", tmp_path / "dev.m2", "--split", "test"
    )


def test_equations_are_refused(insert):
    assert "these baselines correct text" in refuse("baselines", insert)
