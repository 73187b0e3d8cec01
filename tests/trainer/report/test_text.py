"""The figures on the page about text are those that the commands wrote."""

import json
from pathlib import Path

import pytest

import aegen
from tests.symspell import measure
from trainer.report.collect import collect

CARDS = Path(__file__).parents[3] / "cards"
RESULTS, SPELLING = CARDS / "results" / "text", CARDS / "results" / "spelling"
PAGE = (CARDS / "text.md").read_text()


def read(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def shares(scores):
    return f"{scores['precision']:.2f} | {scores['recall']:.2f} | {scores['f0.5']:.2f}"


def minutes(model, label):
    """Of one core, training and test."""
    cells = collect(RESULTS / "results.json").records
    (cell,) = [cell for cell in cells if (cell.model, cell.label) == (model, label)]
    return f"{cell.cpu_seconds / 60:.1f}"


def test_the_baseline_is_what_was_measured():
    found = read("baselines")
    assert found["unchanged"]["f0.5"] == 0 and found["unchanged"]["sentences"] == 4384
    line = f"| the most frequent correction of a word, given the word before it | {shares(found['frequent'])} | |"
    assert line in PAGE


def test_the_editor_is_what_was_measured_and_ahead_of_the_baseline():
    found = read("editor")
    assert f"| the editor, from scratch | {shares(found)} | {minutes('editor', 'minutes')} |" in PAGE
    assert found["f0.5"] > read("baselines")["frequent"]["f0.5"] and found["edits_per_round"] == 1
    assert found["sentences"] == read("baselines")["frequent"]["sentences"]


@pytest.mark.parametrize("kind", ["insert", "replace", "delete"])
def test_kinds_of_edits_are_what_was_measured(kind):
    scratch, minilm = (shares(read(name)["kinds"][kind]) for name in ("editor", "editor-minilm"))
    assert f"| {kind} | {scratch} | {minilm} |" in PAGE


def test_pretrained_encoders_are_what_was_measured():
    found = read("editor-minilm")
    row = f"| the editor, with the same encoder | {shares(found)} | {minutes('editor', 'MiniLM')} |"
    assert row in PAGE and found["sentences"] == read("editor")["sentences"] and found["edits_per_round"] == 1
    assert found["f0.5"] > read("tagger-minilm")["f0.5"] > read("editor")["f0.5"] and "is ahead of the tagger" in PAGE


@pytest.mark.parametrize(
    ("name", "row", "label"),
    [("tagger", "from scratch", "minutes"), ("tagger-minilm", "with the pretrained encoder MiniLM", "MiniLM")],
)
def test_taggers_are_what_was_measured(name, row, label):
    found = read(name)
    assert f"| the tagger, {row} | {shares(found)} | {minutes('tagger', label)} |" in PAGE
    assert found["sentences"] == read("editor")["sentences"]


@pytest.mark.parametrize("name", ["editor", "editor-minilm"])
def test_several_edits_a_round_are_what_was_measured(name):
    found = read(f"{name}-8")
    assert found["edits_per_round"] == 8 and found["weights"] == read(name)["weights"]
    assert f"| the same, up to eight edits a round | {shares(found)} | |" in PAGE


def test_the_editor_on_equations_is_what_was_measured():
    cells = {cell.task: cell for cell in collect(RESULTS / "results.json").records}
    scores = (f"{cells[task].scores['equation']:.2f} on {task.upper()}" for task in ("aor", "aes", "aec"))
    assert "{}, {} and {}".format(*scores) in " ".join(PAGE.split())


def test_the_how_to_says_the_same():
    ours, baseline = read("editor")["f0.5"], read("baselines")["frequent"]["f0.5"]
    page = (CARDS / "howto" / "own-text.md").read_text()
    assert f"F0.5 {ours:.2f} on W&I, where the most frequent corrections have {baseline:.2f}" in page


@pytest.mark.parametrize("edits", [1, 2, 4, 8])
def test_edits_a_round_are_what_was_measured(edits):
    found = read(f"edits-{edits}")
    assert found["edits_per_round"] == edits and found["split"] == "validation"
    assert f"| {edits} | {shares(found['edits'])} | {found['pairs'] / found['cpu_seconds']:.0f} |" in PAGE


@pytest.mark.parametrize("model", ["editor", "planner", "ar-star"])
def test_spelling_is_what_was_measured(model):
    spelled = {cell.model: cell for cell in collect(SPELLING / "results.json").records}
    cell = spelled[model]
    assert f"| {cell.scores['sequence']:.2f} | {cell.scores['token']:.2f} | {cell.cpu_seconds / 60:.1f} |" in PAGE
    assert spelled["ar-star"].cpu_seconds >= spelled["planner"].cpu_seconds >= spelled["editor"].cpu_seconds


def test_the_dictionarys_way_is_what_was_measured():
    found = json.loads((SPELLING / "symspell.json").read_text())
    said = " ".join(PAGE.split())
    assert f"has {found['known']:.2f} % of the test's words, writes {found['right']:.2f} % of them" in said
    assert f"test split ({found['words']:,} words)" in said


def test_symspell_writes_what_its_list_has(tmp_path):
    pairs = [("recieve", "receive"), ("adress", "address"), ("zzqx", "zzqy"), ("becuase", "because")]
    aegen.import_pairs(pairs, out=tmp_path / "words", tokens="chars", ratio="0/0/100")
    assert measure(tmp_path / "words") == {"words": 4, "right": 75.0, "known": 75.0}
