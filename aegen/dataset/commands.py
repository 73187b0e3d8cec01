"""The commands that make a dataset again, as its recipe tells them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any

from aegen.dataset.recipe import Recipe
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.experts.metrics import METRICS
from aegen.experts.tags import METRIC as TAGS_METRIC
from aegen.experts.tags import TAGS
from aegen.pairs.importing import Import
from aegen.pairs.spec import Imported, Spec

FLAGS: dict[tuple[type | None, str], str] = {
    (Spec, "split"): "split-by",
    (Imported, "split"): "ratio",
}  # fields whose option has another name


def commands(recipe: Recipe) -> list[str]:
    """The commands, one a line, without options at their default.

    >>> commands(Recipe(Spec("aor", n=10, l=5, d=1000)))
    ['aegen generate aor --n 10 --l 5 --d 1000 --out aor-n10-l5-d1000-s0']
    """
    return [shlex.join(["aegen", *words]) for words in _words(recipe)]


def _words(recipe: Recipe) -> Iterator[list[str]]:
    name, pairs, augmented = recipe.name, recipe.pairs, recipe.augmented
    out = ["--out", name]
    if recipe.sources:
        apart = ["--apart-from", recipe.sources.apart_from] if recipe.sources.apart_from else []
        if isinstance(pairs, Spec):
            yield ["sources", pairs.task, *_spec(pairs), *apart, *out]
        else:
            yield [*_import(pairs, ["--sources-only"]), *apart, *out]
        return
    usual = asdict(Augmentation.of(pairs.task, seed=recipe.seed))
    shifted = [*_options(asdict(augmented), usual, "rule")] if augmented else []
    if isinstance(pairs, Spec) and augmented and augmented.seed == pairs.seed:
        yield ["build", pairs.task, *_spec(pairs), *_expert(recipe), *shifted, *out]
    else:
        yield ["generate", pairs.task, *_spec(pairs), *out] if isinstance(pairs, Spec) else _import(pairs, out)
        if recipe.expert:
            yield ["trajectories", name, *_expert(recipe)]
        if augmented:
            # The command runs a metric that aegen does not bring only if it is named.
            metric = ["--metric", recipe.expert.metric] if recipe.expert and recipe.expert.metric not in METRICS else []
            yield ["augment", name, *metric, *shifted]
    if recipe.tags:
        metric = [] if recipe.tags.metric == TAGS_METRIC else ["--metric", recipe.tags.metric]
        yield ["trajectories", name, "--design", TAGS.name, *metric]


def _spec(spec: Spec) -> Iterator[str]:
    return _options(asdict(spec), _defaults(Spec), "task", kind=Spec)


def _import(pairs: Imported, out: list[str]) -> list[str]:
    # The files of the authors' layout are found by their folder; what a program held has no file.
    unnamed = {"released": ["FOLDER"], "python": ["FILE"]}
    without = ("inputs", "kind") if pairs.kind == "python" else ("inputs",)
    names = unnamed.get(pairs.kind) or [file.argument for file in pairs.inputs]
    return ["import", *names, *_options(asdict(pairs), _defaults(Import), *without, kind=Imported), *out]


def _expert(recipe: Recipe) -> Iterator[str]:
    assert recipe.expert
    return _options(asdict(recipe.expert), asdict(Expert.of(recipe.task)), "backend")


def _defaults(kind: type) -> dict[str, Any]:
    return {field.name: field.default for field in fields(kind) if field.default is not MISSING}


def _options(
    settings: Mapping[str, Any], defaults: Mapping[str, Any], *without: str, kind: type | None = None
) -> Iterator[str]:
    for key, entry in settings.items():
        if key in without or entry is None or (key in defaults and defaults[key] == entry):
            continue
        yield f"--{FLAGS.get((kind, key), key.replace('_', '-'))}"
        if entry is not True:
            yield str(entry)
