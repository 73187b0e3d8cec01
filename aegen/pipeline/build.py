"""The commands' work: hold the folder, make what is missing, finish it. Each returns the manifest and whether
anything had to be done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from aegen.card.companions import check_card
from aegen.card.render import write_card
from aegen.core.errors import InvalidSpec
from aegen.core.progress import Progress, silent
from aegen.core.types import SpecTree
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import FileInfo, Manifest
from aegen.engines.local import Engine, Local
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert, read_expert
from aegen.experts.metrics import METRICS
from aegen.experts.tags import tags_spec
from aegen.pairs.generate import plan
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec, spec_tree
from aegen.pipeline.demonstrations import renamed, write_demonstrations
from aegen.pipeline.generated import write_pairs
from aegen.pipeline.imported import write_imported
from aegen.pipeline.resume import write_missing
from aegen.pipeline.tags import write_tags_shard

Done = tuple[Manifest, bool]


def generate(spec: Spec, folder: Folder, engine: Engine, progress: Progress = silent) -> Done:
    """The pairs of a spec."""
    return _generate(spec, spec_tree(spec), folder, engine, progress)


def build(
    spec: Spec,
    folder: Folder,
    engine: Engine,
    progress: Progress = silent,
    expert: Expert | None = None,
    augmentation: Augmentation | None = None,
) -> Done:
    """Pairs, expert trajectories and augmented ones in one go."""
    expert, augmentation = expert or Expert.of(spec.task), augmentation or Augmentation()
    tree = {**spec_tree(spec), "expert": expert.as_dict(), "augmented": asdict(augmentation)}
    return _generate(spec, tree, folder, engine, progress)


def _generate(spec: Spec, tree: SpecTree, folder: Folder, engine: Engine, progress: Progress) -> Done:
    if there := _finished(folder, tree):
        return there, False
    layout = plan(spec, engine, progress)  # a spec that asks for too much ends here, before anything is written
    with folder.writing(tree):
        if done := _finished(folder, tree):  # by somebody else, while we planned
            return done, False
        there = folder.manifest() if folder.finished else Manifest({}, {})
        tree = {**there.spec, **tree}  # configs that nobody asks for now stay
        files = there.files | write_pairs(spec, layout, folder, engine, progress)
        return _finish(folder, tree, files | _demonstrate(folder, tree, files, engine, progress), engine), True


def import_pairs(wanted: Import, folder: Folder, progress: Progress = silent) -> Done:
    """The pairs of somebody's files."""
    tree = wanted.spec_tree()
    if there := _finished(folder, tree):
        return there, False
    counts = wanted.count(progress)  # reads everything once, so that bad input ends here
    with folder.writing(tree):
        if there := _finished(folder, tree):  # by somebody else, while we read
            return there, False
        return _finish(folder, tree, write_imported(wanted, counts, folder, progress), Local()), True


def add_expert(folder: Folder, expert: Expert, engine: Engine, progress: Progress = silent) -> Done:
    """Expert trajectories for the pairs of a finished folder."""
    return _add(folder, {"expert": expert.as_dict()}, engine, progress)


def add_augmented(
    folder: Folder,
    augmentation: Augmentation,
    engine: Engine,
    progress: Progress = silent,
    metric: str | None = None,
) -> Done:
    """Augmented trajectories for a folder that has expert ones; ``metric`` is the one that the user means to run."""
    expert = read_expert(folder.manifest().spec)
    if metric and metric != expert.metric:
        raise InvalidSpec(f"--metric {metric}: the expert of {folder.path} is {expert.metric[:100]}")
    if expert.metric not in METRICS and not metric:
        # A manifest may come from a stranger: a name in it is no permission to run what it names.
        raise InvalidSpec(
            f"{folder.path}: its expert is {expert.metric[:100]}: to run that code, name it with --metric"
        )
    # TA is TG from other states: it must be by the same expert, down to the version that breaks ties.
    return _add(folder, {"expert": expert.as_dict(), "augmented": asdict(augmentation)}, engine, progress)


def add_tags(folder: Folder, metric: str, engine: Engine, progress: Progress = silent) -> Done:
    """Token-level tags for the pairs of a finished folder."""
    return _add(folder, {"tags": tags_spec(metric)}, engine, progress)


def _add(folder: Folder, more: SpecTree, engine: Engine, progress: Progress) -> Done:
    tree = {**folder.manifest().spec, **more}
    if done := _finished(folder, more):
        return done, False
    with folder.writing(tree):
        if done := _finished(folder, tree):  # what was read before the folder was ours may be old
            return done, False
        there = folder.manifest()
        tree = {**there.spec, **tree}
        folder.remove_unlisted(there, tree)
        files = there.files | _demonstrate(folder, tree, there.files, engine, progress)
        return _finish(folder, tree, files, engine), True


def _finished(folder: Folder, tree: SpecTree) -> Manifest | None:
    """The manifest, if the folder has all this already; an error if it holds something else.

    Asked twice: before the work, so that a mistake ends soon, and again when the folder is held, which alone counts.
    """
    folder.check_writable()
    folder.check_same(tree)
    if not folder.finished:
        check_card(folder)
        return None
    manifest = folder.manifest()
    return manifest if set(tree) <= set(manifest.spec) else None


def _finish(folder: Folder, tree: SpecTree, files: dict[str, FileInfo], engine: Engine) -> Manifest:
    """The card, then the manifest: whoever sees the manifest finds everything else."""
    write_card(folder, Manifest(tree, files), engine=engine)
    return folder.finish(tree, files, engine)


def _demonstrate(
    folder: Folder, tree: SpecTree, files: Iterable[str], engine: Engine, progress: Progress
) -> dict[str, FileInfo]:
    """The configs of demonstrations that ``tree`` asks for."""
    made: dict[str, FileInfo] = {}
    names = [name for name in files if name.startswith("pairs/")]
    if "expert" in tree:
        base = {key: tree[key] for key in ("pairs", "expert")}
        all_names = names + [name for name in files if name.startswith("variants/")]
        made |= write_demonstrations(folder, base, all_names, read_expert(tree), None, engine, progress)
    if "augmented" in tree:
        train = [name for name in names if name.startswith("pairs/train-")]
        augmentation = Augmentation(**tree["augmented"])
        base = {key: tree[key] for key in ("pairs", "expert", "augmented")}
        made |= write_demonstrations(folder, base, train, read_expert(tree), augmentation, engine, progress)
    if "tags" in tree:
        base, metric = {key: tree[key] for key in ("pairs", "tags")}, tree["tags"]["metric"]
        calls: dict[tuple[str, ...], tuple[Any, ...]] = {}
        for name in names:
            tagged = renamed(name, "tags")
            calls[(tagged,)] = (folder / name, folder / tagged, base, metric)
        made |= write_missing(folder, base, engine, progress, "tags", write_tags_shard, calls)
    return made
