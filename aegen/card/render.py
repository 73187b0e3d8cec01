"""The card of a dataset: README.md, its pictures and croissant.json, a pure function of the shards."""

from __future__ import annotations

from aegen.card import pictures
from aegen.card.companions import CARD, CROISSANT, write_companions
from aegen.card.croissant import croissant
from aegen.card.facts import Totals, check, count, gather
from aegen.card.header import PAPER_URL, Terms
from aegen.card.markdown import markdown_templates, project_link
from aegen.core.format import SPLITS
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.engines.engine import Engine
from aegen.engines.local import Local

TEMPLATES = markdown_templates("aegen.card")


def write_card(
    folder: Folder,
    manifest: Manifest,
    terms: Terms | None = None,
    engine: Engine | None = None,
    totals: Totals | None = None,
    repository: str | None = None,
) -> list[str]:
    """Render the companions into the folder; returns their names. ``totals`` are its counts, if they are known."""
    made = render(folder, manifest, terms or Terms.of(folder, manifest), engine, totals, repository)
    write_companions(folder, made)
    return list(made)


def render(
    folder: Folder,
    manifest: Manifest,
    terms: Terms,
    engine: Engine | None = None,
    totals: Totals | None = None,
    repository: str | None = None,
) -> dict[str, bytes]:
    """The companions by name, from the shards' footers; only the rows of the example are read.

    With ``repository``, ``org/name[@revision]`` on the hub, the page loads the dataset from there.
    """
    engine = engine or Local()
    check(folder, manifest)
    counts = totals or count(folder, manifest, engine)
    drawn = pictures.draw(counts.by_config) if pictures.can_draw() else {}
    facts = gather(folder, manifest, terms, counts, list(drawn), engine)
    summary, _, _ = TEMPLATES.get_template(f"tasks/{facts.recipe.task}.md").render(spec=None).partition("\n")
    name, _, revision = (repository or "").partition("@")
    given = {
        "paper": PAPER_URL,
        "project": project_link("aegen"),
        "splits": SPLITS,
        "repository": name,
        "revision": revision,
    }
    template = "sources.md" if facts.recipe.sources else "dataset.md"
    page = TEMPLATES.get_template(template).render(vars(facts) | given)
    return {
        CARD: page.encode(),
        CROISSANT: croissant(manifest, facts.recipe.name, summary, terms.license).encode(),
        **drawn,
    }
