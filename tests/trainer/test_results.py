"""The figures on the pages are those that the commands wrote."""

import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from trainer.report.collect import collect
from trainer.report.paper import MAIN

CARDS = Path(__file__).parents[2] / "cards"


@pytest.mark.parametrize("task", ["aor", "aes", "aec"])
def test_the_planners_table_is_what_was_measured(task):
    cells = [one for one in collect(CARDS / "results/planner-released/results.json") if one["task"] == task]
    scores = [cell["scores"]["equation"] for cell in cells]
    theirs, spread = MAIN["nar-star", True][task, "equation"]
    minutes = mean(cell["cpu_seconds"] for cell in cells) / 60
    line = f"| {task.upper()} | {theirs} ± {spread} | {mean(scores):.2f} ± {stdev(scores):.2f} | {minutes:.1f} |"
    assert len({cell["seed"] for cell in cells}) == len(cells) >= 3
    assert line in (CARDS / "planner.md").read_text()


def test_links_of_the_page_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", (CARDS / "planner.md").read_text()):
        assert (CARDS / target).exists(), target
