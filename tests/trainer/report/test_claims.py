"""The paper's claims against cells with figures of our choice."""

import pytest
from msgspec import structs

from tests.trainer.report.test_report import written
from trainer.report.claims import claims
from trainer.report.collect import TaskTiming, Times, collect


def found(folder, timing=None):
    return {claim.text: claim for claim in claims(collect(folder).records, timing or {})}


def said(claim, start):
    (one,) = [one for one in claim.comparisons if one.name.startswith(start)]
    return one.holds, one.ahead, one.behind


def test_agents_and_augmentation(tmp_path):
    for model, ta, values in (("nar-star", True, (60.0, 64.0)), ("nar-star", False, (61.0,)), ("ar", True, (63.0,))):
        for seed, value in enumerate(values):
            written(f"{model}{ta}/{seed}", model, ta, seed, {"equation": value}, tmp_path)
    written("labelled", "ar-star", True, 0, {"equation": 99.0}, tmp_path, label="variants")
    written("held-out", "ar-star", True, 1, {"equation": 99.0}, tmp_path, split="validation")
    best, helped = (found(tmp_path)[text] for text in ("D2 (NAR*) is the best of the agents", "TA helps every agent"))
    assert said(best, "AOR, NAR* + TA and AR +") == (False, 62.0, 63.0)
    assert said(best, "AOR, NAR* + TA and AR* +") == (None, 62.0, None)  # labelled, and not a test
    assert said(helped, "AOR, NAR*:") == (True, 62.0, 61.0)
    assert helped.details[0] == "As in the paper: AOR, NAR*: 62.00 against 61.00."
    assert helped.details[1].startswith("Not run: AOR, AR; ") and helped.verdict == "1 of 1, 11 not run"
    assert len(found(tmp_path)) == 2  # claims of which nothing was run are not shown


@pytest.mark.parametrize(("loss", "holds"), [(10.0, True), (1.0, False)])
def test_designs_compare_what_each_loses(tmp_path, loss, holds):
    for model, third in (("ar-star", 90.0 - loss), ("nar-star", 92.0)):
        for design, value in (("span", 90.0 if model == "ar-star" else 95.0), ("span3", third)):
            about = {"metric": "span", "design": design, "usual": design == "span", "task": "aes"}
            written(f"{model}/{design}", model, True, 0, {"equation": value}, tmp_path, **about)
    (claim,) = [claim for text, claim in found(tmp_path).items() if "order of the action" in text]
    assert said(claim, "#3, AR* + TA and NAR* + TA lose") == (holds, loss, 3.0)


def test_metrics_are_told_from_designs(tmp_path):
    for metric, design, value in (("span", "span", 90.0), ("span", "span2", 10.0), ("levenshtein", "edit", 20.0)):
        about = {"metric": metric, "design": design, "usual": design == "span", "task": "aes"}
        written(f"{metric}{design}", "nar-star", False, 0, {"equation": value}, tmp_path, **about)
    assert said(found(tmp_path)["On AES spans are far ahead of single tokens"], "NAR*") == (True, 90.0, 20.0)


def test_times_are_of_an_action_and_of_a_text(tmp_path):
    written("one", "nar-star", True, 0, {"equation": 1.0}, tmp_path)
    agents = {"ar-star": Times(20.0, 90.0), "nar-star": Times(10.0, 100.0)}
    timing = {"aor": TaskTiming(agents, Times(2.0, 0.9), 8, 1)}
    claim = found(tmp_path, timing)["NAR* needs less time than AR*"]
    assert claim.verdict == "1 of 2" and claim.details == [
        "As in the paper: AOR, an action: 20.00 against 10.00 µs.",
        "Not so here: AOR, a text: 90.00 against 100.00 µs.",
    ]


def test_replacements_are_compared_group_by_group(tmp_path):
    rows = {
        "lcs": [("with", 1), ("with", 0), ("without", 1)],
        "levenshtein": [("with", 1), ("with", 1), ("without", 0)],
    }
    records = []
    for metric, games in rows.items():
        written(metric, "nar-star", True, 0, {"equation": 1.0}, tmp_path, task="aec", metric=metric, design="edit")
        (record,) = collect(tmp_path / metric).records
        share = {
            group: (sum(right for other, right in games if other == group), sum(other == group for other, _ in games))
            for group in ("with", "without")
        }
        records.append(structs.replace(record, by_replace=share))
    (claim,) = [claim for claim in claims(records, {}) if "LCS" in claim.text]
    assert said(claim, "NAR* + TA, without") == (True, 100.0, 0.0)
    assert said(claim, "NAR* + TA, with REPLACE") == (True, 100.0, 50.0)
