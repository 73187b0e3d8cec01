"""The files beside a dataset's shards that are rendered from them: their names, and how they get into the folder.

The manifest does not list them: they can be rendered again from the shards at any time.
"""

from __future__ import annotations

from aegen.core.errors import FolderConflict
from aegen.dataset.folder import Folder
from aegen.files.atomic import AtomicFile

CARD = "README.md"
CROISSANT = "croissant.json"
LENGTHS, KINDS = "trajectory-lengths.png", "edit-kinds.png"
COMPANIONS = (CARD, CROISSANT, LENGTHS, KINDS)
MARK = "<!-- Rendered by `aegen card`"  # tells our cards from other people's pages


def read_card(folder: Folder) -> str | None:
    """The text of the folder's card, if there is one."""
    path = folder / CARD
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


def check_card(folder: Folder) -> None:
    """Refuse to overwrite a page that aegen did not render."""
    page = read_card(folder)
    if page is not None and MARK not in page:
        raise FolderConflict(f"{folder / CARD}: not rendered by aegen; move it away first")


def write_companions(folder: Folder, made: dict[str, bytes]) -> None:
    """Write the rendered files, and remove those of an earlier rendering; unchanged files are not touched."""
    check_card(folder)
    for name in COMPANIONS:
        path = folder / name
        if name not in made:
            path.unlink(missing_ok=True)
        elif not path.is_file() or path.read_bytes() != made[name]:
            with AtomicFile(path) as aside:
                aside.write_bytes(made[name])
