"""A dataset is a pure function of its spec: the same bytes however it is made."""

from __future__ import annotations

import json
import os
import pwd
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from aegen.arithmetic.candidates import Order
from aegen.core.errors import FolderConflict, InvalidSpec
from aegen.core.format import MANIFEST, SPLITS
from aegen.dataset.commands import commands
from aegen.dataset.folder import Folder
from aegen.dataset.verify import overlaps, verify
from aegen.engines.local import Local
from aegen.experts.augment import RULE, Augmentation
from aegen.pairs.generate import plan
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from tests.aegen.dataset.test_verify import rewrite

SPECS = [
    Spec("aor", 10, 5, 900, rows_per_shard=200),
    Spec("aes", 100, 5, 700, seed=3, division=True, variants=2, rows_per_shard=300),
    Spec("aec", 10, 5, 800, split="paper", errors=2, variants=1, rows_per_shard=10_000),
]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.task)
def test_same_spec_same_bytes_for_any_number_of_workers(spec, tmp_path):
    for workers in (1, 2):
        pipeline.build(spec, Folder(tmp_path / str(workers)), Local(workers))
    assert content(tmp_path / "1") == content(tmp_path / "2")


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.task)
def test_sizes_and_splits(spec, tmp_path):
    manifest, worked = pipeline.generate(spec, Folder(tmp_path), Local())
    assert worked
    assert {split: manifest.rows("pairs", split) for split in SPLITS} == spec.quotas
    assert manifest.rows("variants") == spec.variants * spec.quotas["train"]
    shared = overlaps(Folder(tmp_path), manifest)
    if spec.split == "source":
        assert set(shared.values()) == {0}
    assert all(info.rows <= spec.rows_per_shard for name, info in manifest.files.items() if name.startswith("pairs"))


def test_the_papers_split_leaks_and_ours_does_not(tmp_path):
    leaks = {}
    for split in ("paper", "source"):
        manifest, _ = pipeline.generate(Spec("aor", 10, 5, 10_000, split=split), Folder(tmp_path / split), Local())
        leaks[split] = overlaps(Folder(tmp_path / split), manifest)["train/test"]
    assert leaks["source"] == 0 and 100 < leaks["paper"] < 250  # the released files have 163


def test_a_larger_d_continues_a_smaller_one(tmp_path):
    rows = {}
    for d in (200, 600):
        pipeline.generate(Spec("aec", 10, 5, d), Folder(tmp_path / str(d)), Local())
        rows[d] = (
            pq.read_table(tmp_path / str(d) / "pairs" / "train-00000-of-00001.parquet").drop_columns("id").to_pylist()
        )
    assert rows[600][: len(rows[200])] == rows[200]


def test_seeds_share_no_more_rows_than_chance(tmp_path):
    targets = []
    for seed in (0, 1):
        pipeline.generate(Spec("aor", 10, 5, 8000, seed=seed), Folder(tmp_path / str(seed)), Local())
        table = pq.read_table(tmp_path / str(seed) / "pairs" / "train-00000-of-00001.parquet")
        targets.append(set(table["target"].to_pylist()))
    chance = 5600 * 5600 / 82_342
    assert len(targets[0] & targets[1]) == pytest.approx(chance, abs=4 * chance**0.5 + 5)


@pytest.mark.parametrize("n,l", [(3, 3), (2, 4), (4, 4)])
@pytest.mark.parametrize("split", ["source", "paper"])
def test_a_whole_space_can_be_taken_and_no_more(n, l, split, tmp_path):
    everything = len(Order(n, l, 0).listed[0])
    manifest, _ = pipeline.generate(Spec("aor", n, l, everything, split=split), Folder(tmp_path / "all"), Local())
    assert manifest.rows("pairs") == everything
    with pytest.raises(InvalidSpec, match=f"only {everything:,} valid"):
        pipeline.generate(Spec("aor", n, l, everything + 1, split=split), Folder(tmp_path / "more"), Local())
    assert not (tmp_path / "more").exists()


def test_the_smallest_space_is_empty(tmp_path):
    with pytest.raises(InvalidSpec, match="only 0 valid"):
        pipeline.generate(Spec("aor", 2, 3, 1), Folder(tmp_path), Local())


def test_finished_continued_and_foreign_folders(tmp_path):
    folder, spec = Folder(tmp_path), SPECS[0]
    pipeline.build(spec, folder, Local())
    whole = content(tmp_path)
    assert pipeline.build(spec, folder, Local())[1] is False

    (tmp_path / MANIFEST).unlink()
    (tmp_path / "expert" / "train-00002-of-00004.parquet").unlink()
    (tmp_path / "pairs" / ".train-00000-of-00004.parquet.0.part").write_bytes(b"left by a killed run")
    assert pipeline.build(spec, folder, Local())[1] is True
    assert content(tmp_path) == whole

    for other, difference in (
        (Spec("aor", 10, 5, 901, rows_per_shard=200), "pairs.d: existing value 900, requested 901"),
        (SPECS[2], "task"),
    ):
        with pytest.raises(FolderConflict, match=difference):
            pipeline.build(other, folder, Local())
        (tmp_path / MANIFEST).rename(tmp_path / "aside")  # an unfinished folder knows its spec as well
        with pytest.raises(FolderConflict, match=difference):
            pipeline.build(other, folder, Local())
        (tmp_path / "aside").rename(tmp_path / MANIFEST)
    assert content(tmp_path) == whole


def test_stages_one_by_one_make_the_same_files_as_build(tmp_path):
    pipeline.build(SPECS[2], Folder(tmp_path / "one"), Local())
    folder = Folder(tmp_path / "three")
    pipeline.generate(SPECS[2], folder, Local())
    pipeline.add_demonstrations(folder, pipeline.demonstrator("aec"), Local())
    pipeline.add_augmented(folder, Augmentation(), Local())
    assert content(tmp_path / "one") == content(tmp_path / "three")


def test_shifted_states_of_an_older_rule_are_kept_but_never_mixed_with_new_ones(tmp_path):
    """Such a dataset records no rule; all that needs no new row of ``augmented`` can be done with it."""
    folder, name = Folder(tmp_path), "augmented/train-00000-of-00001.parquet"
    pipeline.build(Spec("aec", 10, 5, 60), folder, Local())

    def forget(about):
        assert about["spec"]["augmented"].pop("rule") == RULE
        return about

    rewrite(folder, name, describe=forget)
    (tmp_path / MANIFEST).write_text(json.dumps(forget(json.loads((tmp_path / MANIFEST).read_text()))))
    assert folder.manifest().recipe.augmented == Augmentation(rule=None)
    assert not any("rule" in command for command in commands(folder.manifest().recipe))
    with pytest.raises(FolderConflict, match=f"augmented.rule: existing value None, requested {RULE}"):
        pipeline.add_augmented(folder, Augmentation(), Local())
    (tmp_path / name).rename(tmp_path / "aside")
    with pytest.raises(InvalidSpec, match=f"records rule None of augmentation, this version writes rule {RULE}"):
        pipeline.add_demonstrations(folder, pipeline.demonstrator("text", design="tags"), Local())
    (tmp_path / "aside").rename(tmp_path / name)
    pipeline.add_demonstrations(folder, pipeline.demonstrator("text", design="tags"), Local())
    verify(folder, Local())


BUILD = ("build", "aes", "--n", "100", "--l", "5", "--d", "1600", "--rows-per-shard", "200")
COMMAND = [sys.executable, "-m", "aegen", *BUILD]


@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.faults)])
def test_killed_at_any_moment_a_rerun_finishes_with_the_same_bytes(kills, tmp_path):
    def begin(out, *options):
        """A build that has begun: before it has, there is nothing that a kill could harm."""
        process = subprocess.Popen(
            [*COMMAND, *options, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not out.exists():
            assert process.poll() is None
            time.sleep(0.002)
        return process

    process, started = begin(tmp_path / "whole"), time.monotonic()
    assert process.wait() == 0
    duration, struck = time.monotonic() - started, 0
    for moment in range(kills):
        out = tmp_path / str(moment)
        process = begin(out, "--workers", str(1 + moment % 2))
        time.sleep(duration * moment / kills)
        process.send_signal(signal.SIGKILL)
        struck += process.wait() == -signal.SIGKILL and not (out / MANIFEST).exists()
        subprocess.run([*COMMAND, "--out", out], check=True, capture_output=True)
        assert content(out) == content(tmp_path / "whole")
    assert struck, "every kill came too late"


def test_a_full_disk_leaves_no_file_under_a_final_name(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    done = subprocess.run([*COMMAND, "--out", tmp_path / "full"], preexec_fn=limit, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "File too large" in done.stderr
    left = content(tmp_path / "full")
    assert MANIFEST not in left and not any(name.endswith(".part") for name in left)
    for name in left:
        pq.read_table(tmp_path / "full" / name)  # what is there is complete
    subprocess.run([*COMMAND, "--out", tmp_path / "full"], check=True, capture_output=True)


def test_one_writer_at_a_time(tmp_path):
    folder = Folder(tmp_path)
    with folder.writing(), pytest.raises(FolderConflict, match="another process"):
        pipeline.generate(SPECS[0], Folder(tmp_path), Local())


@contextmanager
def nobody() -> Iterator[None]:
    """Without the privileges of root, who may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
    except (KeyError, PermissionError):
        pytest.skip("root cannot become another user here")
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_folder(invoke):
    """Not below ``tmp_path``, whose parents only their owner may enter."""
    generate = ("generate", "aor", "--n", 10, "--l", 4, "--d", 20, "--out")
    invoke(*generate, "d")  # imports all modules, which may be where only root can read
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o555)
        with nobody():
            assert not [*Path(place).iterdir()]  # it can be read
            errors = invoke(*generate, Path(place) / "new", check=2).stderr
    assert errors == f"Error: {place}/new: Permission denied\n"


def test_counting_does_not_depend_on_workers():
    spec = Spec("aec", 30, 5, 5000)
    assert (plan(spec, Local(1)).before == plan(spec, Local(2)).before).all()
