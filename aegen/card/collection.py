"""A page that lists a family of datasets: task, N, L, D and their sizes, with links."""

from __future__ import annotations

from urllib.parse import quote

from aegen.core.errors import InvalidSpec
from aegen.dataset.folder import Folder
from aegen.files.places import SCHEME

HEAD = """# The benchmark family

[Text Editing as Imitation Game](https://arxiv.org/abs/2210.12276) as datasets: N integers (2 … N+1), L of them in an
equation, D equations. TG are the expert's trajectories, TA adds those from shifted states.

| dataset | task | N | L | D | pairs | TG steps | TG and TA steps |
|---|---|---:|---:|---:|---:|---:|---:|
"""
EMPTY = "–"


def collection(folders: list[Folder], link: str) -> str:
    """The page; ``link`` leads to a dataset, with ``{name}`` where the name of its folder goes."""
    if "{name}" not in link:
        raise InvalidSpec(f"link={link}: expected {{name}} in it")
    if link.startswith(SCHEME):
        link = f"https://huggingface.co/datasets/{link.removeprefix(SCHEME)}"
    rows = []
    for folder in folders:
        manifest = folder.manifest()
        spec, task = manifest.recipe.spec, manifest.recipe.task
        sizes = [manifest.rows(config) for config in ("pairs", "expert", "augmented")]
        cells = [
            f"[{manifest.recipe.name}]({link.replace('{name}', quote(folder.here.resolve().name))})",
            task,
            *([str(spec.n), str(spec.l), f"{spec.d:,}"] if spec else [EMPTY] * 3),
            *(f"{size:,}" if size else EMPTY for size in sizes),
        ]
        rows.append((task, (spec.n, spec.l, spec.d) if spec else (0, 0, 0), cells))
    return HEAD + "".join(f"| {' | '.join(cells)} |\n" for _, _, cells in sorted(rows))
