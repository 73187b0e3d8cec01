"""A page that lists a family of datasets: task, N, L, D and their sizes, with links."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from aegen.card.render import TEMPLATES
from aegen.core.errors import InvalidSpec
from aegen.dataset.folder import Folder
from aegen.files.places import SCHEME


@dataclass(frozen=True, order=True)
class Listed:
    """One dataset of the page; ``numbers`` are N, L, D and sizes, 0 where there is none."""

    task: str
    numbers: tuple[int, ...]
    name: str
    link: str


def collection(folders: list[Folder], link: str) -> str:
    """The page; ``link`` leads to a dataset, with ``{name}`` in place of the name of its folder."""
    if "{name}" not in link:
        raise InvalidSpec(f"link={link}: expected {{name}} in it")
    if link.startswith(SCHEME):
        link = f"https://huggingface.co/datasets/{link.removeprefix(SCHEME)}"
    return TEMPLATES.get_template("collection.md").render(datasets=sorted(_listed(one, link) for one in folders))


def _listed(folder: Folder, link: str) -> Listed:
    manifest = folder.manifest()
    spec = manifest.recipe.spec
    return Listed(
        manifest.recipe.task,
        (
            *((spec.n, spec.l, spec.d) if spec else (0, 0, 0)),
            *(manifest.rows(config) for config in ("pairs", "expert", "augmented")),
        ),
        manifest.recipe.name,
        quote(link.replace("{name}", quote(folder.here.resolve().name)), safe="/:@?=&#%~+,;"),
    )
