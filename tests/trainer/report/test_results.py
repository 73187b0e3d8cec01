"""The figures on the pages are those that the commands wrote."""

import json
import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from tests.experiments import BEGIN, END, block
from trainer.report.collect import collect
from trainer.report.paper import MAIN

CARDS = Path(__file__).parents[3] / "cards"
TASKS = ("aor", "aes", "aec")


def page(name):
    return (CARDS / f"{name}.md").read_text()


def cells(name, **wanted):
    found = collect(CARDS / "results" / name / "results.json").records
    return [cell for cell in found if all(getattr(cell, key) == value for key, value in wanted.items())]


def summary(name, task):
    """Mean and spread of the planner's test scores over the seeds, and the minutes."""
    found = cells(name, task=task, model="planner", label="", split="test")
    assert len({cell.seed for cell in found}) == len(found) >= 3
    scores = [cell.scores["equation"] for cell in found]
    minutes = mean(cell.cpu_seconds for cell in found) / 60
    return f"{mean(scores):.2f} ± {stdev(scores):.2f} | {minutes:.1f}"


@pytest.mark.parametrize("task", TASKS)
def test_the_planners_table_is_what_was_measured(task):
    theirs, spread = MAIN["nar-star", True][task, "equation"]
    released, own = (summary(name, task) for name in ("practice", "planner"))
    assert f"| {task.upper()} | {theirs} ± {spread} | {released} | {own} |" in page("planner")
    assert f"| {task.upper()} | {theirs} ± {spread} | {released} |\n" in page("../README")


def test_the_demo_on_the_front_page_is_what_was_measured():
    (cell,) = cells("demo", task="aes")
    shown = page("../README").partition("## The demo")[2].partition("\n## ")[0]
    for name in ("token", "equation"):
        theirs, ours = MAIN["nar-star", True]["aes", name][0], cell.scores[name]
        assert re.search(rf"AES {name} +Planner \+ TA +{ours:.2f} .* {theirs:.2f} \(\+{ours - theirs:.2f}\)\n", shown)
    curve = re.findall(r"epoch (\d+) .* action acc. ([\d.]+) .* valid equation acc. ([\d.]+)", shown)
    assert len(curve) > 3
    for number, trained, right in curve:
        assert (float(trained), float(right)) == (cell.curve[int(number)].trained, cell.curve[int(number)].texts)
    before, after = (cells("demo", label=label)[0].scores["equation"] for label in ("l4", "l4 practised"))
    gain = rf"practised +{after:.2f} +before practice: {before:.2f} \(\+{after - before:.2f}\)\n"
    assert after > before and re.search(rf"AOR equation Planner \+ TA, l4 {gain}", shown)


def in_validation(task, label):
    """Validation accuracy of seed 0 with one ingredient less, or with all of them."""
    if label:
        found = cells("planner-ablations", task=task, label=label, split="validation", seed=0)
        return f"{found[0].scores['equation']:.2f}" if found else ""
    (cell,) = cells("practice", task=task, model="planner", label="", seed=0)
    return f"{max(epoch.texts for epoch in cell.curve if epoch.texts is not None):.2f}"


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ("the planner", ""),
        ("best place, then best token (`--beam 1`), not whole scripts", "greedy slots"),
        ("no masked tokens of goal states (`--auxiliary 0`)", "no masked goals"),
        ("the plan does not read the token network's confidence (`--no-confidence`)", "no confidence"),
        ("masks filled one by one, not one softmax over scripts (`--view opened`)", "no scripts"),
        ("demonstrations of TG alone, no TA (`--train-on expert`)", "no TA"),
    ],
)
def test_the_ablations_are_what_was_measured(words, label):
    line = " | ".join([words, *(in_validation(task, label) for task in TASKS)])
    assert f"| {line} |".replace("|  |", "| |").replace("|  |", "| |") in page("planner")


@pytest.mark.parametrize(
    ("name", "label", "before"),
    [
        ("AES, N = 50", "n50", "n50"),
        ("AES, N = 100", "n100", "n100"),
        ("AES, N = 200", "n200", "n200 whole tokens"),
        ("AOR, N = 20", "n20", "n20"),
        ("AEC, L = 7", "l7", None),  # of an earlier version
    ],
)
def test_other_sizes_are_what_was_measured(name, label, before):
    found = {one.label: one for one in cells("sizes", split="test", seed=0)}
    cell, was = found[label], f"{found[before].scores['equation']:.2f}" if before else "40.93"
    assert f"| {name} | {was} | {cell.scores['equation']:.2f} | {cell.cpu_seconds / 60:.1f} |" in page("planner")


def test_the_experiments_are_what_was_measured():
    """``python -m tests.experiments`` writes this part of the page."""
    assert BEGIN + block() + END in page("experiments")


def test_the_experiments_are_on_the_authors_files():
    """So are the planner's, with which they share a table."""
    found, ours = cells("main"), cells("practice", model="planner")
    assert {cell.preset for cell in found} == {"core-hours"} and {cell.split for cell in found} == {"test"}
    assert all("aegen import $" in cell.build and "RELEASED/" in cell.build for cell in found + ours)
    for task in TASKS:
        assert len({cell.data["pairs/test-00000-of-00001.parquet"] for cell in found + ours if cell.task == task}) == 1


@pytest.mark.parametrize("name", ["planner", "experiments", "practice"])
def test_links_of_the_pages_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)\)", page(name)):
        assert (CARDS / target).exists(), target


PRACTICE = ("", "practised", "practised with free sources")


def practice(task, model, label):
    """The mean of the seeds' test scores, with their spread if they are three, else with their number, and minutes."""
    found = cells("practice", task=task, model=model, label=label, split="test")
    scores = [cell.scores["equation"] for cell in found]
    spread = f" ± {stdev(scores):.2f}" if len(scores) == 3 else f" ({len(scores)})"
    return f"{mean(scores):.2f}{spread}", f"{mean(cell.cpu_seconds for cell in found) / 60:.1f}"


@pytest.mark.parametrize("task", TASKS)
def test_practice_is_what_was_measured(task):
    found = cells("practice", task=task, model="planner", split="test")
    assert {cell.label for cell in found} == {*PRACTICE} and {cell.seed for cell in found} == {0, 1, 2}
    assert all(cell.cpu_seconds < 15 * 60 for cell in found)
    theirs, spread = MAIN["nar-star", True][task, "equation"]
    before, pairs, free = (practice(task, "planner", label) for label in PRACTICE)
    line = " | ".join([task.upper(), f"{theirs} ± {spread}", before[0], *pairs, *free])
    assert f"| {line} |" in page("practice")


def test_the_papers_agent_gains_what_the_page_says():
    before, after = (practice("aor", "nar-star", label) for label in (PRACTICE[0], PRACTICE[2]))
    said = f"NAR\\* + TA on AOR goes from {before[0]} to {after[0]} in {after[1]} minutes"
    assert said.replace(" (1)", "") in " ".join(page("practice").split())


def test_accuracy_against_the_number_of_pairs_is_what_was_measured():
    found = {(cell.size["d"], cell.task, bool(cell.practice)): cell.scores["equation"] for cell in cells("amounts")}
    assert len(found) == len(cells("amounts")) and {cell.split for cell in cells("amounts")} == {"test"}
    for pairs in {pairs for pairs, *_ in found}:
        scores = (found.get((pairs, task, practised)) for task in TASKS for practised in (False, True))
        line = " | ".join("" if score is None else f"{score:.2f}" for score in scores)
        assert f"| {pairs:,} | {line} |".replace("|  |", "| |").replace("|  |", "| |") in page("practice")


def test_practice_on_the_front_page_is_what_was_measured():
    said = " ".join(page("../README").split())
    first, second, third = (practice("aor", "planner", label)[0].partition(" ")[0] for label in PRACTICE)
    assert f"goes from {first} to {second} on the same 7,000 pairs, and to {third} with 30,000" in said


def test_the_papers_agent_and_text_on_the_front_page_are_what_was_measured():
    said = " ".join(page("../README").split())
    found = [cells("main", task=task, model="nar-star", ta=True, seed=0, usual=True)[0] for task in TASKS]
    aor, aes, aec = (f"{cell.scores['equation']:.2f}" for cell in found)
    least, *_, most = sorted(cell.cpu_seconds / 60 for cell in found)
    words = f"comes to {aor} on AOR, {aes} on AES and {aec} on AEC in {least:.0f} to {most:.0f} minutes of one core"
    assert words in said
    (run,) = cells("text", model="editor", label="MiniLM")
    editor = json.loads((CARDS / "results" / "text" / "editor-minilm.json").read_text())
    assert f"{run.cpu_seconds / 60:.0f} minutes of one core" in said
    assert f"with an F0.5 of {editor['f0.5']:.2f} on the dev part" in said
