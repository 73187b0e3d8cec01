"""Commands that render a dataset's card, publish the dataset, or download a published one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aegen.cli.common import FOLDER, json_option, main, out_option, report, workers_option

if TYPE_CHECKING:
    from aegen.dataset.manifest import Manifest


@main.command(short_help="Render the card of a dataset.")
@click.argument("folder", type=FOLDER)
@click.option("--license", "licence", help="Licence of imported texts, as a hub identifier, for example cc-by-4.0.")
@click.option("--language", help="Language of imported texts, as an ISO 639 code, for example en.")
@click.option("--repo", help="Hub repository org/name that the card loads from; default: the local folder.")
def card(folder: Path, licence: str | None, language: str | None, repo: str | None) -> None:
    """Render the card of FOLDER from its shards: README.md, pictures, croissant.json.

    `aegen publish` renders it again, for the repository that it publishes to.

    \b
    Example: aegen card aor --repo org/aor
    """
    from aegen.card.header import Terms
    from aegen.card.pictures import can_draw
    from aegen.card.render import write_card
    from aegen.dataset.folder import Folder
    from aegen.files.places import SCHEME
    from aegen.publishing.hub import repository_id

    repository = None if repo is None else repository_id(repo if repo.startswith(SCHEME) else SCHEME + repo)
    dataset = Folder(folder)
    dataset.manifest()  # fails before a folder is created for a mistyped name
    with dataset.writing():
        manifest = dataset.manifest()  # read again, now that no other process can change it
        terms = Terms.of(dataset, manifest, licence, language)
        written = write_card(dataset, manifest, terms, repository=repository)
    click.echo(f"{', '.join(written)} -> {folder}")
    if not can_draw():
        click.echo('without pictures, which need matplotlib: in a clone of aegen, pip install ".[report]"', err=True)


@main.command(short_help="Verify datasets and publish them.")
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@click.option(
    "--to", required=True, help="Destination: hf://org/name, a folder, or a storage URL such as s3://bucket/name."
)
@click.option("--private", is_flag=True, help="hf: create the dataset as private.")
@click.option("--revision", help="hf: branch; default: main.")
@click.option("--tag", help="hf: tag the commit.")
@click.option("--force", is_flag=True, help="Replace a dataset with another spec; move an existing tag.")
@click.option("--dry-run", is_flag=True, help="Verify and list the files; send nothing.")
@workers_option
@json_option
def publish(folders: tuple[Path, ...], dry_run: bool, workers: int | None, as_json: bool, **settings: Any) -> None:
    """Verify dataset FOLDERS and publish each with its card and manifest, in one commit.

    Several folders are published below --to, each under its own name. Publishing again changes nothing.

    \b
    Examples:
      aegen publish aor --to hf://org/aor --tag v1
      aegen publish aor aes aec --to hf://org
    """
    from aegen.core.progress import bar
    from aegen.engines.start import start
    from aegen.publishing.publish import publish as send
    from aegen.publishing.publish import targets

    for folder, target in targets(list(folders), **settings):
        with start(workers=workers, rows=folder.manifest().total_rows) as engine:
            done = send(folder, target, engine, bar, dry_run)
        if as_json:
            click.echo(json.dumps({"to": done.to, "files": done.files, "changed": done.changed, "commit": done.commit}))
            continue
        if dry_run:
            for name, size in done.files.items():
                click.echo(f"{size:>15,}  {name}")
        amount = f"{len(done.files)} files, {done.bytes:,} bytes"
        what = "would publish" if dry_run else "published" if done.changed else "nothing to do:"
        click.echo(f"{what} {amount} -> {done.to}" + (f" at {done.commit}" if done.commit else ""))


@main.command(short_help="Download a published dataset.")
@click.argument("source")
@out_option
@json_option
@report
def pull(source: str, out: Path) -> tuple[Manifest, bool]:
    """Download a published dataset into a folder: SOURCE is hf://org/name[@revision], a folder or a URL.

    \b
    Example: aegen pull hf://org/aor@v1 --out aor
    """
    from aegen.core.progress import bar
    from aegen.dataset.folder import Folder
    from aegen.publishing.pull import pull as fetch

    return fetch(source, Folder(out), bar)


@main.command(short_help="Render an index page of several datasets.")
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@click.option("--link", default="{name}", show_default=True, help="Link to each dataset, for example hf://org/{name}.")
@click.option("--out", type=FOLDER, required=True, help="Output Markdown file.")
def collection(folders: tuple[Path, ...], link: str, out: Path) -> None:
    """Render an index page of dataset FOLDERS: task, N, L, D and sizes, with links.

    \b
    Example: aegen collection aor aes aec --link hf://org/{name} --out collection.md
    """
    from aegen.card.collection import collection as render
    from aegen.dataset.folder import Folder
    from aegen.files.atomic import AtomicFile

    page = render([Folder(folder) for folder in folders], link)
    with AtomicFile(out) as aside:
        aside.write_text(page, encoding="utf-8")
    click.echo(f"{len(folders)} datasets -> {out}")
