"""Download a published dataset into a folder; its files are not trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from aegen.card.companions import COMPANIONS, check_card
from aegen.core import interrupt
from aegen.core.description import FileInfo
from aegen.core.errors import BadData, FolderConflict
from aegen.core.format import MANIFEST, MAX_MANIFEST
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest, file_info
from aegen.dataset.recipe import differences
from aegen.dataset.verify import check_whole
from aegen.files.atomic import AtomicFile
from aegen.files.places import SCHEME
from aegen.publishing import hub, storage

Opener = Callable[[str], BinaryIO]
MAX_COMPANION = 1 << 26  # bytes of a card, picture or metadata file


def pull(source: str, out: Folder, progress: Progress = silent) -> tuple[Manifest, bool]:
    """Download a published dataset into a folder; its files are not trusted.

    All checks of ``verify`` are made but those that read every row.
    """
    out.check_writable()
    place: hub.Snapshot | storage.Storage
    with interrupt.leaving():
        place = hub.Snapshot.open(source) if source.startswith(SCHEME) else storage.Storage.open(source)
    raw, manifest = _manifest(source, place)
    if _pulled(out, manifest):
        return manifest, False
    with out.writing():
        if _pulled(out, manifest):  # another process may have written to it before it was locked
            return manifest, False
        missing = {
            name: wanted
            for name, wanted in manifest.files.items()
            if not (out / name).is_file() or file_info(out / name, wanted.rows) != wanted
        }
        if isinstance(place, hub.Snapshot):
            most = {name: info.bytes for name, info in missing.items()} | dict.fromkeys(COMPANIONS, MAX_COMPANION)
            with interrupt.leaving():
                place.fetch(most, progress)
        for name, wanted in missing.items():
            try:
                _copy(source, place.read, name, out, wanted)
            except FileNotFoundError:
                raise BadData(f"{source}/{name}: listed in the manifest but missing") from None
        for name in COMPANIONS:
            try:
                _copy(source, place.read, name, out)
            except FileNotFoundError:
                (out / name).unlink(missing_ok=True)
        check_whole(out, manifest)
        with AtomicFile(out / MANIFEST) as aside:
            aside.write_bytes(raw)
    return manifest, True


def open_folder(where: Path | str) -> Folder:
    """A dataset to read: a folder, ``hf://org/name[@revision]``, which is downloaded into the cache, or a URL."""
    return Folder(download(where) if isinstance(where, str) and where.startswith(SCHEME) else where)


def download(source: str) -> Path:
    """The folder of a published dataset in the cache of huggingface_hub, downloaded if it is not there."""
    place = hub.Snapshot.open(source)
    _, manifest = _manifest(source, place)
    place.fetch({name: info.bytes for name, info in manifest.files.items()})
    assert place.folder
    return place.folder


def _manifest(source: str, place: hub.Snapshot | storage.Storage) -> tuple[bytes, Manifest]:
    """The manifest of a published dataset, as it is and as we read it."""
    try:
        with place.read(MANIFEST) as file:
            raw = file.read(MAX_MANIFEST + 1)
    except FileNotFoundError:
        raise BadData(f"{source}: no {MANIFEST}, so this is not a finished dataset") from None
    return raw, Manifest.read(raw, f"{source}/{MANIFEST}")


def _pulled(out: Folder, manifest: Manifest) -> bool:
    """Whether all of it is already there; an error if the folder holds something else."""
    if out.finished:
        if out.manifest() != manifest:
            found = "; ".join(differences(out.manifest().recipe.tree(), manifest.recipe.tree())) or "other files"
            raise FolderConflict(f"{out.path} holds another dataset: {found}")
        return True
    check_card(out)
    out.check_same(manifest.recipe)  # files of an interrupted build are not overwritten
    return False


def _copy(source: str, opener: Opener, name: str, out: Folder, wanted: FileInfo | None = None) -> None:
    left = wanted.bytes if wanted else MAX_COMPANION
    with opener(name) as file, AtomicFile(out / name) as aside:
        with aside.open("wb") as copy:
            while left >= 0 and (part := file.read(1 << 20)):
                left -= len(part)
                copy.write(part)
        if left < 0 or (wanted and file_info(aside, wanted.rows) != wanted):
            said = "does not match the manifest" if wanted else f"more than {MAX_COMPANION:,} bytes"
            raise BadData(f"{source}/{name}: altered ({said})")
