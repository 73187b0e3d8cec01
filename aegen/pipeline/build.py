"""The data stage: hold the folder, write what is missing, finish it.

Each function returns the manifest, and whether anything had to be written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aegen.card.companions import check_card
from aegen.card.facts import count
from aegen.card.render import write_card
from aegen.core.description import FileInfo
from aegen.core.errors import BadData, InvalidEdit, InvalidSpec
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.recipe import ExpertUsed, Recipe, TaggerUsed
from aegen.engines.engine import Engine
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.experts.metrics import METRICS
from aegen.experts.tags import TAGS
from aegen.pairs.generate import plan
from aegen.pairs.importing import Import
from aegen.pairs.sources import generated_sources, imported_sources
from aegen.pairs.spec import Spec
from aegen.pipeline.demonstrations import write_augmented, write_expert, write_tags
from aegen.pipeline.generated import write_pairs
from aegen.pipeline.imported import write_annotations, write_imported
from aegen.pipeline.sources import held_out, write_sources

Done = tuple[Manifest, bool]


def generate(spec: Spec, folder: Folder, engine: Engine, progress: Progress = silent) -> Done:
    """Write the pairs of a spec."""
    return _generate(Recipe(spec), folder, engine, progress)


def build(
    spec: Spec,
    folder: Folder,
    engine: Engine,
    progress: Progress = silent,
    expert: Expert | None = None,
    augmentation: Augmentation | None = None,
) -> Done:
    """Write pairs, expert trajectories and augmented ones."""
    used = ExpertUsed.of(expert or Expert.of(spec.task))
    return _generate(Recipe(spec, used, augmentation or Augmentation(seed=spec.seed)), folder, engine, progress)


def _generate(recipe: Recipe, folder: Folder, engine: Engine, progress: Progress) -> Done:
    assert recipe.spec
    if there := _finished(folder, recipe):
        return there, False
    layout = plan(recipe.spec, engine, progress)  # a spec that asks for too many pairs fails here, before any write
    with folder.writing(recipe):
        if there := _finished(folder, recipe):  # written by another process meanwhile
            return there, False
        files: dict[str, FileInfo] = {}
        if folder.finished:  # configs that are not requested now stay
            there = folder.manifest()
            recipe, files = there.recipe.updated(recipe), dict(there.files)
            folder.remove_unlisted(there, recipe)
        files |= write_pairs(recipe, layout, folder, engine, progress)
        return _demonstrate(folder, recipe, files, engine, progress), True


def import_pairs(source: Import, folder: Folder, progress: Progress = silent) -> Done:
    """Write imported pairs, and of M2 files what each annotator would change."""
    if source.sources_only:
        raise InvalidSpec("sources_only: pairs are imported with their targets; use `aegen import --sources-only`")
    recipe = Recipe(source.recorded)
    if there := _finished(folder, recipe):
        return there, False
    counts = source.count(progress)  # reads everything once, so that bad input fails before any write
    with folder.writing(recipe):
        if there := _finished(folder, recipe):  # written by another process meanwhile
            return there, False
        files = write_imported(source, recipe, counts, folder, progress)
        if getattr(recipe.pairs, "kind", None) == "m2":
            files |= write_annotations(source, recipe, counts, folder, progress)
        return _finish(folder, recipe, files, Local()), True


def sources(spec: Spec, folder: Folder, apart: Folder | None = None, progress: Progress = silent) -> Done:
    """Write the sources of a spec alone, none of which is in the validation or test of another dataset."""
    used, left_out = held_out(apart)
    return _write_sources(Recipe(spec, sources=used), folder, lambda: generated_sources(spec, left_out), progress)


def import_sources(source: Import, folder: Folder, apart: Folder | None = None, progress: Progress = silent) -> Done:
    """Write imported sources alone, none of which is in the validation or test of another dataset."""
    used, left_out = held_out(apart)
    recipe = Recipe(source.recorded, sources=used)
    return _write_sources(recipe, folder, lambda: imported_sources(source, left_out), progress)


def _write_sources(recipe: Recipe, folder: Folder, find: Callable[[], list[str]], progress: Progress) -> Done:
    if there := _finished(folder, recipe):
        return there, False
    texts = find()  # a spec that asks for too many, or bad input, fails here, before any write
    with folder.writing(recipe):
        if there := _finished(folder, recipe):  # written by another process meanwhile
            return there, False
        return _finish(folder, recipe, write_sources(recipe, texts, folder, progress), Local()), True


def demonstrator(task: str, metric: str | None = None, design: str | None = None) -> ExpertUsed | TaggerUsed:
    """Who demonstrates the pairs of a task: an expert or, with the design ``tags``, a tagger.

    An error if there is no such metric or design, so that a mistake is reported before anything is written.

    >>> demonstrator("text").design, demonstrator("text", design="tags").metric
    ('edit', 'levenshtein')
    """
    return TaggerUsed.of(metric) if design == TAGS.name else ExpertUsed.of(Expert.of(task, metric, design))


def add_demonstrations(
    folder: Folder, used: ExpertUsed | TaggerUsed, engine: Engine, progress: Progress = silent
) -> Done:
    """Write expert trajectories, or token-level tags, for the pairs of a finished folder."""
    pairs = folder.manifest().recipe.pairs
    recipe = Recipe(pairs, used) if isinstance(used, ExpertUsed) else Recipe(pairs, tags=used)
    return _add(folder, recipe, engine, progress)


def add_augmented(
    folder: Folder,
    augmentation: Augmentation,
    engine: Engine,
    progress: Progress = silent,
    metric: str | None = None,
) -> Done:
    """Write augmented trajectories for a folder that has expert ones; ``metric`` permits to run a custom metric."""
    recipe = folder.manifest().recipe
    if recipe.expert is None:
        raise InvalidSpec(f"{folder.path}: no expert trajectories; run `aegen trajectories` first")
    expert = recipe.expert.expert
    if metric and metric != expert.metric:
        raise InvalidSpec(f"--metric {metric}: the expert metric of {folder.path} is {expert.metric[:100]}")
    if expert.metric not in METRICS and not metric:
        # A manifest may come from a stranger: a name in it is no permission to run the code it names.
        raise InvalidSpec(
            f"{folder.path}: its expert metric is custom; add --metric {expert.metric[:100]} to run its code"
        )
    # TA is TG from other states: the expert must be the same, down to the version that breaks ties.
    return _add(folder, Recipe(recipe.pairs, ExpertUsed.of(expert), augmentation), engine, progress)


def _add(folder: Folder, recipe: Recipe, engine: Engine, progress: Progress) -> Done:
    if there := _finished(folder, recipe):
        return there, False
    with folder.writing(recipe):
        if there := _finished(folder, recipe):  # written by another process meanwhile
            return there, False
        manifest = folder.manifest()
        recipe = manifest.recipe.updated(replace(recipe, pairs=manifest.recipe.pairs))
        folder.remove_unlisted(manifest, recipe)
        return _demonstrate(folder, recipe, dict(manifest.files), engine, progress), True


def _finished(folder: Folder, recipe: Recipe) -> Manifest | None:
    """The manifest, if the folder has all of the recipe already; an error if it holds something else.

    Called twice: before the work, so that a mistake is reported early, and again while the folder is held.
    """
    folder.check_writable()
    folder.check_same(recipe)
    if not folder.finished:
        check_card(folder)
        return None
    manifest = folder.manifest()
    return manifest if manifest.recipe.updated(recipe) == manifest.recipe else None


def _demonstrate(
    folder: Folder, recipe: Recipe, files: dict[str, FileInfo], engine: Engine, progress: Progress
) -> Manifest:
    """Write the demonstrations of the recipe that are missing, and finish the folder."""
    pairs = [name for name in files if name.startswith(("pairs/", "variants/"))]
    try:
        for write, wanted in (
            (write_expert, recipe.expert),
            (write_augmented, recipe.augmented),
            (write_tags, recipe.tags),
        ):
            if wanted is not None:
                files |= write(folder, recipe, pairs, engine, progress)
    except (InvalidEdit, BadData):  # the same command would fail again, and another recipe be refused
        engine.stop()  # or a worker could add another one
        before = Manifest(Recipe(recipe.pairs), {name: files[name] for name in pairs})
        there = folder.manifest() if folder.finished else before
        folder.remove_unlisted(there, there.recipe)
        raise
    return _finish(folder, recipe, files, engine)


def _finish(folder: Folder, recipe: Recipe, files: dict[str, FileInfo], engine: Engine) -> Manifest:
    """Write the card, then the manifest: a folder with a manifest has everything else."""
    manifest = Manifest(recipe, files)
    totals = count(folder, manifest, engine)
    write_card(folder, manifest, engine=engine, totals=totals)
    return folder.finish(replace(manifest, capped_pairs=totals.capped_pairs))
