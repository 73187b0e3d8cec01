"""A plan is held against what a build then makes."""

from __future__ import annotations

import json

import pytest

from aegen.core.errors import InvalidSpec
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from aegen.pipeline.plan import CALL, Config, Estimate, Stage, estimate


@pytest.mark.parametrize("task,n", [("aor", 20), ("aes", 30), ("aec", 20)])
def test_sizes_are_those_of_the_dataset(task, n, tmp_path):
    spec = Spec(task, n, 5, 12_000, rows_per_shard=3000, variants=0 if task == "aor" else 1)
    found = estimate(spec, Expert.of(task), Augmentation())
    manifest, _ = pipeline.build(spec, Folder(tmp_path), Local())
    assert set(found.configs) == set(manifest.configs)
    assert found.configs["pairs"].rows == spec.d
    for config, expected in found.configs.items():
        names = manifest.shards(config)
        assert expected.shards == len(names)
        assert expected.rows == pytest.approx(manifest.rows(config), rel=0.03)
        assert expected.bytes == pytest.approx(sum(manifest.files[name].bytes for name in names), rel=0.15)


def test_ten_thousand_million_pairs_are_planned_and_not_made(invoke, tmp_path):
    found = json.loads(invoke("plan", "aec", "--n", 100, "--l", 6, "--d", 10**10, "--json").stdout)
    assert found["configs"]["pairs"] == {"rows": 10**10, "shards": 84_000, "bytes": found["configs"]["pairs"]["bytes"]}
    assert found["bytes"] > 10**11 and found["core_hours"] > 1 and found["worker_bytes"] < 2**31
    assert found["client_bytes"] < 2**31 and list(tmp_path.iterdir()) == []
    shown = invoke("plan", "aec", "--n", 10, "--l", 5, "--d", 10_000, "--cores", 7).stdout
    assert "core-hours" in shown and "\n7 " in shown


def test_more_than_there_is_cannot_be_planned():
    with pytest.raises(InvalidSpec, match="about 82,342 valid"):
        estimate(Spec("aor", 10, 5, 10**9), Expert.of("aor"), Augmentation())


def test_what_holds_back_is_named():
    def one(calls, seconds):
        return Estimate(0, {}, [Stage("pairs", calls, seconds)], 0, 0)

    assert one(1000, 1e6).limit(100) == "nothing"
    assert one(10, 1e6).limit(100) == "pairs: too few pieces" and one(10, 1e6).wall(100) == 1e5
    assert one(10**6, 1e3).limit(1000) == "pairs: the scheduler" and one(10**6, 1e3).wall(1000) == 10**6 * CALL


def test_columns_stay_in_line_whatever_the_names():
    configs = {name: Config(1, 1, 1) for name in ("pairs", "variants_expert")}
    lines = list(Estimate(1, configs, [Stage("pairs", 1, 1.0)], 1, 1).lines([1]))
    assert len({len(line) for line in lines[:3]}) == 1 and lines[2].startswith("variants_expert ")
