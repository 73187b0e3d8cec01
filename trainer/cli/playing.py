"""Commands that measure one agent and edit texts with it."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainer.cli.common import (
    FILE,
    device_option,
    edits_option,
    folders,
    json_option,
    main,
    threads_option,
    use_threads,
)
from trainer.core.errors import Failed, InvalidConfig, InvalidText
from trainer.core.format import visible
from trainer.core.progress import counter

EDITS_HEADER = (
    f"{'edits':<20}{'precision':>11}{'recall':>9}{'F0.5':>9}{'correct':>10}{'proposed':>10}{'gold':>9}"  # of a table
)

if TYPE_CHECKING:
    from trainer.agents.agent import Agent, Game
    from trainer.agents.lines import Edited


@main.command(short_help="Measure the accuracy of an agent.")
@click.argument("run", shell_complete=folders)
@click.option("--data", shell_complete=folders, show_default="the dataset of the run", help="Dataset to play.")
@click.option(
    "--split",
    type=click.Choice(["train", "validation", "test"]),
    default="test",
    show_default=True,
    help="Split to play.",
)
@click.option("--m2", type=FILE, help="Play the sentences of an M2 file instead: precision, recall and F0.5.")
@click.option("--limit", type=click.IntRange(1), show_default="all", help="Play only the first pairs.")
@edits_option
@device_option
@threads_option
@json_option
def evaluate(
    *,
    run: str,
    data: str | None,
    split: Any,
    m2: Path | None,
    limit: int | None,
    edits_per_round: int,
    device: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Measure the accuracy of the agent in RUN, a run folder or a hub id, on a split.

    For text it also reports precision, recall and F0.5 of the edits (MaxMatch), against those of the annotators
    of the dataset or of --m2, otherwise against the edits that lead to the targets.

    \b
    Examples:
      trainer evaluate runs/aor --split test
      trainer evaluate runs/gec --m2 wi.dev.m2
    """
    from trainer.agents.evaluation import evaluate_m2, evaluate_run

    use_threads(threads)
    if m2:
        if data or given("split"):
            raise InvalidConfig("--m2 cannot be combined with --data or --split")
        result = evaluate_m2(run, m2, device, limit or 0, edits_per_round)
        if as_json:
            click.echo(json.dumps(result))
        else:
            show_edits(result)
            rate = result["sentences_per_second"]
            click.echo(f"sentences          {result['sentences']:>10,}   {rate:,.0f} a second")
            if result["unreadable"]:
                click.echo(f"unreadable         {result['unreadable']:>10,}   unchanged: unknown tokens or too long")
        return
    result = evaluate_run(run, device, data, split, limit or 0, edits_per_round)
    if as_json:
        click.echo(json.dumps(result))
        return
    for name in ("token", "sequence", "equation"):
        if f"{name}_accuracy" in result:
            click.echo(f"{name + ' accuracy':<19}{result[f'{name}_accuracy']:>10.2f} %")
    if "edits" in result:
        show_edits(result["edits"])
    refused = ", ".join(f"{number} {reason}" for reason, number in result["refused_because"].items())
    click.echo(f"games              {result['pairs']:>10,}   {result['steps_per_game']:.2f} steps each")
    click.echo(f"ended by DONE      {result['done']:>10,}   {result['limit']:,} by the limit of steps")
    click.echo(f"refused            {result['refused']:>10,}   {refused}".rstrip())
    if result["unreadable"]:
        click.echo(f"unreadable         {result['unreadable']:>10,}   returned unchanged: unknown tokens or too long")
    click.echo(f"games per second   {result['pairs_per_second']:>10,.0f}")


@main.command(short_help="Score two baselines for text, without training.")
@click.argument("data", shell_complete=folders)
@click.option(
    "--split",
    type=click.Choice(["train", "validation", "test"]),
    default="test",
    show_default=True,
    help="Split to correct.",
)
@click.option("--m2", type=FILE, help="Correct the sentences of an M2 file instead.")
@click.option("--limit", type=click.IntRange(1), show_default="all", help="Correct only the first texts.")
@json_option
def baselines(data: str, split: Any, m2: Path | None, limit: int | None, as_json: bool) -> None:
    """Score two baselines that need no training, for DATA of text.

    `unchanged` leaves every text as it is; `frequent` makes the edit that was most frequent in training for each
    word behind its left neighbour. Both are scored as by `trainer evaluate` (MaxMatch).

    \b
    Examples:
      trainer baselines gec --split validation
      trainer baselines gec --m2 wi.dev.m2
    """
    from trainer.agents.frequent import evaluate_baselines

    if m2 and given("split"):
        raise InvalidConfig("--m2 cannot be combined with --split")
    found = evaluate_baselines(data, split, m2, limit or 0)
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(EDITS_HEADER)
    for name, row in found.items():
        show_counts(name, row)


def given(option: str) -> bool:
    """Whether the user has set an option of the running command."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not None and source.name != "DEFAULT"


def show_edits(result: Mapping[str, Any]) -> None:
    """MaxMatch as a table: all edits, then by what they do, then by the types that annotators gave them."""
    click.echo(EDITS_HEADER)
    for name, row in {"all": result, **result["kinds"]}.items():
        show_counts(name, row)
    for name, row in result["types"].items():
        click.echo(f"  {visible(name):<29}{row['recall']:>9.2f}{'':>9}{row['correct']:>10,}{'':>10}{row['gold']:>9,}")


def show_counts(name: str, row: Mapping[str, Any]) -> None:
    """One row of such a table."""
    shares = f"{row['precision']:>11.2f}{row['recall']:>9.2f}{row['f0.5']:>9.2f}"
    click.echo(f"  {name:<18}{shares}{row['correct']:>10,}{row['proposed']:>10,}{row['gold']:>9,}")


# A text may begin with a minus: unknown options are texts.
@main.command(short_help="Edit texts step by step with an agent.", context_settings={"ignore_unknown_options": True})
@click.argument("run", shell_complete=folders)
@click.argument("texts", nargs=-1)
@click.option("--m2", "as_m2", is_flag=True, help="Print the edits in the M2 format.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    show_default="1024; 1 if standard input is a terminal",
    help="Texts edited at once.",
)
@edits_option
@device_option
@threads_option
@json_option
def edit(
    *,
    run: str,
    texts: tuple[str, ...],
    as_m2: bool,
    batch: int | None,
    edits_per_round: int,
    device: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Edit TEXTS step by step with the agent in RUN or, without TEXTS, the lines of standard input, one line for each.

    A text that the agent cannot read is reported, and the others are edited; such a line of standard input is copied
    unchanged. The exit code is then 2 for TEXTS, 1 for standard input.

    \b
    Examples:
      trainer edit runs/aor "3 6 2 9 3"
      trainer edit runs/gec < draft.txt > better.txt
    """
    from trainer.agents.agent import Agent
    from trainer.agents.lines import BATCH, edit_all

    if as_m2 and as_json:
        raise InvalidConfig("--m2 and --json: choose one")
    use_threads(threads)
    agent = Agent.from_pretrained(run, device)
    agent.check_round(edits_per_round)
    if not texts:
        if edit_lines(agent, batch, as_m2, as_json, edits_per_round):
            sys.exit(Failed.exit_code)
        return
    failed = False
    everything = edit_all(agent, texts, batch or BATCH, moves=not as_m2, edits_per_round=edits_per_round)
    for number, result in enumerate(everything, 1):
        edited = result.as_m2 if as_m2 else result
        if edited.problem:
            failed = True
            where = f"text {number}: " if len(texts) > 1 else ""
            click.echo(f"Error: {where}{edited.problem}", err=True)
        elif as_m2:
            click.echo(edited.to_m2(), nl=False)
        elif as_json:
            click.echo(as_record(edited))
        elif edited.game:
            show_game(agent, edited.game)
    if failed:
        sys.exit(InvalidText.exit_code)


def edit_lines(agent: Agent, batch: int | None, as_m2: bool, as_json: bool, edits: int) -> int:
    """Edit standard input line by line; returns how many lines could not be read."""
    from trainer.agents.lines import BATCH, edit_all, read_lines, to_bytes

    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    size = batch or (1 if sys.stdin.isatty() else BATCH)
    endings: deque[str] = deque()  # of lines that are being edited

    def lines() -> Iterator[str]:
        for text, ending in read_lines(stdin):
            endings.append(ending)
            yield text

    bad = 0
    with counter("lines") as advance:
        for number, result in enumerate(edit_all(agent, lines(), size, moves=as_json, edits_per_round=edits), 1):
            edited = result.as_m2 if as_m2 else result if as_json else result.on_one_line
            ending = endings.popleft()
            if edited.problem:
                bad += 1
                click.echo(f"Error: line {number}: {edited.problem}", err=True)
            if as_m2:
                stdout.write(to_bytes(edited.to_m2()))
            elif as_json:
                stdout.write(as_record(edited).encode() + b"\n")
            else:
                stdout.write(to_bytes(edited.text + ending))
            advance(1)
            if size == 1:
                stdout.flush()
    stdout.flush()
    return bad


def as_record(edited: Edited) -> str:
    """One line of JSON."""
    if not edited.game:
        return json.dumps({"source": edited.source, "text": edited.text, "moves": [], "ended": "unreadable"})
    return json.dumps(vars(edited.game) | {"moves": [vars(move) for move in edited.game.moves]})


def show_game(agent: Agent, game: Game) -> None:
    """A game, step by step."""
    from trainer.agents.lines import EMPTY

    # The stream is named, or click would write UTF-8 to a terminal that says it has ASCII alone.
    say = partial(click.echo, file=sys.stdout)
    say(f"     {visible(game.source)}")
    for number, move in enumerate(game.moves):
        said = "  ".join(f"{token} {chance:.0%}" for token, chance in zip(move.action, move.probabilities, strict=True))
        outcome = agent.marked(game, number) if move.verdict == "applied" else move.verdict
        say(f"{number + 1:>3}  {visible(said):<36}  {visible(outcome)}")
    why = {
        "done": "the agent said DONE",
        "limit": f"no DONE within {len(game.moves)} steps",
        EMPTY: "nothing to edit",
    }
    say(f"  =  {visible(game.text)}   ({why.get(game.ended, 'refused: ' + game.ended)})")
