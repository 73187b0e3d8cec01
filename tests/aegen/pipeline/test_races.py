"""Two writers of one folder: what one saw before it held the folder does not count; the other may have changed it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from aegen.cli import main
from aegen.core.errors import FolderConflict
from aegen.core.format import MANIFEST
from aegen.dataset.folder import Folder
from aegen.dataset.verify import verify
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from aegen.publishing.publish import Target, publish
from aegen.publishing.pull import pull
from tests.aegen.pairs.test_generate import content

SPEC = Spec("aor", 10, 4, 100, rows_per_shard=30)
OTHER = Spec("aor", 10, 4, 200, rows_per_shard=20)  # with shards of other names


@pytest.fixture
def meanwhile(monkeypatch):
    """Let a rival do something at the last moment before the next writer holds its folder."""

    def wait(rival):
        real = Folder.writing

        @contextmanager
        def late(self, *spec):
            monkeypatch.setattr(Folder, "writing", real)
            rival()
            with real(self, *spec):
                yield

        monkeypatch.setattr(Folder, "writing", late)

    return wait


def build(spec, out):
    return pipeline.build(spec, Folder(out), Local())


@pytest.mark.parametrize("unfinished", [False, True])
def test_builds_of_two_specs_do_not_mix(meanwhile, tmp_path, unfinished):
    out = tmp_path / "d"

    def rival():
        build(OTHER, out)
        if unfinished:
            (out / MANIFEST).unlink()

    meanwhile(rival)
    with pytest.raises(FolderConflict, match="pairs.d: existing value 200, requested 100"):
        build(SPEC, out)
    build(OTHER, out)
    build(OTHER, tmp_path / "alone")
    assert content(out) == content(tmp_path / "alone")


def test_what_the_rival_has_built_is_not_built_again(meanwhile, tmp_path):
    meanwhile(lambda: build(SPEC, tmp_path))
    assert build(SPEC, tmp_path)[1] is False


ADDED = {
    "expert": lambda folder: pipeline.add_demonstrations(folder, pipeline.demonstrator("aor"), Local()),
    "tags": lambda folder: pipeline.add_demonstrations(folder, pipeline.demonstrator("text", design="tags"), Local()),
    "augmented": lambda folder: build(SPEC, folder.path),
}


@pytest.mark.parametrize(
    "mine,rivals", [("tags", "expert"), ("expert", "tags"), ("augmented", "tags"), ("tags", "augmented")]
)
def test_what_a_rival_adds_stays(meanwhile, tmp_path, mine, rivals):
    folder = Folder(tmp_path / "d")
    pipeline.generate(SPEC, folder, Local())
    meanwhile(lambda: ADDED[rivals](folder))
    manifest, worked = ADDED[mine](folder)
    assert worked and {mine, rivals} <= set(manifest.configs) == set(folder.manifest().configs)
    verify(folder, Local())
    in_turn = Folder(tmp_path / "in turn")
    for add in (lambda folder: pipeline.generate(SPEC, folder, Local()), ADDED[rivals], ADDED[mine]):
        add(in_turn)
    assert content(tmp_path / "d") == content(tmp_path / "in turn")


def test_an_expert_is_not_augmented_for_other_pairs(meanwhile, tmp_path):
    folder = Folder(tmp_path / "d")
    pipeline.generate(SPEC, folder, Local())
    pipeline.add_demonstrations(folder, pipeline.demonstrator("aor"), Local())

    def rival():
        shutil.rmtree(tmp_path / "d")
        build(OTHER, tmp_path / "d")

    meanwhile(rival)
    with pytest.raises(FolderConflict, match="holds another dataset: pairs.d"):
        pipeline.add_augmented(folder, Augmentation(), Local())
    verify(folder, Local())


def test_imports_of_two_files_do_not_mix(meanwhile, tmp_path):
    wanted = []
    for name, rows, size in (("a", 30, 10), ("b", 50, 7)):
        path = tmp_path / f"{name}.csv"
        path.write_text("source,target\n" + "".join(f"{name} {row},{name}\n" for row in range(rows)))
        wanted.append(Import((path,), rows_per_shard=size))
    folder = Folder(tmp_path / "d")
    meanwhile(lambda: pipeline.import_pairs(wanted[1], folder))
    with pytest.raises(FolderConflict, match="holds another dataset"):
        pipeline.import_pairs(wanted[0], folder)
    verify(folder, Local())


def test_nothing_is_pulled_into_what_a_rival_made(meanwhile, tmp_path):
    build(SPEC, tmp_path / "there")
    meanwhile(lambda: build(OTHER, tmp_path / "d"))
    with pytest.raises(FolderConflict, match="holds another dataset: pairs.d: existing value 200, requested 100"):
        pull(str(tmp_path / "there"), Folder(tmp_path / "d"))
    build(OTHER, tmp_path / "alone")
    assert content(tmp_path / "d") == content(tmp_path / "alone")
    meanwhile(lambda: pull(str(tmp_path / "there"), Folder(tmp_path / "e")))
    assert pull(str(tmp_path / "there"), Folder(tmp_path / "e"))[1] is False


def test_a_card_is_of_what_is_there_now(meanwhile, tmp_path):
    folder = Folder(tmp_path / "d")
    pipeline.generate(SPEC, folder, Local())
    meanwhile(lambda: build(SPEC, tmp_path / "d"))
    assert CliRunner().invoke(main, ["card", str(tmp_path / "d")]).exit_code == 0
    build(SPEC, tmp_path / "alone")
    assert content(tmp_path / "d") == content(tmp_path / "alone")


def test_what_changes_after_it_was_verified_is_not_published(meanwhile, tmp_path):
    folder = Folder(tmp_path / "d")
    pipeline.generate(SPEC, folder, Local())
    (tmp_path / "d" / "README.md").unlink()
    meanwhile(lambda: build(SPEC, tmp_path / "d"))
    with pytest.raises(FolderConflict, match="changed since it was verified"):
        publish(folder, Target(str(tmp_path / "there")), Local())
    assert not (tmp_path / "there").exists()
    build(SPEC, tmp_path / "alone")
    assert content(tmp_path / "d") == content(tmp_path / "alone")
