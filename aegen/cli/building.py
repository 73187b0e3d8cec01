"""Commands that write a dataset: from a spec, from files, and the demonstrations of its pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aegen.cli.common import (
    FOLDER,
    PLACE,
    augment_options,
    engine_options,
    expert_options,
    json_option,
    main,
    out_option,
    place_option,
    report,
    spec_options,
    working,
)

if TYPE_CHECKING:
    from aegen.dataset.manifest import Manifest
    from aegen.files.places import Remote


@main.command()
@spec_options
@place_option
@engine_options
@json_option
@report
def generate(
    out: Path | Remote, engine: str | None, workers: int | None, scheduler: str | None, **settings: Any
) -> tuple[Manifest, bool]:
    """Generate the pairs of one benchmark: TASK is aor, aes or aec.

    \b
    Example: aegen generate aor --n 10 --l 5 --d 10000 --out aor
    """
    from aegen.core.progress import bar
    from aegen.pairs.spec import Spec
    from aegen.pipeline import build as pipeline

    spec = Spec(**settings)
    with working(out, engine, workers, scheduler, spec.d) as (folder, started):
        return pipeline.generate(spec, folder, started, bar)


@main.command()
@spec_options
@expert_options
@augment_options
@place_option
@engine_options
@json_option
@report
def build(
    out: Path | Remote,
    engine: str | None,
    workers: int | None,
    scheduler: str | None,
    metric: str | None,
    design: str | None,
    algorithm: str,
    max_edits: int,
    max_states: int,
    **settings: Any,
) -> tuple[Manifest, bool]:
    """The whole data stage of one benchmark: pairs, expert trajectories, augmented trajectories.

    \b
    Example: aegen build aes --n 100 --l 5 --d 10000 --out aes
    """
    from aegen.core.progress import bar
    from aegen.experts.augment import Augmentation
    from aegen.experts.expert import Expert
    from aegen.pairs.spec import Spec
    from aegen.pipeline import build as pipeline

    spec = Spec(**settings)
    expert = Expert.of(spec.task, metric, design)
    augmentation = Augmentation(algorithm, max_edits, max_states, spec.seed)
    with working(out, engine, workers, scheduler, spec.d) as (folder, started):
        return pipeline.build(spec, folder, started, bar, expert, augmentation)


@main.command()
@spec_options
@expert_options
@augment_options
@click.option(
    "--cores",
    type=click.IntRange(1),
    multiple=True,
    default=(1, 100, 1000),
    show_default=True,
    help="How long on them.",
)
@json_option
def plan(
    metric: str | None,
    design: str | None,
    algorithm: str,
    max_edits: int,
    max_states: int,
    cores: tuple[int, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """What `build` would make and cost, from a small piece that is built and measured here; nothing is kept.

    \b
    Example: aegen plan aes --n 100 --l 6 --d 1000000000
    """
    from aegen.experts.augment import Augmentation
    from aegen.experts.expert import Expert
    from aegen.pairs.spec import Spec
    from aegen.pipeline.plan import estimate

    spec = Spec(**settings)
    augmentation = Augmentation(algorithm, max_edits, max_states, spec.seed)
    found = estimate(spec, Expert.of(spec.task, metric, design), augmentation)
    if as_json:
        click.echo(json.dumps(found.to_json([*cores])))
        return
    for line in found.lines([*cores]):
        click.echo(line)


@main.command(name="import")
@click.argument("paths", nargs=-1, required=True, type=FOLDER)
@click.option(
    "--kind",
    default="auto",
    show_default=True,
    help="released, parallel, csv, tsv (not quoted), jsonl, parquet, m2, datasets.",
)
@click.option(
    "--task", default="text", show_default=True, help="text, aor, aes or aec: whose metric, design and rules."
)
@click.option("--tokens", default="words", show_default=True, help="words (between single spaces) or chars.")
@click.option("--split", help="For example 70/15/15; default: the splits that are there, or 70/15/15.")
@click.option(
    "--split-by", default="source", show_default=True, help="source, target or pair: what no two splits share."
)
@click.option("--source-column", default="source", show_default=True)
@click.option("--target-column", default="target", show_default=True)
@click.option("--annotator", type=int, default=0, show_default=True, help="M2: whose corrections.")
@click.option("--seed", type=int, default=0, show_default=True, help="For --split.")
@click.option("--max-tokens", type=int, default=1024, show_default=True, help="Longest text.")
@click.option("--rows-per-shard", type=int, default=250_000, show_default=True)
@click.option("--skip-bad", is_flag=True, help="Leave out pairs that cannot be used, and count them.")
@out_option
@json_option
@report
def import_(out: Path, paths: tuple[Path, ...], **settings: Any) -> tuple[Manifest, bool]:
    """Take text pairs from files, a folder in the authors' layout, or a `datasets` dataset.

    \b
    Examples:
      aegen import train.src train.tgt --tokens words --out gec
      aegen import words.csv --tokens chars --source-column wrong --target-column right --out spelling
    """
    from aegen.core.progress import bar
    from aegen.dataset.folder import Folder
    from aegen.pairs.importing import Import
    from aegen.pipeline import build as pipeline

    wanted = Import(paths, **settings)
    done = pipeline.import_pairs(wanted, Folder(out), bar)
    for problem, count in wanted.skipped.most_common():
        click.echo(f"skipped {count:,}: {problem}", err=True)
    return done


@main.command()
@click.argument("folder", type=PLACE)
@expert_options
@engine_options
@json_option
@report
def trajectories(
    folder: Path | Remote,
    metric: str | None,
    design: str | None,
    engine: str | None,
    workers: int | None,
    scheduler: str | None,
) -> tuple[Manifest, bool]:
    """Write the expert's trajectories (TG) for all pairs of FOLDER; with `--design tags`, token-level tags beside them.

    \b
    Examples:
      aegen trajectories gec --metric lcs --design edit
      aegen trajectories gec --design tags
    """
    from aegen.core.progress import bar
    from aegen.experts.expert import Expert
    from aegen.experts.tags import TAGS
    from aegen.pipeline import build as pipeline

    with working(folder, engine, workers, scheduler) as (dataset, started):
        if design == TAGS.name:
            return pipeline.add_tags(dataset, metric or "levenshtein", started, bar)
        expert = Expert.of(dataset.manifest().recipe.task, metric, design)
        return pipeline.add_expert(dataset, expert, started, bar)


@main.command()
@click.argument("folder", type=PLACE)
@augment_options
@click.option("--metric", help="Needed if the expert's is none of aegen's: its code is run.")
@click.option("--seed", type=int, default=0, show_default=True, help="For the sample beyond --max-edits.")
@engine_options
@json_option
@report
def augment(
    folder: Path | Remote,
    algorithm: str,
    max_edits: int,
    max_states: int,
    metric: str | None,
    seed: int,
    engine: str | None,
    workers: int | None,
    scheduler: str | None,
) -> tuple[Manifest, bool]:
    """Write the augmented trajectories (TA) of FOLDER's training pairs: the expert's and those from shifted states.

    \b
    Example: aegen augment gec --max-edits 8
    """
    from aegen.core.progress import bar
    from aegen.experts.augment import Augmentation
    from aegen.pipeline import build as pipeline

    augmentation = Augmentation(algorithm, max_edits, max_states, seed)
    with working(folder, engine, workers, scheduler) as (dataset, started):
        return pipeline.add_augmented(dataset, augmentation, started, bar, metric)
