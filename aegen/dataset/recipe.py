"""How a dataset was made, as its manifest tells it: a name and the commands that make it again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from aegen.core.errors import BadData
from aegen.core.types import SpecTree
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec, read_spec


def dataset_name(spec: SpecTree) -> str:
    """What to call a dataset: the id of its spec, or the name of the file that it was imported from."""
    if made := read_spec(spec, "manifest.json"):
        return made.id
    inputs = spec.get("pairs", {}).get("inputs") or [{}]
    stem = str(inputs[0].get("name", "")).partition(".")[0]
    return re.sub(r"[^A-Za-z0-9-]+", "-", stem).strip("-") or "dataset"


def check_recorded(spec: SpecTree, where: object) -> None:
    """Refuse a manifest that does not say, in the form that it should, how its dataset was made."""
    pairs, inputs = spec.get("pairs", {}), spec.get("pairs", {}).get("inputs", [])
    named = isinstance(inputs, list) and all(
        isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("name", "sha256"))
        for entry in inputs
    )
    seeds = [part.get("seed") for part in (pairs, *(spec[key] for key in ("augmented",) if key in spec))]
    versions = spec.get("expert", {}).get("backend", {})
    if not named or not isinstance(versions, dict) or not all(type(seed) is int for seed in seeds):
        raise BadData(f"{where}: the manifest's spec does not say how the dataset was made")


def recipe(spec: SpecTree) -> list[str]:
    """The commands, one a line, options at their default left out."""
    name, pairs = dataset_name(spec), spec.get("pairs", {})
    out = ["--out", name]
    made = read_spec(spec, "manifest.json")
    if made and "augmented" in spec and spec["augmented"]["seed"] == made.seed:
        demonstrations = [*_expert(spec), *_options(spec["augmented"], _defaults(Augmentation) | {"seed": made.seed})]
        lines = [_line("build", made.task, *_options(made.as_dict(), _defaults(Spec), "task"), *demonstrations, *out)]
        return lines + _tags(spec, name)
    if made:
        lines = [_line("generate", made.task, *_options(made.as_dict(), _defaults(Spec), "task"), *out)]
    else:
        settings = {key: entry for key, entry in pairs.items() if key not in ("made", "inputs")}
        lines = [_line("import", *_inputs(pairs), *_options(settings, _defaults(Import) | {"kind": None}), *out)]
    if "expert" in spec:
        lines.append(_line("trajectories", name, *_expert(spec)))
    if "augmented" in spec:
        lines.append(_line("augment", name, *_options(spec["augmented"], _defaults(Augmentation))))
    return lines + _tags(spec, name)


def _tags(spec: SpecTree, name: str) -> list[str]:
    if "tags" not in spec:
        return []
    metric = _options(spec["tags"], {"metric": "levenshtein"}, "backend")
    return [_line("trajectories", name, "--design", "tags", *metric)]


def _line(*words: str) -> str:
    return shlex.join(["aegen", *words])


def _expert(spec: SpecTree) -> list[str]:
    usual = Expert.of(spec["pairs"]["task"])
    return list(_options(spec["expert"], {"metric": usual.metric, "design": usual.design}, "backend"))


def _inputs(pairs: Mapping[str, Any]) -> list[str]:
    names = [str(entry["name"]) for entry in pairs.get("inputs", [])]
    return ["FOLDER"] if pairs.get("kind") == "released" else names  # its files are named by the layout


def _defaults(kind: type) -> dict[str, Any]:
    return {field.name: field.default for field in fields(kind) if field.default is not MISSING}


def _options(settings: Mapping[str, Any], defaults: Mapping[str, Any], *without: str) -> Iterator[str]:
    for key, entry in settings.items():
        if key in without or (key in defaults and defaults[key] == entry):
            continue
        yield f"--{key.replace('_', '-')}"
        if entry is not True:
            yield str(entry)
