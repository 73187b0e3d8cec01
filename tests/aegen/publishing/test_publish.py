"""Publishing, loading and pulling through the real clients over real HTTP, on loopback only."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from aegen.core.errors import BadData, FolderConflict, InvalidSpec
from aegen.core.interrupt import MESSAGE
from aegen.dataset.folder import Folder
from aegen.dataset.recipe import Recipe
from aegen.dataset.verify import verify
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from aegen.publishing.hub import one_line
from aegen.publishing.publish import Target, publish, targets
from aegen.publishing.pull import MAX_COMPANION, pull
from aegen.publishing.storage import Storage
from tests.hub import Hub, Repository

TOKEN = "hf_secret"
WHERE = ("datasets", "org/aec")
LISTED = [
    *(
        "README.md",
        "croissant.json",
        "trajectory-lengths.png",
        "edit-kinds.png",
        "augmented/train-00000-of-00001.parquet",
    ),
    *(f"expert/{split}-00000-of-00001.parquet" for split in ("test", "train", "validation")),
    *(f"pairs/{split}-00000-of-00001.parquet" for split in ("test", "train", "validation")),
    "manifest.json",
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("built")
    for spec in (Spec("aec", 10, 4, 60), Spec("aec", 10, 4, 60, seed=1, rows_per_shard=20)):
        pipeline.build(spec, Folder(place / f"seed{spec.seed}"), Local())
    return place


@pytest.fixture
def here(built, tmp_path):
    """The datasets where the commands run."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def hub():
    with Hub(TOKEN) as hub:
        yield hub


@pytest.fixture
def aegen(run, hub, tmp_path):
    """The command, with a token that must never be seen."""

    def call(*arguments, token=TOKEN, check=0, **extra):
        done = run(*arguments, check=check, env=os.environ | hub.settings(tmp_path / "home", token) | extra)
        assert "hf_" not in done.stdout + done.stderr
        if check:
            assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("Error: "), done.stderr
        else:
            assert done.stderr == ""
        return done.stderr if check else done.stdout

    return call


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def python(code, hub, here, cwd=None):
    """Run a program that uses the real clients."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd or here, capture_output=True, text=True,
        env=os.environ | hub.settings(here / "home"),
    )  # fmt: skip


def downloads(hub):
    return {path.partition("/resolve/")[2].partition("/")[2] for _, path in hub.requests if "/resolve/" in path}


def test_publish_again_load_stream_and_pull(aegen, hub, here):
    assert "published" in aegen("publish", "seed0", "--to", "hf://org/aec", "--tag", "v1")
    repository = hub.repositories[WHERE]
    assert len(repository) == 2 and repository[1] == files(here / "seed0")  # the empty one, and ONE commit
    assert repository.tags == {"v1": 1} and not repository.private
    assert "nothing to do" in aegen("publish", "seed0", "--to", "hf://org/aec", "--tag", "v1")
    assert len(repository) == 2

    assert "-> back" in aegen("pull", "hf://org/aec@v1", "--out", "back")
    assert files(here / "back") == files(here / "seed0")
    assert "verified" in aegen("verify", "back")
    assert "nothing to do" in aegen("pull", "hf://org/aec@v1", "--out", "back")
    aegen("pull", "hf://org/aec@v1", "--out", "again", HF_HUB_OFFLINE="1")  # from the cache
    assert files(here / "again") == files(here / "seed0")

    code = """
import datasets, json
datasets.config.USE_PARQUET_EXPORT = False
found = {}
for config in datasets.get_dataset_config_names("org/aec"):
    for split, rows in datasets.load_dataset("org/aec", config).items():
        found[f"{config}/{split}"] = len(rows)
        streamed = datasets.load_dataset("org/aec", config, split=split, streaming=True)
        assert list(streamed) == list(rows)
print(json.dumps(found))
"""
    done = python(code, hub, here, here / "home")
    assert done.returncode == 0, done.stderr
    manifest = Folder(here / "seed0").manifest()
    assert json.loads(done.stdout.splitlines()[-1]) == {
        name.split("-")[0]: info.rows for name, info in manifest.files.items()
    }


def test_one_commit_whatever_the_client_would_like(hub, here):
    """With its own storage at hand, its upload of a folder is one of several commits."""
    code = """
import huggingface_hub.hf_api
huggingface_hub.hf_api.is_xet_available = lambda *_: True
from aegen.cli import main
main(["publish", "seed0", "--to", "hf://org/aec"])
"""
    done = python(code, hub, here)
    assert done.returncode == 0, done.stderr
    assert [path for method, path in hub.requests if "/commit/" in path] == ["/api/datasets/org/aec/commit/main"]
    assert hub.repositories[WHERE][1:] == [files(here / "seed0")]


@pytest.mark.parametrize(
    ("command", "slow"),
    [
        (("pull", "hf://org/aec", "--out", "back"), "/resolve/"),
        (("publish", "seed1", "--to", "hf://org/new"), "/commit/"),
        (("publish", "seed1", "--to", "hf://org/new", "--workers", "2"), "/objects/"),
    ],
)
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_does_not_wait_for_the_hub(hub, here, command, slow):
    hub.add_folder(*WHERE, here / "seed0")
    answer, asked, ended = hub.answer, threading.Event(), threading.Event()

    def late(method, target, headers, body):
        if slow in target and "manifest" not in target and method != "HEAD":
            asked.set()
            ended.wait(60)
        return answer(method, target, headers, body)

    hub.answer = late
    scratch = tempfile.mkdtemp(prefix="t")  # short, since sockets are made in it
    process = subprocess.Popen(
        [sys.executable, "-m", "aegen", *command], cwd=here, stderr=subprocess.PIPE, text=True,
        env=os.environ | hub.settings(here / "home", TOKEN) | {"TMPDIR": scratch},
    )  # fmt: skip
    try:
        assert asked.wait(60)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=30)[1]  # the answer comes only after the end
    finally:
        process.kill()
        process.wait()
        ended.set()
    assert process.returncode == 130 and errors == f"Error: {MESSAGE}\n"
    Path(scratch).rmdir()  # an error if something is left in it
    assert not list(here.glob("back/**/*.part")) and not (here / "back" / "manifest.json").exists()
    hub.answer = answer
    done = subprocess.run(
        [sys.executable, "-m", "aegen", *command], cwd=here, env=os.environ | hub.settings(here / "home", TOKEN)
    )
    assert done.returncode == 0
    assert (
        hub.repositories["datasets", "org/new"][-1] == files(here / "seed1")
        if slow != "/resolve/"
        else (files(here / "back") == files(here / "seed0"))
    )


@pytest.mark.parametrize("body", [b"<html>Please log in</html>", b"{}", b"[]", b"7"])
def test_an_answer_that_is_no_hubs(aegen, hub, here, body):
    hub.answer = lambda *_: (200, {"Content-Type": "text/html"}, body)
    for command in (("pull", "hf://org/aec", "--out", "back"), ("publish", "seed0", "--to", "hf://org/aec")):
        assert "hf://org/aec: " in aegen(*command, check=1)
    assert not (here / "back").exists()


def test_a_dry_run_sends_nothing(aegen, hub, here):
    before = files(here)
    shown = aegen("publish", "seed0", "--to", "hf://org/aec", "--dry-run")
    assert [line.split()[1] for line in shown.splitlines()[:-1]] == LISTED
    assert files(here) == before and not hub.requests


def test_another_spec_is_refused_unless_told(aegen, hub, here):
    aegen("publish", "seed0", "--to", "hf://org/aec", "--tag", "v1")
    assert "pairs.seed: existing value 0, requested 1" in aegen("publish", "seed1", "--to", "hf://org/aec", check=2)
    assert "tag v1 belongs to another commit" not in aegen("publish", "seed1", "--to", "hf://org/aec", "--force")
    repository = hub.repositories[WHERE]
    assert repository[-1] == files(here / "seed1")  # nothing of the other is left
    assert "tag v1 belongs to another commit" in aegen(
        "publish", "seed1", "--to", "hf://org/aec", "--tag", "v1", check=2
    )
    aegen("publish", "seed1", "--to", "hf://org/aec", "--tag", "v1", "--force")
    assert repository.tags == {"v1": 2} and len(repository) == 3


def test_a_branch_and_a_private_dataset(aegen, hub, here):
    aegen("publish", "seed0", "--to", "hf://org/aec", "--private", "--revision", "draft")
    repository = hub.repositories[WHERE]
    assert repository.private and repository.branches == {"main": 0, "draft": 1} and repository[0] == {}
    assert "no manifest.json" in aegen("pull", "hf://org/aec", "--out", "back", check=2)
    code = "import aegen\ntry:\n    aegen.load('hf://org/aec')\nexcept aegen.BadData as error:\n    print(error)"
    assert "hf://org/aec: no manifest.json" in python(code, hub, here).stdout
    assert "no such dataset, or access denied" in aegen(
        "pull", "hf://org/aec@draft", "--out", "b", token="hf_x", check=2
    )
    aegen("pull", "hf://org/aec@draft", "--out", "back")


def test_wrong_token_missing_repository_and_revision(aegen, hub, here):
    assert "hf://org/aec: " in aegen("publish", "seed0", "--to", "hf://org/aec", token="hf_wrong", check=2)
    assert not hub.repositories
    assert "no such dataset" in aegen("pull", "hf://org/nothing", "--out", "back", check=2)
    hub.add_folder(*WHERE, here / "seed0")
    assert "no such revision" in aegen("pull", "hf://org/aec@v9", "--out", "back", check=2)
    assert not (here / "back").exists()


@pytest.mark.parametrize("where", ["PUT /objects/", "POST .*/commit/", "POST .*/tag/"])
def test_a_hub_that_fails_half_way(aegen, hub, here, where):
    hub.broken = (where, 10**6)
    assert "hf://org/aec: " in aegen("publish", "seed0", "--to", "hf://org/aec", "--tag", "v1", check=1)
    hub.broken = None
    aegen("publish", "seed0", "--to", "hf://org/aec", "--tag", "v1")
    repository = hub.repositories[WHERE]
    assert len(repository) == 2 and repository[1] == files(here / "seed0") and repository.tags == {"v1": 1}


def test_nobody_is_there(aegen, hub, here):
    assert "hf://org/aec: " in aegen(
        "publish", "seed0", "--to", "hf://org/aec", check=1, HF_ENDPOINT="http://127.0.0.1:9"
    )


def test_what_is_not_sound_is_not_published(aegen, hub, here):
    path = here / "seed0" / "pairs" / "test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    assert "altered" in aegen("publish", "seed0", "--to", "hf://org/aec", check=2)
    assert not hub.requests


def test_what_was_altered_on_the_hub_is_not_accepted(aegen, hub, here):
    hub.add_folder(*WHERE, here / "seed0")
    hub.repositories[WHERE][0]["pairs/test-00000-of-00001.parquet"] += b"x"
    assert "pairs/test-00000-of-00001.parquet: altered" in aegen("pull", "hf://org/aec", "--out", "back", check=2)
    assert not (here / "back" / "manifest.json").exists()
    assert downloads(hub) == {"manifest.json"}  # larger than the manifest says: nothing more was fetched
    hub.repositories[WHERE][0] = files(here / "seed0")
    path = "pairs/test-00000-of-00001.parquet"
    hub.repositories[WHERE][0][path] = hub.repositories[WHERE][0][path][:-1] + b"x"
    assert f"{path}: altered" in aegen("pull", "hf://org/aec", "--out", "back", check=2)
    hub.repositories[WHERE][0] = files(here / "seed0") | {"README.md": bytes(MAX_COMPANION + 1)}
    assert "README.md: altered (67,108,865 bytes" in aegen("pull", "hf://org/aec", "--out", "back", check=2)
    assert not (here / "back" / "manifest.json").exists()


def test_only_what_the_manifest_lists_is_downloaded(aegen, hub, here):
    hub.add_folder(*WHERE, here / "seed0")
    listed = files(here / "seed0")
    others = ["more.bin", "pairs/[a-z]*.parquet", "pairs/deep/train-00000-of-00001.parquet", "other/x.parquet"]
    hub.repositories[WHERE][0] |= dict.fromkeys(others, b"x")
    aegen("pull", "hf://org/aec", "--out", "back")
    assert downloads(hub) == set(listed) and files(here / "back") == listed


def test_a_dataset_that_changes_while_it_is_pulled(hub, here):
    hub.add_folder(*WHERE, here / "seed0")
    code = """
import sys
from aegen.publishing.hub import Snapshot
from aegen.publishing.publish import Folder
from aegen.publishing.pull import pull
listed = Snapshot._list

def late(there, client):
    listed(there, client)
    there.commit = "0" * 40  # as if another one had been published before this one's files were asked for

Snapshot._list = late
try:
    pull("hf://org/aec", Folder("back"))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = python(code, hub, here)
    assert "Failed hf://org/aec: changed during the download; rerun the command" in done.stdout, done.stderr
    assert not (here / "back").exists()


def test_several_folders(aegen, hub, here):
    aegen("publish", "seed0", "seed1", "--to", "hf://org")
    assert [files(here / name) for name in ("seed0", "seed1")] == [
        hub.repositories["datasets", f"org/{name}"][-1] for name in ("seed0", "seed1")
    ]


SEVERAL = """
import json, sys
from aegen.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as end:
        print(f"exit {end.code}", file=sys.stderr, flush=True)
"""


def test_what_is_not_ours_is_not_overwritten(hub, here):
    foreign = {
        "card": ("README.md", b"# Mine"),
        "shard": ("pairs/mine.parquet", b"rows"),
        "half": ("manifest.json", b"{"),
    }
    for repository, (name, content) in foreign.items():
        hub.repositories["datasets", f"org/{repository}"] = Repository({name: content})
    hub.repositories["datasets", "org/public"] = Repository({})
    commands = [["publish", "seed0", "--to", f"hf://org/{repository}"] for repository in foreign]
    commands += [["publish", "seed0", "--to", "hf://org/public", "--private"]]
    commands += [["publish", "seed0", "--to", "hf://org/half", "--force"]]
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(commands)],
        cwd=here, capture_output=True, text=True, env=os.environ | hub.settings(here / "home"),
    )  # fmt: skip
    *refused, public, forced = re.split(r"exit \d\n", done.stderr)[:-1]
    assert re.findall(r"exit (\d)\n", done.stderr) == ["2", "2", "2", "2", "0"] and forced == "", done.stderr
    for line, (name, _) in zip(refused, foreign.values(), strict=True):
        assert name in line and "--force replaces" in line
    assert "already exists and is public: make it private first" in public
    lengths = {name: len(repository) for (_, name), repository in hub.repositories.items()}
    assert lengths == {"org/card": 1, "org/shard": 1, "org/half": 2, "org/public": 1}
    assert hub.repositories["datasets", "org/half"][-1] == files(here / "seed0")


def test_a_tag_stays_where_it_is_when_only_the_card_is_new(aegen, hub, here):
    aegen("publish", "seed0", "--to", "hf://org/aec", "--tag", "v1")
    repository = hub.repositories[WHERE]
    repository[1]["README.md"] += b"as an older version rendered it"
    shutil.rmtree(here / "home")  # the cache knows the card that was sent
    assert "tag v1 belongs to another commit" in aegen(
        "publish", "seed0", "--to", "hf://org/aec", "--tag", "v1", check=2
    )
    assert repository.tags == {"v1": 1} and len(repository) == 2
    aegen("publish", "seed0", "--to", "hf://org/aec", "--tag", "v2")
    assert repository.tags == {"v1": 1, "v2": 2} and repository[2] == files(here / "seed0")


def test_no_token_is_shown(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    for text in ("Bearer hf_secret", "Illegal header b'Bearer hf_sec\\x01ret'", "x" * 190 + "hf_secret" + "x" * 50):
        assert "hf_" not in one_line(RuntimeError(text))
    with pytest.raises(InvalidSpec, match="a token in the URL") as refused:
        Target("hf://me:hf_x@org/name")
    assert "hf_x" not in str(refused.value)


def test_a_cache_that_holds_a_part_only(aegen, hub, here):
    """As reading a few files leaves it."""
    hub.add_folder(*WHERE, here / "seed0")
    code = "import huggingface_hub as h; h.hf_hub_download('org/aec', 'manifest.json', repo_type='dataset')"
    subprocess.run([sys.executable, "-c", code], env=os.environ | hub.settings(here / "home"), check=True)
    assert "listed in the manifest but missing" in aegen(
        "pull", "hf://org/aec", "--out", "back", check=2, HF_HUB_OFFLINE="1"
    )
    aegen("pull", "hf://org/aec", "--out", "back")
    assert files(here / "back") == files(here / "seed0")


# Folders and storages, in this process


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder(here, scheme):
    to, seed0, seed1 = f"{scheme}{here}/to", Folder(here / "seed0"), Folder(here / "seed1")
    assert publish(seed0, Target(to), Local()).changed
    assert files(here / "to") == files(here / "seed0")
    assert not publish(seed0, Target(to), Local()).changed
    with pytest.raises(FolderConflict, match="pairs.seed: existing value 0, requested 1"):
        publish(seed1, Target(to), Local())
    assert publish(seed1, Target(to, force=True), Local()).changed
    assert files(here / "to") == files(here / "seed1")
    assert pull(to, Folder(here / "back"))[1] and files(here / "back") == files(here / "seed1")
    with pytest.raises(FolderConflict, match="holds another dataset: .*pairs.rows_per_shard"):
        pull(str(here / "seed0"), Folder(here / "back"))


@pytest.mark.parametrize("kind", ["folder", "storage"])
def test_an_unfinished_build_of_somebody_else_is_not_overwritten(here, kind):
    """Its shards have the names of ours."""
    to = str(here / "to") if kind == "folder" else "memory://bucket/unfinished"
    other = Folder(to)
    pipeline.build(Spec("aec", 10, 4, 60, seed=2), other, Local())
    for name in ("manifest.json", "README.md"):
        (other / name).unlink()
    with pytest.raises(FolderConflict, match=r"pairs.seed: existing value 2, requested 0 \(--force replaces it\)"):
        publish(Folder(here / "seed0"), Target(to), Local())
    assert publish(Folder(here / "seed0"), Target(to, force=True), Local()).changed
    assert pull(to, Folder(here / "back"))[1] and files(here / "back") == files(here / "seed0")


@pytest.mark.parametrize("to", ["to[1]", "memory://bucket/a[1]*"])
def test_a_place_whose_name_looks_like_a_pattern(here, monkeypatch, to):
    monkeypatch.chdir(here)
    seed0, seed1 = Folder(here / "seed0"), Folder(here / "seed1")
    publish(seed1, Target(to), Local())  # in three shards
    publish(seed0, Target(to, force=True), Local())
    assert verify(Folder(to), Local()) and pull(to, Folder(here / "back"))[1]
    assert files(here / "back") == files(here / "seed0")
    if "://" in to:
        to += "/new"
        with Folder(to).writing(Recipe(Spec("aor", 10, 4, 21))), pytest.raises(FolderConflict, match="another spec"):
            pipeline.generate(Spec("aor", 10, 4, 20), Folder(to), Local())


def test_a_name_that_is_not_utf8_is_refused(run):
    done = run("generate", "aor", "--n", 10, "--l", 4, "--d", 20, "--out", os.fsdecode(b"d\xff"), check=2)
    assert done.stderr == "Error: d\\udcff: expected a name in UTF-8\n"


def test_a_storage(here):
    seed0, to = Folder(here / "seed0"), "memory://bucket/seed0"
    assert publish(seed0, Target(to), Local()).changed and not publish(seed0, Target(to), Local()).changed
    assert pull(to, Folder(here / "back"))[1] and files(here / "back") == files(here / "seed0")


def test_an_interrupted_copy_is_finished(here):
    to, seed0 = here / "to", Folder(here / "seed0")
    publish(seed0, Target(str(to)), Local())
    (to / "manifest.json").unlink()
    path = to / "pairs" / "test-00000-of-00001.parquet"
    path.write_bytes(b"x" * path.stat().st_size)
    (to / "expert" / "train-00000-of-00001.parquet").unlink()
    with pytest.raises(BadData, match="no manifest.json"):
        pull(str(to), Folder(here / "back"))
    assert publish(seed0, Target(str(to)), Local()).changed
    assert files(to) == files(here / "seed0")


def test_a_card_that_is_stale_is_rendered_again(here):
    page = here / "seed0" / "README.md"
    current = page.read_bytes()
    page.write_bytes(re.sub(rb"num_examples: \d+", b"num_examples: 7", current))
    publish(Folder(here / "seed0"), Target(str(here / "to")), Local())
    assert page.read_bytes() == current == (here / "to" / "README.md").read_bytes()


def test_more_configs_of_the_same_spec_are_welcome(tmp_path):
    spec, folder, to = Spec("aor", 10, 4, 30), Folder(tmp_path / "d"), Target(str(tmp_path / "to"))
    pipeline.generate(spec, folder, Local())
    publish(folder, to, Local())
    pipeline.build(spec, folder, Local())
    assert publish(folder, to, Local()).changed
    pipeline.generate(spec, Folder(tmp_path / "less"), Local())
    with pytest.raises(FolderConflict, match="holds another dataset: augmented"):
        publish(Folder(tmp_path / "less"), to, Local())


HOSTILE = (
    "../outside.parquet", "/outside.parquet", "pairs/../../train-00000-of-00001.parquet", "pairs/train-\0.parquet",
    "pairs/train-\udc80-of-00001.parquet", "pairs\\train-00000-of-00001.parquet",
    "pairs/train-00000-of-00001.parquet\n",
    "pairs/train-0-of-1.parquet", "other/train-00000-of-00001.parquet", "pairs/" + "train-" * 100 + ".parquet",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_in_a_manifest_leads_out_of_the_folder(tmp_path, name):
    there = tmp_path / "a" / "there"
    there.mkdir(parents=True)
    info = {"rows": 1, "bytes": 1, "sha256": "0" * 64}
    record = {"format": 2, "spec": {"pairs": {"task": "text"}}, "files": {name: info}}
    (there / "manifest.json").write_text(json.dumps(record))
    before = files(tmp_path)
    with pytest.raises(BadData, match="not valid JSON" if "\udc80" in name else "not a shard name") as refused:
        pull(str(there), Folder(tmp_path / "a" / "back"))
    str(refused.value).encode()  # it can be printed
    assert files(tmp_path) == before


def test_no_more_is_taken_than_the_manifest_says(here):
    shard = here / "seed0" / "pairs" / "test-00000-of-00001.parquet"
    with shard.open("ab") as file:
        file.truncate(1 << 40)  # a file without end
    with pytest.raises(BadData, match="altered"):
        pull(str(here / "seed0"), Folder(here / "back"))
    assert sum(path.stat().st_size for path in (here / "back").rglob("*") if path.is_file()) < 1 << 20


@pytest.mark.parametrize("unlisted", [False, True])
def test_what_cannot_be_verified_is_not_taken(here, unlisted):
    """A spec that is none, and a shard that the manifest should list."""
    path = here / "seed1" / "manifest.json"
    manifest = json.loads(path.read_text())
    if unlisted:
        del manifest["files"]["expert/train-00001-of-00003.parquet"]
    else:
        manifest["spec"]["pairs"]["colour"] = "red"
    path.write_text(json.dumps(manifest))
    with pytest.raises(BadData, match="does not list all shards of expert/train" if unlisted else "colour"):
        pull(str(here / "seed1"), Folder(here / "back"))
    assert unlisted or not (here / "back").exists()
    assert not Folder(here / "back").finished


def test_what_an_interrupted_build_left_is_not_overwritten(here):
    shutil.copytree(here / "seed1", here / "mine")
    (here / "mine" / "manifest.json").unlink()
    before = files(here / "mine")
    with pytest.raises(FolderConflict, match="mine holds another dataset: .*pairs.rows_per_shard"):
        pull(str(here / "seed0"), Folder(here / "mine"))
    assert files(here / "mine") == before


def test_half_a_manifest_can_be_replaced(here):
    to, seed0 = here / "to", Folder(here / "seed0")
    publish(seed0, Target(str(to)), Local())
    (to / "manifest.json").write_text("{")
    with pytest.raises(FolderConflict, match="not valid JSON .--force replaces it"):
        publish(seed0, Target(str(to)), Local())
    assert publish(seed0, Target(str(to), force=True), Local()).changed
    assert files(to) == files(here / "seed0")


def test_a_bit_that_a_folder_lost_is_sent_again(here):
    to, seed0 = here / "to", Folder(here / "seed0")
    publish(seed0, Target(str(to)), Local())
    shard = to / seed0.manifest().shards("expert", "train")[0]
    raw = bytearray(shard.read_bytes())
    raw[len(raw) // 2] ^= 1
    shard.write_bytes(raw)
    assert publish(seed0, Target(str(to)), Local()).changed
    assert files(to) == files(here / "seed0")
    assert not publish(seed0, Target(f"file://{to}"), Local()).changed


def test_a_folder_has_one_publisher_at_a_time(here):
    to = here / "to"
    with Folder(to).writing(), pytest.raises(FolderConflict, match="another process is writing"):
        publish(Folder(here / "seed0"), Target(str(to)), Local())
    assert files(to) == {}


def test_a_killed_publisher_leaves_nothing_for_good(here):
    to, seed0 = here / "to", Folder(here / "seed0")
    publish(seed0, Target(str(to)), Local())
    for name in (".manifest.json.0.part", "pairs/.train-00000-of-00001.parquet.0.part"):
        (to / name).write_bytes(b"half")
    assert not publish(seed0, Target(str(to)), Local()).changed
    assert files(to) == files(here / "seed0")


def test_a_rival_that_publishes_something_else_meanwhile_wins(here, monkeypatch):
    to, real = str(here / "to"), Storage.writing

    def late(place):
        monkeypatch.setattr(Storage, "writing", real)
        publish(Folder(here / "seed1"), Target(to), Local())
        return real(place)

    monkeypatch.setattr(Storage, "writing", late)
    with pytest.raises(FolderConflict, match="pairs.seed: existing value 1, requested 0"):
        publish(Folder(here / "seed0"), Target(to), Local())
    assert files(here / "to") == files(here / "seed1")


def test_shards_that_are_not_ours_are_not_removed(here):
    mine = here / "mine" / "pairs" / "train.parquet"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    with pytest.raises(FolderConflict, match="pairs/train.parquet: not part of this dataset"):
        publish(Folder(here / "seed0"), Target(str(here / "mine")), Local())
    assert files(here / "mine") == {"pairs/train.parquet": b"mine"}


def test_targets_that_cannot_be(here):
    for to in ("hf://org", "hf://org/name@v1", "hf://org/name/more", "hf://../name"):
        with pytest.raises(InvalidSpec, match="expected hf://org/name"):
            Target(to)
    with pytest.raises(InvalidSpec, match="for hf://org/name only"):
        Target("folder", tag="v1")
    for name in ("", "a b", "-x", "refs/heads/main"):
        with pytest.raises(InvalidSpec, match="expected letters, digits"):
            Target("hf://org/name", tag=name)
    with pytest.raises(InvalidSpec, match="different names"):
        targets([here / "seed0", here / "seed0"], "hf://org")
    with pytest.raises(FolderConflict, match="the dataset itself"):
        publish(Folder(here / "seed0"), Target(str(here / "seed0")), Local())
    with pytest.raises(InvalidSpec, match="nothing://"):
        publish(Folder(here / "seed0"), Target("nothing://x"), Local())
    (here / "mine").mkdir()
    (here / "mine" / "README.md").write_text("# Mine")
    with pytest.raises(FolderConflict, match="README.md: not part of this dataset"):
        publish(Folder(here / "seed0"), Target(str(here / "mine")), Local())
