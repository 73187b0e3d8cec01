"""The command that shows an agent on a page."""

from __future__ import annotations

import click

from trainer.cli.common import device_option, folders, main, threads_option, use_threads


@main.command(short_help="Serve a page to watch an agent edit.")
@click.argument("run", shell_complete=folders)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default="any free port", help="Port to serve on."
)
@click.option("--data", shell_complete=folders, show_default="the dataset of the run", help="Dataset of the examples.")
@device_option
@threads_option
def play(run: str, port: int, data: str | None, device: str, threads: int | None) -> None:
    """Open a page on this machine to type texts and watch the agent in RUN, a run folder or a hub id, edit them.

    Programs can ask it too: POST /edit. Ctrl-C stops it.

    \b
    Example: trainer play runs/aor --port 8000
    """
    from trainer.playground.start import play as serve

    use_threads(threads)
    serve(run, port=port, data=data, device=device, say=click.echo)
