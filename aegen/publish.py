"""Hand a finished dataset on, and fetch one: the hub, a folder, or any storage that fsspec reaches.

What is published is sound and has a current card; the manifest arrives with the rest (hub) or last (storage).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from aegen import hub, interrupt, storage
from aegen.aside import Aside
from aegen.card import COMPANIONS, Terms, check_card, render, write_companions
from aegen.engine import Engine
from aegen.errors import BadData, FolderConflict, InvalidSpec
from aegen.folder import MANIFEST, MAX_MANIFEST, Folder, Manifest, differences, parse_manifest
from aegen.generate import read_spec
from aegen.progress import Progress, silent
from aegen.remote import Remote, location
from aegen.shards import FileInfo, file_info, file_size
from aegen.verify import check_whole, verify

Opener = Callable[[str], BinaryIO]
MAX_COMPANION = 1 << 26  # bytes of a card, picture or metadata that a reader is willing to take


@dataclass(frozen=True)
class Target:
    """Where to publish, and how."""

    to: str
    private: bool = False
    revision: str | None = None
    tag: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if self.to.startswith(hub.SCHEME):
            if hub.parse(self.to)[1]:
                raise InvalidSpec(f"{self.to}: expected hf://org/name; a branch is given with --revision")
        else:
            place = location(self.to)  # before anything is verified or shown
            if isinstance(place, Remote):
                place.check_writable()
            if self.private or self.revision or self.tag:
                raise InvalidSpec("--private, --revision and --tag are for hf://org/name only")
        for option, name in (("--revision", self.revision), ("--tag", self.tag)):  # before anything is sent
            if name is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.ASCII):
                raise InvalidSpec(f"{option} {name}: expected letters, digits, dots and dashes, for example v1.0")


@dataclass(frozen=True)
class Published:
    """What is there now, and whether anything had to be sent."""

    to: str
    files: dict[str, int]
    changed: bool
    commit: str | None = None

    @property
    def bytes(self) -> int:
        return sum(self.files.values())


def targets(folders: list[Path], to: str, **settings: Any) -> list[tuple[Folder, Target]]:
    """One folder goes to the place itself, several go below it, each under its own name."""
    if len(folders) == 1:
        return [(Folder(folders[0]), Target(to, **settings))]
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        raise InvalidSpec(f"{', '.join(map(str, folders))}: expected folders with different names")
    places = [Target(f"{to.rstrip('/')}/{name}", **settings) for name in names]
    return list(zip(map(Folder, folders), places, strict=True))


def publish(
    folder: Folder, target: Target, engine: Engine, progress: Progress = silent, dry_run: bool = False
) -> Published:
    """Verify, render the card, send what is missing. Again, it changes nothing; interrupted, it can be run again."""
    verify(folder, engine, progress)
    manifest = folder.manifest()
    made = render(folder, manifest, Terms.of(folder, manifest), engine)
    check_card(folder)
    files = {name: len(made[name]) for name in made}
    files |= {name: info.bytes for name, info in sorted(manifest.files.items())}
    files |= {MANIFEST: file_size(folder / MANIFEST)}
    if dry_run:
        return Published(target.to, files, False)
    if any(not (folder / name).is_file() or (folder / name).read_bytes() != made[name] for name in made):
        with folder.writing():
            if folder.manifest() != manifest:
                raise FolderConflict(f"{folder.path}: it has changed since it was verified; run the same command again")
            write_companions(folder, made)
    stale = [name for name in COMPANIONS if name not in made]
    if target.to.startswith(hub.SCHEME):

        def send() -> tuple[str, bool]:
            place = hub.Repository.open(target.to, target.private, target.revision)
            same = _replaceable(target, place, manifest) == manifest and all(
                place.content(name) == made.get(name) for name in COMPANIONS
            )
            return place.send(folder, list(files), stale, target.tag, target.force, same)

        commit, changed = interrupt.beside(send)
        return Published(target.to, files, changed, commit)
    where = storage.Place.open(target.to)
    if where.is_folder(folder.here):
        raise FolderConflict(f"{target.to}: this is the dataset itself")
    _replaceable(target, where, manifest)  # before anything is touched there
    with where.writing():
        there = _replaceable(target, where, manifest)
        return Published(target.to, files, where.send(folder, list(files), stale, manifest, there))


def _replaceable(target: Target, place: hub.Repository | storage.Place, manifest: Manifest) -> Manifest | None:
    """The manifest there. What was made from another spec, or not by us, is not overwritten unless told.

    More configs of the same spec are welcome.
    """
    try:
        there = place.manifest()
    except BadData as error:
        if target.force:
            return None
        raise FolderConflict(f"{error} (--force replaces it)") from None
    if target.force:
        return there
    if there is None:
        try:
            name = place.foreign(manifest)
        except FolderConflict as error:
            raise FolderConflict(f"{error} (--force replaces it)") from None
        if name:
            raise FolderConflict(f"{target.to}/{name}: not of this dataset (--force replaces what is there)")
        return None
    found = differences(there.spec, {key: entry for key, entry in manifest.spec.items() if key in there.spec})
    if found:
        raise FolderConflict(f"{target.to} holds another dataset: {'; '.join(found)} (--force replaces it)")
    return there


def pull(source: str, out: Folder, progress: Progress = silent) -> tuple[Manifest, bool]:
    """Bring a published dataset into a folder, whole; nothing that arrives is trusted.

    It ends with all checks of ``verify`` but those that read every row.
    """
    out.check_writable()
    place: hub.Snapshot | storage.Place
    if source.startswith(hub.SCHEME):
        place = interrupt.beside(lambda: hub.Snapshot.open(source))
    else:
        place = storage.Place.open(source)
    try:
        with place.read(MANIFEST) as file:
            raw = file.read(MAX_MANIFEST + 1)
    except FileNotFoundError:
        raise BadData(f"{source}: no {MANIFEST}, so no finished dataset is there") from None
    manifest = parse_manifest(raw, f"{source}/{MANIFEST}")
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


def _pulled(out: Folder, manifest: Manifest) -> bool:
    """Whether all of it is there already; an error if the folder holds something else."""
    if out.finished:
        if out.manifest() != manifest:
            found = "; ".join(differences(out.manifest().spec, manifest.spec)) or "other files"
            raise FolderConflict(f"{out.path} holds another dataset: {found}")
        return True
    read_spec(manifest.spec, MANIFEST)  # before anything is fetched
    check_card(out)
    out.check_same(manifest.spec)  # what an interrupted build left is not overwritten
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
