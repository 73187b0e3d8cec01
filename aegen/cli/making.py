"""Commands that write a dataset: from a spec, from files, and the demonstrations of its pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aegen.cli.common import (
    FOLDER,
    augment_options,
    expert_options,
    json_option,
    main,
    out_option,
    report,
    spec_options,
    workers_option,
)

if TYPE_CHECKING:
    from aegen.folder import Manifest


@main.command()
@spec_options
@out_option
@workers_option
@json_option
@report
def generate(out: Path, workers: int | None, **settings: Any) -> tuple[Manifest, bool]:
    """Generate the pairs of one benchmark: TASK is aor, aes or aec.

    \b
    Example: aegen generate aor --n 10 --l 5 --d 10000 --out aor
    """
    from aegen import pipeline
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar
    from aegen.spec import Spec

    spec = Spec(**settings)
    return pipeline.generate(spec, Folder(out), local(workers, spec.d), bar)


@main.command()
@spec_options
@expert_options
@augment_options
@out_option
@workers_option
@json_option
@report
def build(
    out: Path,
    workers: int | None,
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
    from aegen import pipeline
    from aegen.augment import Augmentation
    from aegen.demonstrations import Expert
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar
    from aegen.spec import Spec

    spec = Spec(**settings)
    expert = Expert.of(spec.task, metric, design)
    augmentation = Augmentation(algorithm, max_edits, max_states, spec.seed)
    return pipeline.build(spec, Folder(out), local(workers, spec.d), bar, expert, augmentation)


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
    from aegen import pipeline
    from aegen.folder import Folder
    from aegen.importers import Import
    from aegen.progress import bar

    wanted = Import(paths, **settings)
    done = pipeline.import_pairs(wanted, Folder(out), bar)
    for problem, count in wanted.skipped.most_common():
        click.echo(f"skipped {count:,}: {problem}", err=True)
    return done


@main.command()
@click.argument("folder", type=FOLDER)
@expert_options
@workers_option
@json_option
@report
def trajectories(folder: Path, metric: str | None, design: str | None, workers: int | None) -> tuple[Manifest, bool]:
    """Write the expert's trajectories (TG) for all pairs of FOLDER; with `--design tags`, token-level tags beside them.

    \b
    Examples:
      aegen trajectories gec --metric lcs --design edit
      aegen trajectories gec --design tags
    """
    from aegen import pipeline
    from aegen.demonstrations import Expert, task_name
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar
    from aegen.tags import TAGS

    dataset = Folder(folder)
    manifest = dataset.manifest()
    engine = local(workers, manifest.rows("pairs"))
    if design == TAGS.name:
        return pipeline.add_tags(dataset, metric or "levenshtein", engine, bar)
    expert = Expert.of(task_name(manifest.spec), metric, design)
    return pipeline.add_expert(dataset, expert, engine, bar)


@main.command()
@click.argument("folder", type=FOLDER)
@augment_options
@click.option("--seed", type=int, default=0, show_default=True, help="For the sample beyond --max-edits.")
@workers_option
@json_option
@report
def augment(
    folder: Path, algorithm: str, max_edits: int, max_states: int, seed: int, workers: int | None
) -> tuple[Manifest, bool]:
    """Write the augmented trajectories (TA) of FOLDER's training pairs: the expert's and those from shifted states.

    \b
    Example: aegen augment gec --max-edits 8
    """
    from aegen import pipeline
    from aegen.augment import Augmentation
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar

    dataset = Folder(folder)
    augmentation = Augmentation(algorithm, max_edits, max_states, seed)
    return pipeline.add_augmented(dataset, augmentation, local(workers, dataset.manifest().rows("pairs")), bar)
