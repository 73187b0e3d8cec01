"""Commands that share a trained agent."""

from __future__ import annotations

from pathlib import Path

import click

from trainer.cli.common import main
from trainer.core.errors import InvalidConfig


@main.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--to", required=True, help="hf://org/name, or a folder.")
@click.option("--private", is_flag=True, help="Make a new repository private.")
def publish(run: Path, to: str, private: bool) -> None:
    """Publish the best agent of RUN with its model card, as one commit.

    \b
    Example: trainer publish runs/aor --to hf://org/name
    """
    from trainer.publishing.publish import publish as send

    if not to:
        raise InvalidConfig("--to: expected hf://org/name or a folder")
    click.echo(send(run, to, private))
