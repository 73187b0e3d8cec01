"""Commands that share a trained agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from trainer.cli.common import json_option, main


@main.command(short_help="Publish an agent with its model card.")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--to", required=True, help="Destination: hf://org/name, or a folder.")
@click.option("--private", is_flag=True, help="hf: create the repository as private.")
@click.option("--revision", help="hf: branch; default: main.")
@click.option("--tag", help="hf: tag the commit.")
@click.option("--force", is_flag=True, help="Replace files that are not an agent; move an existing tag.")
@click.option("--dry-run", is_flag=True, help="Check and list the files; send nothing.")
@json_option
def publish(run: Path, dry_run: bool, as_json: bool, **settings: Any) -> None:
    """Publish the best agent of RUN with its model card, as one commit.

    Publishing again changes nothing.

    \b
    Example: trainer publish runs/aor --to hf://org/name --tag v1
    """
    from trainer.publishing.publish import Target
    from trainer.publishing.publish import publish as send

    done = send(run, Target(**settings), dry_run)
    if as_json:
        click.echo(json.dumps(vars(done)))
        return
    if dry_run:
        for name, size in done.files.items():
            click.echo(f"{size:>15,}  {name}")
    amount = f"{len(done.files)} files, {sum(done.files.values()):,} bytes"
    what = "would publish" if dry_run else "published" if done.changed else "nothing to do:"
    click.echo(f"{what} {amount} -> {done.to}" + (f" at {done.commit}" if done.commit else ""))
