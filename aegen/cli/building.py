"""Commands that write a dataset: pairs from a spec or from files, and their demonstrations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aegen.cli.common import (
    FOLDER,
    IMPORT,
    PLACE,
    also_taking,
    augment_options,
    engine_options,
    equation_options,
    expert_options,
    json_option,
    main,
    metric_option,
    out_option,
    place_option,
    report,
    seed_option,
    setting,
    shard_option,
    spec_options,
)

if TYPE_CHECKING:
    from aegen.dataset.manifest import Manifest
    from aegen.files.places import Remote


@main.command(short_help="Generate the pairs of a benchmark.", cls=also_taking("--split", "--split-by"))
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
    from aegen.pipeline.working import working

    spec = Spec(**settings)
    with working(out, engine, workers, scheduler, spec.d) as (folder, started):
        return pipeline.generate(spec, folder, started, bar)


apart_option = click.option(
    "--apart-from", type=FOLDER, help="Dataset folder: leave out the sources of its validation and test."
)


@main.command(short_help="Generate sources without targets, for practice.")
@equation_options
@apart_option
@out_option
@json_option
@report
def sources(out: Path, apart_from: Path | None, **settings: Any) -> tuple[Manifest, bool]:
    """Generate distinct sources without targets, for `trainer practise`: TASK is aor, aes or aec.

    \b
    Example: aegen sources aor --n 10 --l 5 --d 30000 --seed 1 --apart-from aor --out free
    """
    from aegen.core.progress import bar
    from aegen.dataset.folder import Folder
    from aegen.pairs.spec import Spec
    from aegen.pipeline import build as pipeline

    return pipeline.sources(Spec(**settings), Folder(out), Folder(apart_from) if apart_from else None, bar)


@main.command(short_help="Build a complete benchmark: pairs, TG, TA, card.", cls=also_taking("--split", "--split-by"))
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
    max_states: int | None,
    **settings: Any,
) -> tuple[Manifest, bool]:
    """Build a complete benchmark: pairs, expert trajectories (TG), augmented trajectories (TA), card.

    TASK is aor, aes or aec. An interrupted build is resumed by the same command.

    \b
    Example: aegen build aes --n 100 --l 5 --d 10000 --out aes
    """
    from aegen.core.progress import bar
    from aegen.experts.augment import Augmentation
    from aegen.experts.expert import Expert
    from aegen.pairs.spec import Spec
    from aegen.pipeline import build as pipeline
    from aegen.pipeline.working import working

    spec = Spec(**settings)
    expert = Expert.of(spec.task, metric, design)
    augmentation = Augmentation.of(spec.task, algorithm, max_edits, max_states, spec.seed)
    with working(out, engine, workers, scheduler, spec.d) as (folder, started):
        return pipeline.build(spec, folder, started, bar, expert, augmentation)


@main.command(short_help="Estimate the size and cost of a build.", cls=also_taking("--split", "--split-by"))
@spec_options
@expert_options
@augment_options
@click.option(
    "--cores",
    type=click.IntRange(1),
    multiple=True,
    default=(1, 100, 1000),
    show_default=True,
    help="Estimate the time on this many cores; may be repeated.",
)
@json_option
def plan(
    metric: str | None,
    design: str | None,
    algorithm: str,
    max_edits: int,
    max_states: int | None,
    cores: tuple[int, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Estimate the size and cost of `build` from a small sample that is built and measured; nothing is kept.

    \b
    Example: aegen plan aes --n 100 --l 6 --d 1000000000
    """
    from aegen.experts.augment import Augmentation
    from aegen.experts.expert import Expert
    from aegen.pairs.spec import Spec
    from aegen.pipeline.plan import estimate

    spec = Spec(**settings)
    augmentation = Augmentation.of(spec.task, algorithm, max_edits, max_states, spec.seed)
    found = estimate(spec, Expert.of(spec.task, metric, design), augmentation)
    if as_json:
        click.echo(json.dumps(found.to_json([*cores])))
        return
    for line in found.lines([*cores]):
        click.echo(line)


@main.command(
    short_help="Import text pairs from files or `datasets`.", name="import", cls=also_taking("--split", "--ratio")
)
@click.argument("paths", nargs=-1, required=True, type=FOLDER)
@setting(
    IMPORT,
    "--kind",
    str,
    "Input format: auto, released, parallel, csv, tsv (unquoted), jsonl, parquet, m2, datasets, lines (no targets).",
)
@setting(IMPORT, "--task", str, "Task that sets metric, design and rules: text, aor, aes or aec.")
@setting(IMPORT, "--tokens", str, "Tokens: words (separated by single spaces) or chars.")
@click.option("--ratio", help="Per cent of train, validation and test; default: the splits of the input, or 70/15/15.")
@setting(IMPORT, "--split-by", str, "What splits must not share: source, target or pair.")
@setting(IMPORT, "--source-column", str, "Column of the source texts.")
@setting(IMPORT, "--target-column", str, "Column of the target texts.")
@setting(IMPORT, "--annotator", int, "M2: use the corrections of this annotator.")
@seed_option
@setting(IMPORT, "--max-tokens", int, "Maximum number of tokens per text.")
@shard_option
@click.option("--skip-bad", is_flag=True, help="Skip invalid pairs and print their number.")
@click.option("--sources-only", is_flag=True, help="Import distinct sources without targets, for `trainer practise`.")
@apart_option
@out_option
@json_option
@report
def import_(out: Path, paths: tuple[Path, ...], apart_from: Path | None, **settings: Any) -> tuple[Manifest, bool]:
    """Import text pairs from files, a folder in the authors' layout, or a dataset of the `datasets` library.

    Several M2 files are allowed: SPLIT=FILE puts all of its sentences into that split (train, validation or test);
    other files are split by --ratio.

    \b
    Examples:
      aegen import wi.train.m2 test=wi.dev.m2 --ratio 95/5/0 --out gec
      aegen import train.src train.tgt --tokens words --out gec
      aegen import words.csv --tokens chars --source-column wrong --target-column right --out spelling
      aegen import more.txt --task aor --sources-only --apart-from aor --out more
    """
    from aegen.core.errors import InvalidSpec
    from aegen.core.progress import bar
    from aegen.dataset.folder import Folder
    from aegen.pairs.importing import Import
    from aegen.pipeline import build as pipeline

    wanted = Import(paths, **settings)
    if apart_from and not wanted.sources_only:
        raise InvalidSpec("--apart-from is an option of --sources-only")
    if wanted.sources_only:
        done = pipeline.import_sources(wanted, Folder(out), Folder(apart_from) if apart_from else None, bar)
    else:
        done = pipeline.import_pairs(wanted, Folder(out), bar)
    for problem, count in wanted.skipped.most_common():
        click.echo(f"skipped {count:,}: {problem}", err=True)
    return done


@main.command(short_help="Write expert trajectories (TG), or tags.")
@click.argument("folder", type=PLACE)
@metric_option
@click.option("--design", help="Action design: insert, edit, span, span2, span3 or tags; default: by task.")
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
    """Write the expert trajectories (TG) of all pairs in FOLDER; with `--design tags`, token-level tags instead.

    \b
    Examples:
      aegen trajectories gec --metric lcs --design edit
      aegen trajectories gec --design tags
    """
    from aegen.core.progress import bar
    from aegen.pipeline import build as pipeline
    from aegen.pipeline.working import working

    with working(folder, engine, workers, scheduler) as (dataset, started):
        used = pipeline.demonstrator(dataset.manifest().recipe.task, metric, design)
        return pipeline.add_demonstrations(dataset, used, started, bar)


@main.command(short_help="Write augmented trajectories (TA).")
@click.argument("folder", type=PLACE)
@augment_options
@click.option("--metric", help="Repeat the custom metric (package.module:function) to allow running its code.")
@click.option("--seed", type=int, show_default="that of the generated pairs; 0 for imports", help="Random seed.")
@engine_options
@json_option
@report
def augment(
    folder: Path | Remote,
    algorithm: str,
    max_edits: int,
    max_states: int | None,
    metric: str | None,
    seed: int | None,
    engine: str | None,
    workers: int | None,
    scheduler: str | None,
) -> tuple[Manifest, bool]:
    """Write the augmented trajectories (TA) of the training pairs in FOLDER, from sources and shifted states.

    \b
    Example: aegen augment gec --max-states 20
    """
    from aegen.core.progress import bar
    from aegen.experts.augment import Augmentation
    from aegen.pipeline import build as pipeline
    from aegen.pipeline.working import working

    with working(folder, engine, workers, scheduler) as (dataset, started):
        recipe = dataset.manifest().recipe
        augmentation = Augmentation.of(
            recipe.task, algorithm, max_edits, max_states, recipe.seed if seed is None else seed
        )
        return pipeline.add_augmented(dataset, augmentation, started, bar, metric)
