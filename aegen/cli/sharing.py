"""Commands that hand a dataset on: its card."""

from __future__ import annotations

from pathlib import Path

import click

from aegen.cli.common import FOLDER, main


@main.command()
@click.argument("folder", type=FOLDER)
@click.option("--license", "licence", help="Of imported texts, as the hub spells it, for example cc-by-4.0.")
@click.option("--language", help="Of imported texts, as an ISO 639 code, for example en.")
def card(folder: Path, licence: str | None, language: str | None) -> None:
    """Render the card of FOLDER from its shards: README.md, pictures, croissant.json.

    \b
    Example: aegen card aor
    """
    from aegen.card import Terms, write_card
    from aegen.folder import Folder

    dataset = Folder(folder)
    manifest = dataset.manifest()
    with dataset.writing():
        written = write_card(dataset, manifest, Terms.of(dataset, manifest).stated(licence, language))
    click.echo(f"{', '.join(written)} -> {folder}")
