"""Bring a published dataset into a folder, whole; nothing that arrives is trusted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from aegen.card.render import COMPANIONS, check_card
from aegen.core import interrupt
from aegen.core.description import FileInfo
from aegen.core.errors import BadData, FolderConflict
from aegen.core.format import MANIFEST, MAX_MANIFEST
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest, file_info
from aegen.dataset.recipe import differences
from aegen.dataset.verify import check_whole
from aegen.files.atomic import Aside
from aegen.files.places import SCHEME
from aegen.publishing import hub, storage

Opener = Callable[[str], BinaryIO]
MAX_COMPANION = 1 << 26  # bytes of a card, picture or metadata that a reader is willing to take


def pull(source: str, out: Folder, progress: Progress = silent) -> tuple[Manifest, bool]:
    """Bring a published dataset into a folder, whole; nothing that arrives is trusted.

    It ends with all checks of ``verify`` but those that read every row.
    """
    out.check_writable()
    place: hub.Snapshot | storage.Place
    if source.startswith(SCHEME):
        place = interrupt.beside(lambda: hub.Snapshot.open(source))
    else:
        place = storage.Place.open(source)
    try:
        with place.read(MANIFEST) as file:
            raw = file.read(MAX_MANIFEST + 1)
    except FileNotFoundError:
        raise BadData(f"{source}: no {MANIFEST}, so no finished dataset is there") from None
    manifest = Manifest.read(raw, f"{source}/{MANIFEST}")
    if _pulled(out, manifest):
        return manifest, False
    with out.writing():
        if _pulled(out, manifest):  # before the folder was ours, anybody could write to it
            return manifest, False
        missing = {
            name: wanted
            for name, wanted in manifest.files.items()
            if not (out / name).is_file() or file_info(out / name, wanted.rows) != wanted
        }
        if isinstance(place, hub.Snapshot):
            most = {name: info.bytes for name, info in missing.items()} | dict.fromkeys(COMPANIONS, MAX_COMPANION)
            interrupt.beside(partial(place.fetch, most, progress))
        for name, wanted in missing.items():
            try:
                _copy(source, place.read, name, out, wanted)
            except FileNotFoundError:
                raise BadData(f"{source}/{name}: the manifest lists it, but it is not there") from None
        for name in COMPANIONS:
            try:
                _copy(source, place.read, name, out)
            except FileNotFoundError:
                (out / name).unlink(missing_ok=True)
        check_whole(out, manifest)
        with Aside(out / MANIFEST) as aside:
            aside.write_bytes(raw)
    return manifest, True


def download(source: str, progress: Progress = silent) -> Path:
    """The folder of a published dataset in the cache of huggingface_hub, downloaded if it is not there."""
    place = hub.Snapshot.open(source)
    with place.read(MANIFEST) as file:
        manifest = Manifest.read(file.read(MAX_MANIFEST + 1), f"{source}/{MANIFEST}")
    place.fetch({name: info.bytes for name, info in manifest.files.items()}, progress)
    assert place.folder
    return place.folder


def _pulled(out: Folder, manifest: Manifest) -> bool:
    """Whether all of it is there already; an error if the folder holds something else."""
    if out.finished:
        if out.manifest() != manifest:
            found = "; ".join(differences(out.manifest().recipe.tree(), manifest.recipe.tree())) or "other files"
            raise FolderConflict(f"{out.path} holds another dataset: {found}")
        return True
    check_card(out)
    out.check_same(manifest.recipe)  # what an interrupted build left is not overwritten
    return False


def _copy(source: str, opener: Opener, name: str, out: Folder, wanted: FileInfo | None = None) -> None:
    left = wanted.bytes if wanted else MAX_COMPANION
    with opener(name) as file, Aside(out / name) as aside:
        with aside.open("wb") as copy:
            while left >= 0 and (part := file.read(1 << 20)):
                left -= len(part)
                copy.write(part)
        if left < 0 or (wanted and file_info(aside, wanted.rows) != wanted):
            said = "its content is not what the manifest says" if wanted else f"more than {MAX_COMPANION:,} bytes"
            raise BadData(f"{source}/{name}: altered ({said})")
