"""Publishing to S3, pulling and training from it: the real clients and a real server, on loopback only."""

from __future__ import annotations

import shutil

import pytest

from aegen import pipeline
from aegen.engine import Local
from aegen.folder import Folder
from aegen.spec import Spec
from tests.aegen.test_publish import files


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("built")
    for seed in (0, 1):
        pipeline.build(Spec("aec", 10, 4, 60, seed=seed, rows_per_shard=40), Folder(place / f"seed{seed}"), Local())
    return place


@pytest.fixture
def here(built, tmp_path):
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def aegen(run, s3):
    """The command; the secret must never be seen, and every error is one line."""

    def call(*arguments, check=0, module="aegen"):
        done = run(*arguments, check=check, module=module)
        assert "s3_secret" not in done.stdout + done.stderr
        if check:
            assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("Error: "), done.stderr
        return done.stderr if check else done.stdout

    return call


def writes(s3):
    return [line for line in s3.requests if line.startswith(("PUT", "POST", "DELETE"))]


def test_publish_again_pull_and_train(aegen, s3, bucket, here):
    to = f"{bucket}/data/aec"
    assert f"-> {to}" in aegen("publish", "seed0", "--to", to)
    assert s3.files(to) == files(here / "seed0")
    assert writes(s3)[-1].endswith("/manifest.json")  # last, so that an interrupted one is not taken for finished
    s3.requests.clear()
    assert "nothing to do" in aegen("publish", "seed0", "--to", to)
    assert not writes(s3)
    aegen("pull", to, "--out", "back")
    assert files(here / "back") == files(here / "seed0")
    assert "is sound" in aegen("verify", "back")
    fit = ("--preset", "cpu", "--width", 16, "--layers", 1, "--updates", 2, "--device", "cpu")
    for out, more in (("all", ()), ("streamed", ("--stream",))):
        assert "2 updates" in aegen("fit", to, *fit, *more, "--out", out, module="trainer")
    assert "accuracy" in aegen("evaluate", "all", module="trainer")


def test_another_spec_is_refused_unless_told(aegen, s3, bucket, here):
    to = f"{bucket}/aec"
    aegen("publish", "seed0", "--to", to)
    s3.requests.clear()
    assert "pairs.seed is 0 there, 1 asked" in aegen("publish", "seed1", "--to", to, check=2)
    assert not writes(s3)
    aegen("publish", "seed1", "--to", to, "--force")
    assert s3.files(to) == files(here / "seed1")


@pytest.mark.parametrize("where", ["PUT .*/expert/train-00001", "PUT .*/manifest.json"])
def test_a_storage_that_refuses_half_way(aegen, s3, bucket, here, where):
    to = f"{bucket}/aec"
    aegen("publish", "seed0", "--to", to)
    s3.broken = (where, 10**6)
    aegen("publish", "seed1", "--to", to, "--force", check=2)
    s3.broken = None
    assert "no manifest.json" in aegen("pull", to, "--out", "back", check=2)  # nothing there is taken for finished
    assert "no manifest.json" in aegen("fit", to, "--out", "run", check=2, module="trainer")
    aegen("publish", "seed1", "--to", to)
    assert s3.files(to) == files(here / "seed1")


def test_no_bucket_is_made_by_a_mistyped_name(aegen, s3, bucket, here):
    assert "s3://nobody-has-this" in aegen("publish", "seed0", "--to", "s3://nobody-has-this/aec", check=2)
    assert "nobody-has-this" not in [entry["Name"] for entry in s3.client().list_buckets()["Buckets"]]
    assert "no manifest.json" in aegen("pull", "s3://nobody-has-this/aec", "--out", "back", check=2)
