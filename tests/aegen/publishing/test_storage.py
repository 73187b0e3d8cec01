"""Publishing to S3, pulling and training from it: the real clients and a real server, on loopback only."""

from __future__ import annotations

import shutil

import pytest

from aegen.core.errors import BadData, Failed, FolderConflict, InvalidSpec, NoAccess
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from aegen.publishing.publish import Target, publish
from aegen.publishing.pull import pull
from tests.aegen.publishing.test_publish import files
from trainer.core.errors import BadData as BadShards
from trainer.core.format import STEP_COLUMNS
from trainer.data.dataset import Dataset
from trainer.publishing.publish import publish as publish_agent
from trainer.training.run import find_folder


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


@pytest.mark.faults
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
    fit = ("--preset", "cpu", "--width", 16, "--layers", 1, "--updates", 2, "--device", "cpu")
    assert "2 updates" in aegen("fit", to, *fit, "--stream", "--out", "run", module="trainer")
    there, local = Dataset(to), Dataset(here / "seed0")
    for shard in local.select("augmented", "train"):
        assert there.read(shard, STEP_COLUMNS) == local.read(shard, STEP_COLUMNS)


# The rest in this process: a command takes seconds to start


def test_another_spec_is_refused_unless_told(s3, bucket, here):
    to, seed0, seed1 = f"{bucket}/aec", Folder(here / "seed0"), Folder(here / "seed1")
    publish(seed0, Target(to), Local())
    s3.requests.clear()
    with pytest.raises(FolderConflict, match="pairs.seed: existing value 0, requested 1"):
        publish(seed1, Target(to), Local())
    assert not writes(s3)
    assert publish(seed1, Target(to, force=True), Local()).changed
    assert s3.files(to) == files(here / "seed1")


@pytest.mark.parametrize("where", ["PUT .*/expert/train-00001", "PUT .*/manifest.json"])
def test_a_storage_that_refuses_half_way(s3, bucket, here, where):
    to, seed1 = f"{bucket}/aec", Folder(here / "seed1")
    publish(Folder(here / "seed0"), Target(to), Local())
    s3.broken = (where, 10**6)
    with pytest.raises(NoAccess, match=f"{to}/.*: no access"):
        publish(seed1, Target(to, force=True), Local())
    s3.broken = None
    with pytest.raises(BadData, match="no manifest.json"):  # nothing there is taken for finished
        pull(to, Folder(here / "back"))
    with pytest.raises(BadShards, match="no manifest.json"):
        Dataset(to)
    assert publish(seed1, Target(to), Local()).changed
    assert s3.files(to) == files(here / "seed1")


def test_what_is_missing_is_sent_again_and_the_manifest_after_it(s3, bucket, here):
    to, seed0 = f"{bucket}/aec", Folder(here / "seed0")
    publish(seed0, Target(to), Local())
    shard = seed0.manifest().shards("pairs", "test")[0]
    s3.client().delete_object(Bucket=bucket.removeprefix("s3://"), Key=f"aec/{shard}")
    s3.requests.clear()
    assert publish(seed0, Target(to), Local()).changed
    name = f"{to.removeprefix('s3:/')}"
    assert writes(s3) == [f"DELETE {name}/manifest.json", f"PUT {name}/{shard}", f"PUT {name}/manifest.json"]
    assert s3.files(to) == files(here / "seed0")


def test_no_bucket_is_made_by_a_mistyped_name(s3, here):
    with pytest.raises(NoAccess, match="s3://nobody-has-this/aec: no such place"):
        publish(Folder(here / "seed0"), Target("s3://nobody-has-this/aec"), Local())
    assert "nobody-has-this" not in [entry["Name"] for entry in s3.client().list_buckets()["Buckets"]]


def test_nobody_is_there(aegen, here, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    assert "s3://bucket/aec/manifest.json: " in aegen("pull", "s3://bucket/aec", "--out", "back", check=1)
    assert "s3://bucket/aec: " in aegen("fit", "s3://bucket/aec", "--out", "run", check=2, module="trainer")


@pytest.mark.parametrize(
    ("cut", "code", "commands"),
    [
        (False, 2, ["verify", "show"]),
        # s3fs itself waits for ten seconds before it gives a cut connection up
        pytest.param(True, 1, ["verify", "show"], marks=pytest.mark.faults),
    ],
)
def test_a_storage_that_fails_while_a_shard_is_read(aegen, s3, bucket, here, monkeypatch, cut, code, commands):
    """It is not taken for a damaged shard: that would not be tried again on a cluster."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    to = f"{bucket}/aec"
    publish(Folder(here / "seed0"), Target(to), Local())
    s3.broken, s3.cut = ("GET .*parquet", 10**6), cut
    for command in commands:
        said = aegen(command, to, check=code)
        assert f"Error: {to}/" in said and ".parquet: " in said and "Parquet file" not in said


def test_nothing_is_written_where_one_can_only_read(here):
    for write in (
        lambda url: publish(Folder(here / "seed0"), Target(url), Local()),
        lambda url: pipeline.generate(Spec("aor", 10, 4, 20), Folder(url), Local()),
        lambda url: pull(str(here / "seed0"), Folder(url)),
    ):
        with pytest.raises(InvalidSpec, match="https can only be read"):
            write("https://127.0.0.1:9/x")


def test_a_password_in_a_url_is_refused_and_not_shown(here):
    urls = [f"s3://{me}@127.0.0.1/x" for me in ("me:pa55", "me:wo/pa55", "pa55", "me:pa55@more")]
    urls += ["simplecache::ftp://me:pa55@127.0.0.1/x", "https://host/x?token=pa55", "https://host/x#token=pa55"]
    for url in urls:
        for use in (
            lambda url: pull(url, Folder(here / "back")),
            lambda url: publish(Folder(here / "seed0"), Target(url), Local(), dry_run=True),
            Folder,
            Dataset,
            find_folder,
            lambda url: publish_agent(here, url),
        ):
            with pytest.raises((InvalidSpec, BadShards), match="a password in the URL") as refused:
                use(url)
            assert "pa55" not in f"{refused.value}"
    for url in ("hf://me:pa55@org/name", "hf://pa55@org/name", "hf://org/name?token=pa55"):
        for use in (lambda url: pull(url, Folder(here / "back")), Folder, Dataset):
            with pytest.raises((InvalidSpec, BadShards)) as refused:
                use(url)
            assert "pa55" not in f"{refused.value}"


def test_a_password_is_refused_by_all_commands(aegen, here):
    for url in ("s3://AKIAKEY:s3_secret@bucket/x", "s3://AKIAKEY:s3/s3_secret@bucket/x", "https://host/x?t=s3_secret"):
        build = ("build", "aor", "--n", 10, "--l", 4, "--d", 20, "--out", url)
        commands = [
            build,
            ("verify", url),
            ("card", url),
            ("pull", "seed0", "--out", url),
            ("publish", url, "--to", "x"),
        ]
        for command in commands:
            assert "a password in the URL" in aegen(*command, check=2)
        assert "a password in the URL" in aegen("fit", url, "--out", "run", check=2, module="trainer")


def test_errors_of_a_storage_show_no_password(here, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("cannot reach https://me:pa/55@host/x nor 'https://host/x?sig=pa55&more'")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.isfile", fail)
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.open", fail)
    with pytest.raises(
        Failed, match=r"memory://d/manifest.json: cannot reach https://…@host/x nor 'https://host/x\?…'"
    ):
        assert Folder("memory://d").finished
    with pytest.raises(Failed, match="cannot reach https://…@host/x nor"):
        pull("memory://d", Folder(here / "back"))
    with pytest.raises(BadShards, match="cannot reach https://…@host/x nor"):
        Dataset("memory://d")
