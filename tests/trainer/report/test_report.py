"""Reports: numbers from known runs, and the page as a person meets it, in a browser."""

import base64
import io
import json
import math
import re
import shutil
from contextlib import contextmanager
from html import unescape
from html.parser import HTMLParser
from itertools import permutations
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from PIL import Image

from tests.browser import Browser, find_browser
from tests.pages import ATTACK, check_inert, code_blocks
from tests.trainer.sweeps.files import write_file
from trainer.cli import main
from trainer.core.errors import BadData
from trainer.core.format import detokenize, split_state, visible
from trainer.game.outcomes import FAILURES, failure
from trainer.report.collect import check_comparable, collect
from trainer.report.figures import amounts, comparable, curves
from trainer.report.headline import headlines, subjects
from trainer.report.notes import summary
from trainer.report.tables import Entry, orders, tables
from trainer.report.write import report
from trainer.sweeps.cell import CellJob, run_cell
from trainer.sweeps.grid import read_sweep


@pytest.fixture(scope="module")
def runs(datasets, tmp_path_factory):
    """A real grid: AR* and NAR*, two seeds, on a small AOR."""
    place = tmp_path_factory.mktemp("grid")
    changes = {'models = ["ar", "nar-star"]': 'models = ["ar-star", "nar-star"]', "[true]": "[false]"}
    sweep = read_sweep(write_file(place, datasets["insert"], 40, **changes))
    for cell in sweep.cells:
        run_cell(CellJob(cell, str(sweep.out), threads=1, device="cpu", verbose=False))
    return sweep.out


@pytest.fixture(scope="module")
def made(runs, tmp_path_factory):
    """The report of that grid."""
    out = tmp_path_factory.mktemp("report")
    report(runs, out)
    return out


def measured(runs, model, key):
    """What the evaluations of a model say, read from its run folders alone."""
    found = sorted(runs.glob(f"aor/{model}/seed-*/evaluation-test.json"))
    return [json.loads(path.read_text())[f"{key}_accuracy"] for path in found]


def row_of(page, name, heading="\n## Main table"):
    """The cells of one row of the main table in Markdown: of what was run, or of the paper's whole table."""
    table = page.split(heading)[1].split("##")[0]
    lines = [line for line in table.splitlines() if line.startswith(f"| {name} |")]
    assert len(lines) == 1
    return [cell.strip() for cell in lines[0].split("|")[1:-1]]


def test_mean_and_spread_are_those_of_the_runs(runs, made):
    page = (made / "report.md").read_text()
    for model, name in (("ar-star", r"AR\*"), ("nar-star", r"NAR\*")):
        for column, key in enumerate(("token", "sequence", "equation"), start=1):
            a, b = measured(runs, model, key)
            mean, spread = (a + b) / 2, abs(a - b) / math.sqrt(2)  # the sample deviation of two
            assert f"{mean:.2f} ± {spread:.2f}" in row_of(page, name)[column]
    whole = "### All of: Main table"
    assert row_of(page, "NAR", whole)[1:4] == [
        "(59.72 ± 0.70)",
        "(24.16 ± 1.16)",
        "(51.64 ± 1.97)",
    ]  # not run: the paper's alone
    assert row_of(page, "End2end", whole)[1] == ""
    assert row_of(page, r"NAR\*", whole)[1:4] == row_of(page, r"NAR\*")[1:]


def test_a_report_leads_with_the_best_result_and_what_was_run(known, tmp_path):
    written("planner+ta/0", "planner", True, 0, {"equation": 85.0, "token": 90.0}, known, train_seconds=90.0)
    report(known, tmp_path / "out", timed=False)
    page = (tmp_path / "out/report.md").read_text()
    head, _, rest = page.partition("## Main table")
    best = r"**AOR, Planner + TA: 85.00 % equations right**; paper's best, NAR\* + TA: 67.13 (+17.87)"
    assert f"- {best}; 1.5 minutes of training, 1 seed, test split" in head
    table = [line for line in rest.split("##")[0].splitlines() if line.startswith("|")]
    assert sorted(line.split("|")[1].strip() for line in table[2:]) == [
        r"AR\*", "Best in the paper", "NAR", r"NAR\*", r"NAR\* + TA", "Planner + TA",
    ]  # fmt: skip
    assert table[0] == "| Method | AOR Tok. | AOR Eq. |" and table[-1].endswith("| (67.13 ± 0.99) |")
    html = (tmp_path / "out/report.html").read_text()
    assert html.index("85.00 %") < html.index('id="table-main"') < html.index('id="table-main-all"')
    assert html.index("<details", html.index('id="paper"')) < html.index('id="table-decoders-all"')
    assert 'id="table-designs"' not in html and 'id="table-designs-all"' in html  # nothing of it was run


def test_own_texts_come_first_where_they_are_the_subject(known, tmp_path):
    own = tmp_path / "own"
    theirs = collect(known).records
    for seed in range(9):
        written(f"text/{seed}", "planner", True, seed, {"token": 90.0, "sequence": 60.0 + seed}, own, "text")
    records = collect(own).records
    assert subjects(theirs + records[:1]) == ["aor", "text"]
    assert subjects(theirs + records) == ["text", "aor"]
    (only,) = headlines(records)
    assert (only.measure, only.rival, only.score.mean, only.beside) == ("sequence", None, 64.0, "")
    report(own, tmp_path / "out", timed=False)
    page = (tmp_path / "out/report.md").read_text()
    assert page.index("**TEXT, Planner") < page.index("## Own texts, test split") < page.index("### All of: Main table")
    assert "\n## Main table" not in page


def test_a_headline_is_honest_about_data_of_another_size(tmp_path):
    written("a", "ar", False, 0, {"equation": 99.0}, tmp_path, size={"n": 10, "l": 5, "d": 200})
    (found,) = headlines(collect(tmp_path).records)
    theirs = "with N = 10, L = 5, D = 10,000"
    assert found.beside == f"paper's best, NAR* + TA: 67.13 {theirs}; here N = 10, L = 5, D = 200"
    assert found.difference is None
    (tmp_path / "a" / "cell.json").unlink()
    written("b", "ar", False, 0, {"equation": 99.0}, tmp_path, split="validation")
    (found,) = headlines(collect(tmp_path).records)
    assert found.rival is None and found.cost.endswith("validation split")  # the paper's figures are of the test split


def written(name, model, ta, seed, scores, folder, task="aor", **more):
    """A cell as a sweep leaves it, with figures of our choice."""
    cell = folder / name
    cell.mkdir(parents=True)
    record = {
        "format": 2, "task": task, "metric": "", "design": "", "model": model, "ta": ta, "seed": seed, "preset": "cpu",
        "epochs": 2,
        "commands": [f"trainer fit {name}"], "build": "", "parameters": 1000, "updates": 10, "best_epoch": 1,
        "finished": "updates", "train_seconds": 1.0, "seconds": 2.0, "cpu_seconds": 2.0, "device": "cpu", "threads": 1,
        "data": {"expert/train": "0" * 64, "pairs/test": "1" * 64}, "max_steps": 6, "scores": scores, "games": 4,
    }  # fmt: skip
    (cell / "cell.json").write_text(json.dumps(record | more))
    return cell


@pytest.fixture
def known(tmp_path):
    """Runs with known figures."""
    for seed, equation in enumerate((60.0, 62.0, 64.0)):
        written(f"nar-star/{seed}", "nar-star", False, seed, {"equation": equation, "token": 50.0}, tmp_path)
    written("ar-star/0", "ar-star", False, 0, {"equation": 61.0}, tmp_path)
    written("nar/0", "nar", False, 0, {"equation": 65.0}, tmp_path)
    written("nar-star+ta/0", "nar-star", True, 0, {"equation": 66.0}, tmp_path)
    return tmp_path


def test_known_runs_give_known_figures(known):
    main_table = tables(collect(known).records)[0]
    cells = {row.head[0]: row.cells["aor", "equation"] for row in main_table.rows}
    ours = cells["NAR*"]
    assert (ours.mean, ours.std, ours.theirs) == (62.0, 2.0, (61.45, 1.61))
    assert ours.difference == pytest.approx(0.55)
    assert cells["AR*"].std is None and cells["AR"] == Entry((), (59.09, 0.95))
    assert [name for name, cell in cells.items() if cell.best] == ["NAR"]
    assert [name for name, cell in cells.items() if cell.best_of_all] == ["NAR* + TA"]
    assert sum(any(entry.values for entry in row.cells.values()) for row in main_table.rows) == 4


def test_cells_of_our_own_stand_beside_the_papers(known):
    written("planner+ta/0", "planner", True, 0, {"equation": 85.0, "sequence": 50.0}, known)
    written("planner,greedy/0", "planner", True, 0, {"equation": 40.0}, known, label="greedy", split="validation")
    written("spelling/0", "planner", True, 0, {"token": 90.0, "sequence": 70.0}, known, task="text")
    found = tables(collect(known).records)
    main_rows = {row.head[0]: row.cells["aor", "equation"] for row in found[0].rows}
    assert main_rows["Planner + TA"] == Entry(
        (85.0,), None, best_of_all=True
    )  # no ablation, and no rival of its own kind
    others = {table.key: table for table in found[4:]}
    assert others["other-validation"].columns == (("aor", "equation"),)
    assert {row.head[0]: row.cells["aor", "equation"].values for row in others["other-validation"].rows} == {
        "Planner + TA, greedy": (40.0,)
    }
    assert others["other-test"].columns == (("text", "sequence"),)
    lines = summary(found[0], collect(known).records)
    assert any("85.00" in line and "best in the paper, NAR* + TA: 67.13 (+17.87)" in line for line in lines)
    assert any("62.00 ± 2.00" in line and "paper: 61.45 (+0.55)" in line for line in lines)


def test_practice_is_held_against_the_agent_before_it(known):
    practice = {"label": "practised", "practice": {"rounds": 1}}
    written("planner+ta/0", "planner", True, 0, {"equation": 85.0}, known)
    written("planner,practised/0", "planner", True, 0, {"equation": 91.5}, known, **practice)
    records = collect(known).records
    (line,) = [line for table in tables(records) for line in summary(table, records) if "practised" in line]
    assert " ".join(line.split()) == "AOR equation Planner + TA, practised 91.50 before practice: 85.00 (+6.50)"


def test_agents_of_other_edits_are_not_averaged_with_the_tasks_own(known):
    practice = {"label": "practised", "practice": {"rounds": 1}}
    other = {"usual": False, "metric": "lcs", "design": "edit"}
    for name, equation, edits in (("own", 90.0, {}), ("other", 50.0, other)):
        written(f"{name}/0", "planner", True, 0, {"equation": equation}, known, **edits)
        written(f"{name},practised/0", "planner", True, 0, {"equation": equation + 2}, known, **edits, **practice)
    records = collect(known).records
    lines = [line for table in tables(records) for line in summary(table, records) if "practised" in line]
    assert [" ".join(line.split()) for line in lines] == [
        "AOR equation Planner + TA, practised, lcs, edit 52.00 before practice: 50.00 (+2.00)",
        "AOR equation Planner + TA, practised 92.00 before practice: 90.00 (+2.00)",
    ]


def test_accuracy_is_drawn_against_the_number_of_pairs_where_there_are_several(known):
    assert amounts(collect(known).records) is None  # of one size, or of none that is known
    for d, score in ((1000, 70.0), (10_000, 85.0)):
        size = {"size": {"n": 10, "l": 5, "d": d}}
        written(f"d{d}/0", "planner", True, 0, {"equation": score}, known, label=f"d{d}", **size)
        more = {"label": f"d{d} practised", "practice": {"rounds": 1}} | size
        written(f"d{d},practised/0", "planner", True, 0, {"equation": score + 5}, known, **more)
        written(f"d{d},greedy/0", "planner", True, 0, {"equation": score - 5}, known, label=f"n10 d{d} greedy", **size)
        other = {"usual": False, "design": "edit", "label": f"d{d}"} | size
        written(f"d{d},edit/0", "planner", True, 0, {"equation": 1.0}, known, **other)
    (panel,) = amounts(collect(known).records).axes
    lines = {line.get_label(): [*map(tuple, line.get_xydata().tolist())] for line in panel.lines}
    assert panel.get_title() == "AOR, N = 10, L = 5" and panel.get_xscale() == "log"
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["1,000", "10,000"]
    assert lines == {
        "Planner + TA": [(1000, 70.0), (10_000, 85.0)],
        "Planner + TA, greedy": [(1000, 65.0), (10_000, 80.0)],
        "Planner + TA, practised": [(1000, 75.0), (10_000, 90.0)],
    }


def test_runs_of_any_name_make_one_line_over_the_numbers_of_pairs(known):
    for d, name in ((1000, "small"), (10_000, "large")):
        written(
            f"{name}/0", "planner", True, 0, {"equation": d / 200}, known, label=name, size={"n": 10, "l": 5, "d": d}
        )
    (panel,) = amounts(collect(known).records).axes
    (line,) = panel.lines
    assert line.get_label() == "Planner + TA" and line.get_ydata().tolist() == [5.0, 50.0]


def test_the_order_of_the_methods_is_held_against_the_papers(known):
    found = {order.block: order for order in orders(tables(collect(known).records)[0])}
    without = found["methods without TA"]
    assert without.agree == 1 and set(without.disagree) == {"AR* > NAR", "NAR* > NAR"}
    assert found["each method with TA against without"].agree == 1


def test_methods_are_compared_within_a_design_and_it_is_named(tmp_path):
    for design, first, second in (("span", 90.0, 80.0), ("span2", 70.0, 60.0)):
        for model, score in (("ar-star", first), ("nar-star", second)):
            where = f"{design}/{model}"
            said = {"metric": "span", "design": design, "usual": design == "span"}
            written(where, model, True, 0, {"equation": score}, tmp_path, "aes", **said)
    designs = {table.key: table for table in tables(collect(tmp_path).records)}["designs"]
    order, across = orders(designs)
    assert across.block == "each method, one design against another" and across.agree + len(across.disagree) == 2
    assert across.disagree == ("#2 [left, token, right], AR* + TA > #1 [left, right, token], AR* + TA",)
    pairs = [f"NAR* + TA > AR* + TA ({head})" for head in ("#1 [left, right, token]", "#2 [left, token, right]")]
    assert order.agree + len(order.disagree) == 2 and set(order.disagree) <= set(pairs)


def test_equal_figures_are_no_best(tmp_path):
    for model in ("ar", "ar-star", "nar"):
        written(model, model, False, 0, {"equation": 0.0}, tmp_path)
    assert not any(
        e.best or e.best_of_all for row in tables(collect(tmp_path).records)[0].rows for e in row.cells.values()
    )


def test_only_seeds_are_averaged(known):
    """One figure is never the mean of other settings, other data, or the same seed twice."""
    again = written("again/nar-star/0", "nar-star", False, 0, {"equation": 10.0}, known)
    with pytest.raises(BadData, match="duplicate seed 0"):
        collect(known)
    for change, what in (({"preset": "paper"}, "preset"), ({"settings": {"width": 512}}, "settings"),
                         ({"data": {"expert/train": "2" * 64}}, "data"),
                         ({"practice": {"rounds": 2}}, "practice")):  # fmt: skip
        shutil.rmtree(again)
        written("again/nar-star/0", "nar-star", False, 9, {"equation": 10.0}, known, **change)
        with pytest.raises(BadData, match=f"again/nar-star/0 and nar-star/0 differ in their {what}"):
            collect(known)


def test_free_sources_are_the_same_where_they_are_known(tmp_path):
    """Older results do not say which they were; where they are does not matter."""
    for seed, digest in enumerate((None, "0", None, "0", "1")):
        practice = {"label": "practised", "practice": {"sources": "free" if seed < 3 else "elsewhere/free"}}
        known = {} if digest is None else {"sources": {"sources/train": digest * 64}}
        cell = written(f"p/{seed}", "planner", True, seed, {"equation": 9.0}, tmp_path / "runs", **practice, **known)
    with pytest.raises(BadData, match="p/1 and p/4 differ in their sources"):
        collect(tmp_path / "runs")
    shutil.rmtree(cell)
    records = collect(tmp_path / "runs").records
    for order in permutations(records):
        assert len(check_comparable([*order])) == 4
    report(tmp_path / "runs", tmp_path, timed=False)
    assert f"{'0' * 64}  sources/train" in (tmp_path / "report.md").read_text()
    assert collect(tmp_path / "results.json").records[1].sources


def test_the_longest_games_of_both_metrics_are_said(tmp_path):
    for metric, steps in (("span", 6), ("levenshtein", 31)):
        said = {"metric": metric, "usual": metric == "span", "max_steps": steps}
        written(metric, "nar-star", False, 0, {"equation": 1.0}, tmp_path / "runs", "aes", **said)
    report(tmp_path / "runs", tmp_path, timed=False)
    text = (tmp_path / "report.md").read_text()
    assert "T_max with span edits: 6." in text and "T_max with levenshtein edits: 31." in text


def test_a_report_says_how_many_seeds_and_whether_the_data_is_smaller_than_the_papers(tmp_path):
    runs = tmp_path / "runs"
    for seed in range(2):
        written(f"ar/{seed}", "ar", False, seed, {"equation": 1.0}, runs, size={"n": 10, "l": 5, "d": 200})
    written("nar/0", "nar", False, 0, {"equation": 1.0}, runs, size={"n": 10, "l": 5, "d": 200})
    report(runs, tmp_path)
    for name in ("report.md", "report.html"):
        text = unescape((tmp_path / name).read_text())
        assert "Seeds of a figure: 1 to 2." in text
        assert "by the released evaluator, which also accepts" in text
        assert "AOR here has N = 10, L = 5, D = 200; the paper's has N = 10, L = 5, D = 10,000." in text


@pytest.mark.parametrize("smaller", [True, False])
def test_a_terminal_gets_no_difference_from_figures_of_other_data(tmp_path, smaller):
    size = {"n": 10, "l": 5, "d": 200 if smaller else 10_000}
    for model in ("ar", "planner"):
        written(model, model, False, 0, {"equation": 99.0}, tmp_path / "runs", size=size)
    *lines, last = report(tmp_path / "runs", tmp_path / "out", timed=False)[1]
    if smaller:
        assert last == "AOR here has N = 10, L = 5, D = 200; the paper's has N = 10, L = 5, D = 10,000."
        assert [line.split("  ")[-1] for line in lines] == ["paper: 59.09", "best in the paper, NAR* + TA: 67.13"]
    else:
        assert [*lines, last][0].endswith("paper: 59.09 (+39.91)") and last.endswith("NAR* + TA: 67.13 (+31.87)")


def test_pictures_show_no_labelled_cells_and_one_split(known):
    written("a,x/0", "nar", False, 0, {"equation": 1.0}, known, label="x")
    written("a/validation", "linear", False, 0, {"equation": 1.0}, known, split="validation")
    assert {record.name for record in comparable(collect(known).records)} == {
        "nar-star/0", "nar-star/1", "nar-star/2", "ar-star/0", "nar/0", "nar-star+ta/0",
    }  # fmt: skip


DAMAGE = [
    ("cell.json", "{}"),
    ("cell.json", '{"format": 2, "task": [], "scores": 3}'),
    ("cell.json", '{"format": 1}'),
    ("cell.json", "{" * 3),
    ("outcomes-test.json", '{"rows": [], "games": []}'),
    ("outcomes-test.json", '{"format": 2, "rows": [], "games": []}'),
    ("outcomes-test.json", '{"format": 1, "rows": 5}'),
    ("outcomes-test.json", '{"format": 1, "rows": [{"source": "1"}]}'),
    ("outcomes-test.json", '{"format": 1, "games": 5}'),
    ("outcomes-test.json", '{"format": 1, "games": [1]}'),
    ("outcomes-test.json", '{"format": 1, "games": [{}]}'),
    (
        "outcomes-test.json",
        '{"format": 1, "games": [{"source": "", "target": "", "predicted": "", "failure": 3, "moves": []}]}',
    ),
    ("metrics.jsonl", '{"epoch": 0}\n'),
]


@pytest.mark.parametrize(("name", "content"), DAMAGE)
def test_a_damaged_cell_is_named(known, tmp_path, name, content):
    (known / "nar/0" / name).write_text(content)
    done = CliRunner().invoke(main, ["report", str(known), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2 and "nar/0" in done.stderr and len(done.stderr.splitlines()) == 1


WRONG_FIELDS = {
    "scores": {"equation": float("nan")}, "by_length": {"2": 5}, "commands": [5], "threads": None, "data": {"x": 1},
    "train_seconds": "long", "split": "\"><script>", "max_steps": "many", "usual": "yes", "seed": 1.5,
    "curve": [["high"]], "seconds": 1e300, "updates": True,
}  # fmt: skip
WRONG_GROUPS = [("by_length", {"two": [1, 2]}), ("by_length", {"2": [0, 0]}), ("by_replace", {"2": [1, 2]})]


@pytest.mark.parametrize(
    "change",
    [
        {"cells": []},
        {"cells": [1]},
        {"cells": [{}]},
        {"timing": {"aor": 5}},
        {"format": 1},
        {"timing": {"aor": {"agents": {}, "ratio": {"action": 1, "text": 1}, "games": 1, "threads": 1}}},
    ],
)
def test_damaged_results_are_named(known, tmp_path, change):
    report(known, tmp_path / "out", timed=False)
    values = json.loads((tmp_path / "out/results.json").read_text())
    assert_named(values | change, tmp_path)


@pytest.mark.parametrize("field,wrong", [*WRONG_FIELDS.items(), *WRONG_GROUPS])
def test_damaged_fields_of_results_are_named(known, tmp_path, field, wrong):
    report(known, tmp_path / "out", timed=False)
    values = json.loads((tmp_path / "out/results.json").read_text())
    values["cells"][0][field] = wrong
    assert_named(values, tmp_path)


def assert_named(values, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(values))
    done = CliRunner().invoke(main, ["report", str(tmp_path / "x.json"), "--out", str(tmp_path / "again")])
    assert done.exit_code == 2 and "x.json" in done.stderr and len(done.stderr.splitlines()) == 1


def test_new_runs_are_added_to_results_that_were_kept(known, tmp_path):
    report(known, tmp_path / "kept", timed=False)
    kept = tmp_path / "kept/results.json"
    written("nar-star/1", "nar-star", False, 1, {"equation": 70.0, "token": 50.0}, tmp_path / "new")  # was 62
    written("linear/0", "linear", False, 0, {"equation": 1.0}, tmp_path / "new")
    report([tmp_path / "new", kept], tmp_path / "out", timed=False)
    joined = collect(tmp_path / "out/results.json").records
    assert [record.name for record in joined] == sorted(
        [*(record.name for record in collect(kept).records), "linear/0"], key=lambda name: name.split("/")
    )
    assert [r.scores["equation"] for r in joined if r.name.startswith("nar-star/")] == [60.0, 70.0, 64.0]
    # What is added must be comparable with what is there.
    written("nar-star/7", "nar-star", False, 7, {"equation": 70.0}, tmp_path / "other", preset="paper")
    done = CliRunner().invoke(main, ["report", str(tmp_path / "other"), str(kept), "--out", str(tmp_path / "none")])
    assert done.exit_code == 2 and "differ in their preset" in done.stderr and not (tmp_path / "none").exists()


def test_a_single_epoch_is_no_curve(tmp_path):
    for epochs, there in ((1, set()), (2, {"learning-curves", "minutes"})):
        said = {"action_accuracy": 50.0, "validation": {"equation_accuracy": 50.0}}
        lines = [said | {"epoch": epoch, "seconds": 60.0 * (epoch + 1)} for epoch in range(epochs)]
        cell = written(f"planner/{epochs}", "planner", False, 0, {"equation": 9.0}, tmp_path / "one")
        (cell / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        files = report(tmp_path / "one", tmp_path / "out", timed=False)[0]
        assert {path.stem for path in files} & {"learning-curves", "minutes"} == there
        shutil.rmtree(cell)


def test_practice_that_improves_nothing_keeps_no_epoch(tmp_path):
    said = {"practice": {"rounds": 1}, "best_epoch": -1}
    cell = written("planner/0", "planner", True, 0, {"equation": 9.0}, tmp_path / "runs", **said)
    line = {"action_accuracy": 50.0, "validation": {"equation_accuracy": 50.0}}
    (cell / "metrics.jsonl").write_text("".join(json.dumps(line | {"epoch": epoch}) + "\n" for epoch in range(2)))
    report(tmp_path / "runs", tmp_path, timed=False)
    assert "| before practice (0 to 1) |" in (tmp_path / "report.md").read_text()
    assert "<td>before practice (0 to 1)</td>" in (tmp_path / "report.html").read_text()
    (panel,) = curves(collect(tmp_path / "runs").records).axes
    assert panel.get_title() == "AOR, Planner + TA, keeps what it began with"
    assert "best epoch" not in [drawn.get_label() for drawn in panel.lines]


def test_an_earlier_reports_pictures_do_not_stay(known, tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/metrics-aec.png").write_bytes(b"old")
    report(known, tmp_path, timed=False)
    assert not (tmp_path / "figures/metrics-aec.png").exists()


def test_a_cell_without_a_run_stays_empty(known, tmp_path):
    out = tmp_path / "out"
    report(known, out)
    html = (out / "report.html").read_text()
    assert '<span data-ours=""></span><small>paper 59.09 ± 0.95</small>' in html
    assert "nan" not in re.sub(r"base64,[^\"]*", "", html).lower()


def test_every_cell_has_its_commands_and_hashes(runs, made):
    html, page = (made / "report.html").read_text(), (made / "report.md").read_text()
    for path in runs.rglob("cell.json"):
        cell = json.loads(path.read_text())
        for text in (page, html):
            assert all(command in text for command in cell["commands"])
            assert all(digest in text for digest in cell["data"].values())
            assert f"{cell['parameters']:,}" in text


def test_figures_are_there_as_png_and_svg(made):
    names = {path.stem for path in (made / "figures").iterdir()}
    assert names == {"learning-curves", "inference-time", "by-length", "failures"}
    for name in names:
        assert (made / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        ElementTree.parse(made / "figures" / f"{name}.svg")


def test_results_alone_give_the_same_tables(made, tmp_path):
    report(made / "results.json", tmp_path, timed=False)
    one, two = ((folder / "report.md").read_text() for folder in (made, tmp_path))
    games = re.search(r"\n## Games\n.*?(?=\n## Figures\n)", one, re.DOTALL)  # these are in the run folders alone
    assert games and one.replace(games[0], "") == two
    assert (made / "results.json").read_text() == (tmp_path / "results.json").read_text()


def test_bars_by_replacement_need_both_metrics_and_join_their_games(known, tmp_path):
    rows = [
        {"source": s, "target": "b", "replaces": s == "a", "expert_steps": 2, "right": s == "c", "failure": ""}
        for s in ("a", "c")
    ]
    for metric in ("levenshtein", "lcs"):
        said = {"metric": metric, "design": "edit", "usual": metric == "levenshtein"}
        cell = written(f"aec-{metric}", "nar-star", False, 0, {"equation": 50.0}, known, "aec", **said)
        other = [row | {"replaces": False, "right": True} for row in rows] if metric == "lcs" else rows
        (cell / "outcomes-test.json").write_text(json.dumps({"format": 1, "rows": other, "games": []}))
    found = {record.metric: record.by_replace for record in collect(known).records if record.task == "aec"}
    assert found == {"levenshtein": {"with": (0, 1), "without": (1, 1)}, "lcs": {"with": (1, 1), "without": (1, 1)}}
    assert any(path.name == "metrics-aec.svg" for path in report(known, tmp_path / "out")[0])


DONE = ("DONE", "DONE")
CASES = [
    ([(("POS_1", "+"), "applied"), (DONE, "done")], "wrong position"),
    ([(("POS_0", "-"), "applied"), (DONE, "done")], "wrong token"),
    ([(DONE, "done")], "stopped early"),
    ([(("POS_0", "+"), "applied"), (("POS_0", "+"), "applied")], "never stopped"),
    ([(("POS_9", "+"), "out-of-range")], "refused"),
    ([], "unreadable"),
]


@pytest.mark.parametrize("played,name", CASES)
def test_a_wrong_game_is_filed_under_its_first_mistake(played, name):
    ended = {"applied": "limit"}.get(played[-1][1], played[-1][1]) if played else "unreadable"
    assert failure(played, [("POS_0", "+"), DONE], ended, "edits") == name and name in FAILURES


OTHER_GAMES = [
    ("tags", ("KEEP", "KEEP", "KEEP"), "done", ("KEEP", "SUB_+", "KEEP"), "stopped early"),
    ("tags", ("KEEP", "KEEP", "SUB_+"), "applied", ("KEEP", "SUB_+", "KEEP"), "wrong position"),
    ("tags", ("KEEP", "SUB_-", "KEEP"), "applied", ("KEEP", "SUB_+", "KEEP"), "wrong token"),
    ("tags", ("KEEP", "SUB_-", "KEEP"), "applied", ("KEEP", "KEEP", "KEEP"), "never stopped"),
    ("text", ("1", "DONE"), "done", ("1", "+", "DONE"), "stopped early"),
    ("text", ("1", "-", "DONE"), "done", ("1", "+", "DONE"), "wrong token"),
    ("text", ("1", "-", "-"), "applied", ("1", "+", "DONE"), "never stopped"),
]


@pytest.mark.parametrize("game,said,verdict,wanted,name", OTHER_GAMES)
def test_the_baselines_mistakes_have_the_same_names(game, said, verdict, wanted, name):
    assert failure([(said, verdict)], [wanted], {"applied": "limit"}.get(verdict, verdict), game) == name


def test_outcomes_add_up(runs):
    for path in runs.rglob("outcomes-test.json"):
        rows, scores = (
            json.loads(path.read_text())["rows"],
            json.loads((path.parent / "evaluation-test.json").read_text()),
        )
        assert len(rows) == scores["pairs"]
        right = sum(row["right"] for row in rows)
        assert 100 * right / len(rows) == pytest.approx(scores["equation_accuracy"], abs=1e-3)
        assert all(bool(row["failure"]) != row["right"] for row in rows)


def test_wrong_use_gets_one_line(tmp_path):
    for arguments, message in (
        ((str(tmp_path), "--out", str(tmp_path / "out")), "no finished cell"),
        ((str(tmp_path / "x.json"), "--out", str(tmp_path / "out")), "format 9, this version reads format 2"),
    ):
        (tmp_path / "x.json").write_text('{"format": 9}')
        done = CliRunner().invoke(main, ["report", *arguments])
        assert done.exit_code == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1
    with pytest.raises(BadData):
        collect(tmp_path / "none")


# In a browser


@contextmanager
def opened(path):
    """A page in a browser."""
    program = find_browser()
    if not program:
        pytest.skip("no Chromium on this machine (apt-get install chromium, or AEGEN_BROWSER=/path/to/one)")
    with Browser(program) as browser:
        browser.open(path)
        yield browser


@pytest.fixture(scope="module")
def page(made, tmp_path_factory):
    """The page alone, without the files beside it."""
    with opened(shutil.copy(made / "report.html", tmp_path_factory.mktemp("alone") / "report.html")) as browser:
        yield browser


def test_the_tables_are_there(page, runs):
    shown = page.ask("[...document.querySelectorAll('table')].map(table => table.id)")
    folded = [f"table-{key}-all" for key in ("main", "decoders", "designs", "metrics")]
    assert shown == ["table-main", "table-decoders", "table-timing", "table-costs", *folded]
    assert page.ask("[...document.querySelectorAll('table')].filter(one => one.checkVisibility()).length") == 4
    row = "[...document.querySelectorAll('#table-main tr')].find(row => row.cells[0].textContent === 'NAR*')"
    a, b = measured(runs, "nar-star", "equation")
    text = page.ask(f"{row}.cells[3].innerText")
    assert f"{(a + b) / 2:.2f} ± {abs(a - b) / math.sqrt(2):.2f}" in text and "paper 61.45 ± 1.61" in text


def test_the_pictures_load(page):
    sizes = page.ask("[...document.images].map(image => [image.id, image.complete && image.naturalWidth])")
    assert {name for name, _ in sizes} == {
        "figure-learning-curves", "figure-inference-time", "figure-by-length", "figure-failures",
    }  # fmt: skip
    assert all(width and width > 100 for _, width in sizes)


def test_names_and_texts_of_strangers_are_shown_and_nothing_more(known, tmp_path):
    attack = "</script><img src=x onerror=\"document.title='owned'\">$\\frac$"
    move = {"state": attack, "action": [attack], "chances": [1.0], "verdict": attack}
    game = dict.fromkeys(("source", "target", "predicted", "failure"), attack) | {"right": False, "moves": [move]}
    cell = written("x/0", attack, False, 0, {"sequence": 5.0}, known, attack, device=attack, commands=[attack])
    (cell / "outcomes-test.json").write_text(json.dumps({"format": 1, "rows": [], "games": [game]}))
    report(known, tmp_path / "out", timed=False)
    with opened(tmp_path / "out/report.html") as browser:
        assert browser.ask("document.querySelectorAll('script').length") == 2
        assert browser.ask("[...document.images].filter(image => !image.id).length") == 0
        assert browser.ask("document.title") != "owned"
        assert browser.ask("document.querySelector('#stepper .state').textContent") == attack.replace("\\f", "f")


class Elements(HTMLParser):
    """The elements of a page, and what its scripts and cells hold."""

    def __init__(self, page):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, sorted(name for name, _ in attributes)))

    def handle_data(self, data):
        self.texts.append(data)


def test_texts_of_strangers_add_no_markup(known, tmp_path):
    """In place of harmless words, texts with HTML, Markdown and JSON leave the elements of both pages the same."""

    def pages(word):
        move = {"state": word, "action": [word], "chances": [1.0], "verdict": word}
        game = dict.fromkeys(("source", "target", "predicted", "failure"), word) | {"right": False, "moves": [move]}
        facts = {"device": word, "commands": [word], "build": word, "preset": word, "label": word, "data": {word: word}}
        cell = written("x/0", word, False, 0, {"equation": 5.0}, known, word, **facts)
        (cell / "outcomes-test.json").write_text(json.dumps({"format": 1, "rows": [], "games": [game]}))
        report(known, tmp_path / "out", title=word, timed=False)
        shutil.rmtree(cell)
        return [(tmp_path / "out" / name).read_text() for name in ("report.html", "report.md")]

    (html, markdown), (usual, usual_markdown) = pages(ATTACK), pages("word")
    elements = Elements(html)
    assert elements.found == Elements(usual).found and ATTACK in elements.texts
    games = next(text for text in elements.texts if text.startswith('[{"'))
    told = visible(detokenize(split_state(ATTACK), "words"))
    assert json.loads(games)[0]["games"][0]["source"] == told and "<" not in games
    headings = len(re.findall("^#+ ", code_blocks(usual_markdown)[1], re.MULTILINE))
    text = check_inert(markdown, headings)
    assert len(text.splitlines()) == len(check_inert(usual_markdown, headings).splitlines())
    assert sum(ATTACK in block for block in code_blocks(markdown)[0]) == 3  # the game, the commands, the hashes


def test_nothing_is_asked_of_anybody_else(page):
    assert page.ask("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length") == 0


def test_the_gallery_steps_forward_and_back(page):
    games = json.loads(page.ask("document.getElementById('games').textContent"))
    cell, number = next((c, g) for c, one in enumerate(games) for g, game in enumerate(one["games"]) if game["moves"])
    game = games[cell]["games"][number]
    box = "document.getElementById('{0}')"
    choose = f"{box}.value = {{1}}; {box}.dispatchEvent(new Event('change'))"
    page.ask(choose.format("cell", cell))
    page.ask(choose.format("game", number))
    click = "document.querySelector('#stepper .{}').click()"
    assert page.ask("document.querySelector('#stepper .back').disabled") is True
    states = [*(move["state"] for move in game["moves"]), game["result"]]
    seen = [marked(page)]
    for _ in game["moves"]:
        page.ask(click.format("forward"))
        seen.append(marked(page))
    assert [before for before, _ in seen] == [" ".join(state) for state in states]
    assert [after for _, after in seen] == [" ".join(state) for state in (*states[1:], states[-1])]  # edits are marked
    assert page.ask("document.querySelector('#stepper .forward').disabled") is True
    back = [marked(page)]
    for _ in game["moves"]:
        page.ask(click.format("back"))
        back.append(marked(page))
    assert back == seen[::-1]
    page.ask("document.getElementById('stepper').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))")
    assert marked(page) == seen[1]
    right = "right" if game["right"] else f"wrong: {game['failure']}"
    assert page.ask("document.querySelector('#stepper .judged').textContent") == right


def test_every_step_of_a_kept_game_says_whether_the_equation_holds(known, tmp_path):
    """As in the playground; a game of words says nothing of an equation."""
    states = ["2 3 = 5", "2 + 3 = 5"]
    moves = [
        {"state": states[0], "action": ["POS_1", "+"], "chances": [1.0, 1.0], "verdict": "applied", "written": [1]},
        {"state": states[1], "action": ["DONE", "DONE"], "chances": [1.0, 1.0], "verdict": "done"},
    ]
    game = {"source": states[0], "target": states[1], "predicted": states[1], "right": True, "failure": ""}
    outcomes = json.dumps({"format": 1, "rows": [], "games": [game | {"moves": moves}]})
    (known / "nar/0/outcomes-test.json").write_text(outcomes)
    words = written("words/0", "planner", True, 0, {"sequence": 5.0}, known, "text")
    (words / "outcomes-test.json").write_text(outcomes)
    report(known, tmp_path / "out", timed=False)
    said = "document.querySelector('#stepper .state .equation')?.textContent ?? null"
    with opened(tmp_path / "out/report.html") as browser:
        cells = browser.ask("[...document.getElementById('cell').options].map(option => option.text)")
        for number, expected in enumerate((["does not hold", "holds", "holds"], [None] * 3)):
            browser.ask(f"cell.value = {number}; cell.dispatchEvent(new Event('change'))")
            found = [browser.ask(said)]
            for _ in moves:
                browser.ask("document.querySelector('#stepper .forward').click()")
                found.append(browser.ask(said))
            assert found == expected, cells[number]


def marked(page):
    """The state in the stepper, as it was and as it becomes."""
    parts = page.ask(
        "[...document.querySelector('#stepper .state').childNodes].map(node => [node.nodeName, node.textContent])"
    )
    return tuple(
        " ".join("".join(text for kind, text in parts if kind in ("#text", one)).split()) for one in ("DEL", "INS")
    )


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_fits_and_the_first_column_stays(page, width):
    page.look(width)
    assert page.ask("document.documentElement.scrollWidth") <= width
    box = "document.querySelector('#table-costs').parentElement"
    left = f"({box}.scrollLeft = 9999, document.querySelector('#table-costs tbody th').getBoundingClientRect().left)"
    assert page.ask(left) >= page.ask(f"{box}.getBoundingClientRect().left")
    page.look(1280)


def test_contents_lead_somewhere(page):
    missing = "[...document.querySelectorAll('#contents a')].filter(link => !document.querySelector(link.hash)).length"
    assert page.ask("document.querySelectorAll('#contents a').length") >= 6 and page.ask(missing) == 0


def test_pictures_follow_the_colours_of_the_page(page):
    """The mean brightness of the ink on the first picture, on a light page and on a dark one."""

    def brightness():
        rect = "document.images[0].getBoundingClientRect()"
        box = page.ask(f"(({{x, y, width, height}}) => [x + scrollX, y + scrollY, width, height])({rect})")
        clip = dict(zip(("x", "y", "width", "height"), box, strict=True), scale=1)
        shot = page.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        picture = Image.open(io.BytesIO(base64.b64decode(shot))).convert("L")
        return picture.histogram()

    def share(histogram, low, high):
        return sum(histogram[low:high]) / sum(histogram)

    page.look(1280)
    light = brightness()
    page.look(1280, dark=True)
    dark = brightness()
    page.look(1280)
    assert share(light, 240, 256) > 0.7 and share(light, 0, 60) > 0.001  # dark ink on white
    assert share(dark, 0, 60) > 0.7 and share(dark, 200, 256) > 0.001  # light ink on black
