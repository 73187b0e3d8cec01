"""The figures on the page about text are those that the commands wrote."""

import json
from pathlib import Path

import pytest

from trainer.report.collect import collect

CARDS = Path(__file__).parents[3] / "cards"
RESULTS = CARDS / "results" / "text"
PAGE = (CARDS / "text.md").read_text()


def read(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def shares(scores):
    return f"{scores['precision']:.2f} | {scores['recall']:.2f} | {scores['f0.5']:.2f}"


def the_run():
    (cell,) = collect(RESULTS / "results.json").records
    return cell


def test_the_baseline_is_what_was_measured():
    found = read("baselines")
    assert found["unchanged"]["f0.5"] == 0 and found["unchanged"]["sentences"] == 4384
    line = f"| the most frequent correction of a word behind its left neighbour | {shares(found['frequent'])} | |"
    assert line in PAGE


def test_the_editor_is_what_was_measured_and_ahead_of_the_baseline():
    found, minutes = read("editor"), the_run().cpu_seconds / 60
    assert f"| the editor, from scratch | {shares(found)} | {minutes:.1f} |" in PAGE
    assert found["f0.5"] > read("baselines")["frequent"]["f0.5"] and found["edits_per_round"] == 1
    assert found["sentences"] == read("baselines")["frequent"]["sentences"]


@pytest.mark.parametrize("kind", ["insert", "replace", "delete"])
def test_kinds_of_edits_are_what_was_measured(kind):
    assert f"| {kind} | {shares(read('editor')['kinds'][kind])} |" in PAGE


def test_the_how_to_says_the_same():
    ours, baseline = read("editor")["f0.5"], read("baselines")["frequent"]["f0.5"]
    page = (CARDS / "howto" / "own-text.md").read_text()
    assert f"F0.5 {ours:.2f} on W&I, where the most frequent corrections have {baseline:.2f}" in page


@pytest.mark.parametrize("edits", [1, 2, 4, 8])
def test_edits_a_round_are_what_was_measured(edits):
    found = read(f"edits-{edits}")
    assert found["edits_per_round"] == edits and found["split"] == "validation"
    assert f"| {edits} | {shares(found['edits'])} | {found['pairs'] / found['cpu_seconds']:.0f} |" in PAGE
