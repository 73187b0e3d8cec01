"""Publish a finished dataset: to the hub, a folder, or an object store.

It is verified first and its card is current; the manifest arrives with the rest (hub) or last (storage).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aegen.card.companions import COMPANIONS, check_card, write_companions
from aegen.card.header import Terms
from aegen.card.render import render
from aegen.core import interrupt
from aegen.core.errors import BadData, FolderConflict, InvalidSpec
from aegen.core.format import MANIFEST
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.recipe import differences
from aegen.dataset.verify import verify
from aegen.engines.engine import Engine
from aegen.files.places import SCHEME, Remote, file_size, location
from aegen.publishing import hub, storage


@dataclass(frozen=True)
class Target:
    """Where to publish, and how."""

    to: str
    private: bool = False
    revision: str | None = None
    tag: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if self.to.startswith(SCHEME):
            if hub.parse(self.to)[1]:
                raise InvalidSpec(f"{self.to}: expected hf://org/name; use --revision for a branch")
        else:
            place = location(self.to)  # rejected before anything is verified or shown
            if isinstance(place, Remote):
                place.check_writable()
            if self.private or self.revision or self.tag:
                raise InvalidSpec("--private, --revision and --tag are for hf://org/name only")
        for option, name in (("--revision", self.revision), ("--tag", self.tag)):  # before anything is sent
            if name is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.ASCII):
                raise InvalidSpec(f"{option} {name}: expected letters, digits, dots and dashes, for example v1.0")

    @property
    def repository(self) -> str | None:
        """The hub repository, as its card names it."""
        return hub.repository_id(self.to, self.revision) if self.to.startswith(SCHEME) else None


@dataclass(frozen=True)
class Published:
    """What is published, and whether anything had to be sent."""

    to: str
    files: dict[str, int]
    changed: bool
    commit: str | None = None

    @property
    def bytes(self) -> int:
        return sum(self.files.values())


def targets(folders: list[Path], to: str, **settings: Any) -> list[tuple[Folder, Target]]:
    """One folder is published to the place itself, several below it, each under its own name."""
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
    """Verify, render the card, send what is missing. A rerun changes nothing, or resumes after an interrupt."""
    verify(folder, engine, progress)
    manifest = folder.manifest()
    made = render(folder, manifest, Terms.of(folder, manifest), engine, repository=target.repository)
    check_card(folder)
    files = {name: len(made[name]) for name in made}
    files |= {name: info.bytes for name, info in sorted(manifest.files.items())}
    files |= {MANIFEST: file_size(folder / MANIFEST)}
    if dry_run:
        return Published(target.to, files, False)
    if any(not (folder / name).is_file() or (folder / name).read_bytes() != made[name] for name in made):
        with folder.writing():
            if folder.manifest() != manifest:
                raise FolderConflict(f"{folder.path}: changed since it was verified; rerun the command")
            write_companions(folder, made)
    stale = [name for name in COMPANIONS if name not in made]
    if target.to.startswith(SCHEME):
        with interrupt.leaving():
            place = hub.Repository.open(target.to, target.private, target.revision)
            same = _replaceable(target, place, manifest) == manifest and all(
                place.content(name) == made.get(name) for name in COMPANIONS
            )
            commit, changed = place.send(folder, list(files), stale, target.tag, target.force, same)
        return Published(target.to, files, changed, commit)
    where = storage.Storage.open(target.to)
    if where.is_folder(folder.here):
        raise FolderConflict(f"{target.to}: is the dataset itself; choose another place")
    _replaceable(target, where, manifest)  # before anything there is changed
    with where.writing():
        there = _replaceable(target, where, manifest)
        return Published(target.to, files, where.send(folder, list(files), stale, manifest, there))


def _replaceable(target: Target, place: hub.Repository | storage.Storage, manifest: Manifest) -> Manifest | None:
    """The manifest there. Files of another spec or not made by aegen are only overwritten with --force.

    More configs of the same spec may be added.
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
            raise FolderConflict(f"{target.to}/{name}: not part of this dataset (--force replaces it)")
        return None
    existing, requested = there.recipe.tree(), manifest.recipe.tree()
    found = differences(existing, {key: entry for key, entry in requested.items() if key in existing})
    if found:
        raise FolderConflict(f"{target.to} holds another dataset: {'; '.join(found)} (--force replaces it)")
    return there
