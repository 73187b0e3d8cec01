"""The Python API: the same functions and defaults as the commands. Import it from the top: ``import aegen``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from aegen.core.actions import Design, load_design
from aegen.core.errors import InvalidSpec
from aegen.dataset.dataset import Dataset, Step, Trajectory
from aegen.dataset.folder import Folder
from aegen.experts import trajectory as tg
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.experts.metrics import Metric, load_metric
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from aegen.pipeline.working import working

__all__ = ["Dataset", "Step", "Trajectory", "build", "import_pairs", "load", "trajectory"]


def build(
    spec: str | Spec,
    out: str | Path,
    *,
    metric: str | None = None,
    design: str | None = None,
    algorithm: str = Augmentation.algorithm,
    max_edits: int = Augmentation.max_edits,
    max_states: int | None = None,
    workers: int | None = None,
    engine: str | None = None,
    scheduler: str | None = None,
) -> Dataset:
    """Build a benchmark: pairs, expert trajectories, augmented trajectories, card. As ``aegen build``.

    A folder that already holds this dataset is left as it is; an interrupted one is finished.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     build("aor-n10-l4-d100", out=f"{folder}/aor").rows("pairs")
    100
    """
    spec = Spec.parse(spec) if isinstance(spec, str) else spec
    expert = Expert.of(spec.task, metric, design)
    augmentation = Augmentation.of(spec.task, algorithm, max_edits, max_states, spec.seed)
    with working(str(out), engine, workers, scheduler, spec.d) as (folder, started):
        pipeline.build(spec, folder, started, expert=expert, augmentation=augmentation)
    return Dataset.open(folder)


def import_pairs(
    pairs: Iterable[tuple[str, str]] | str | Path | Sequence[Path],
    out: str | Path,
    *,
    metric: str | None = None,
    design: str | None = None,
    **options: Any,
) -> Dataset:
    """Import text pairs and demonstrate them. As ``aegen import`` and ``aegen trajectories``.

    ``pairs`` is an iterable of (source, target), or the path of a file; ``options`` are those of ``aegen import``,
    for example ``tokens="chars"`` or ``ratio="80/10/10"``. The design ``tags`` makes token-level tags.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = import_pairs([("teh", "the")], out=f"{folder}/mine", tokens="chars", ratio="100/0/0")
    ...     next(data.trajectories("train")).steps[0]
    Step(state=('t', 'e', 'h'), action=('INSERT', 'POS_1', 'h'))
    """
    if isinstance(pairs, str | Path):
        source = Import((Path(pairs),), **options)
    else:
        rows = list(pairs)
        if rows and all(isinstance(row, Path) for row in rows):
            source = Import(tuple(rows), **options)  # type: ignore[arg-type]
        else:
            source = Import(pairs=tuple(_checked(row) for row in rows), **options)
    used = pipeline.demonstrator(source.task, metric, design)  # before the pairs are written
    pipeline.import_pairs(source, Folder(str(out)))
    with working(str(out), None, None, None) as (folder, engine):
        pipeline.add_demonstrations(folder, used, engine)
    return Dataset.open(folder)


def _checked(row: object) -> tuple[str, str]:
    match row:
        case (str(source), str(target)):
            return source, target
    raise InvalidSpec(f"{str(row)[:60]!r}: expected a pair of texts (source, target)")


def load(where: str | Path) -> Dataset:
    """Open a finished dataset: a folder, ``hf://org/name[@revision]``, or a URL such as ``s3://bucket/name``.

    What is on the hub is downloaded into the cache of huggingface_hub first.
    """
    from aegen.publishing.pull import open_folder  # takes a while to import

    return Dataset.open(open_folder(str(where)))


def trajectory(
    source: Sequence[str],
    target: Sequence[str],
    metric: str | Metric = "levenshtein",
    design: str | Design = "edit",
) -> list[Step]:
    """The expert's steps from a source to its target, as tokens; the last action is DONE.

    >>> for step in trajectory("1 1 2".split(), "1 + 1 = 2".split(), design="insert"):
    ...     print(*step.state, "->", *step.action)
    1 1 2 -> POS_1 +
    1 + 1 2 -> POS_3 =
    1 + 1 = 2 -> DONE DONE
    """
    used = load_metric(metric) if isinstance(metric, str) else metric
    actions = load_design(design) if isinstance(design, str) else design
    return [Step(state, action) for state, action in tg.trajectory(tuple(source), tuple(target), used, actions)]
