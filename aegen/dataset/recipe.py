"""How a dataset was made: one typed part for each config, recorded in the manifest and in every shard."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any

from aegen.core.description import Provenance
from aegen.core.errors import AegenError, BadData
from aegen.core.records import convert, plain
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.experts.metrics import load_metric
from aegen.experts.tags import METRIC as TAGS_METRIC
from aegen.pairs.spec import Imported, SourcesOnly, Spec

# What the shards of a config depend on.
PARTS = {
    "pairs": ("pairs",),
    "variants": ("pairs",),
    "expert": ("pairs", "expert"),
    "variants_expert": ("pairs", "expert"),
    "augmented": ("pairs", "expert", "augmented"),
    "tags": ("pairs", "tags"),
    "sources": ("pairs", "sources"),
    "annotations": ("pairs",),
}


@dataclass(frozen=True)
class ExpertUsed:
    """The expert, with the versions of the packages that choose between equally short scripts."""

    metric: str
    design: str
    backend: dict[str, str]

    @classmethod
    def of(cls, expert: Expert) -> ExpertUsed:
        """An expert as it runs on this machine."""
        return cls(expert.metric, expert.design, load_metric(expert.metric).backend)

    @property
    def expert(self) -> Expert:
        """The expert alone."""
        return Expert(self.metric, self.design)


@dataclass(frozen=True)
class TaggerUsed:
    """The metric behind token-level tags, with the versions of its packages."""

    metric: str
    backend: dict[str, str]

    @classmethod
    def of(cls, metric: str | None = None) -> TaggerUsed:
        """A metric as it runs on this machine; by default that of all taggers."""
        return cls(metric or TAGS_METRIC, load_metric(metric or TAGS_METRIC).backend)


@dataclass(frozen=True)
class Recipe:
    """All that the rows of a dataset depend on.

    >>> recipe = Recipe(Spec("aor", n=10, l=5, d=1000))
    >>> Recipe.read(recipe.tree(), "manifest.json") == recipe
    True
    """

    pairs: Spec | Imported
    expert: ExpertUsed | None = None
    augmented: Augmentation | None = None
    tags: TaggerUsed | None = None
    sources: SourcesOnly | None = None  # then the sources of the pairs are all that there is

    @classmethod
    def read(cls, tree: Provenance, where: object) -> Recipe:
        """A recipe as a manifest or a shard records it."""
        unknown = sorted(set(tree) - {field.name for field in fields(cls)})
        if unknown:
            raise BadData(f"{where}: object contains unknown field spec.{unknown[0][:60]}")
        settings: dict[str, Any] = dict(tree.get("pairs", {}))
        kind = {"generated": Spec, "imported": Imported}.get(str(settings.pop("made", None)))
        if kind is None:
            raise BadData(f"{where}: field spec.pairs.made: expected generated or imported")
        kinds = {"expert": ExpertUsed, "augmented": Augmentation, "tags": TaggerUsed, "sources": SourcesOnly}
        parts: dict[str, Any] = {name: tree[name] for name in kinds if name in tree}
        if "augmented" in parts:  # without a rule it was made before there was one, not by today's
            parts["augmented"] = {"rule": None} | parts["augmented"]
        try:
            parts = {name: convert(part, kinds[name], f"{where}: spec.{name}") for name, part in parts.items()}
            return cls(convert(settings, kind, f"{where}: spec.pairs"), **parts)
        except AegenError as error:
            raise BadData(f"{where}: invalid spec: {str(error).removeprefix(f'{where}: ')}") from None

    def tree(self) -> Provenance:
        """The recipe as plain values, for manifests and shards."""
        made = "generated" if isinstance(self.pairs, Spec) else "imported"
        tree: Provenance = {"pairs": {"made": made, **plain(self.pairs)}}
        for name in ("expert", "augmented", "tags", "sources"):
            if (part := getattr(self, name)) is not None:
                tree[name] = plain(part)
        return tree

    def part(self, config: str) -> Recipe:
        """What the shards of a config depend on."""
        unneeded: dict[str, Any] = dict.fromkeys({"expert", "augmented", "tags", "sources"} - {*PARTS[config]})
        return replace(self, **unneeded)

    def updated(self, other: Recipe) -> Recipe:
        """This recipe with the parts that another one has."""
        there = {field.name: getattr(other, field.name) for field in fields(self)}
        return replace(self, **{name: part for name, part in there.items() if part is not None})

    @property
    def spec(self) -> Spec | None:
        """The spec of generated pairs."""
        return self.pairs if isinstance(self.pairs, Spec) else None

    @property
    def task(self) -> str:
        """The task whose rules the dataset follows."""
        return self.pairs.task

    @property
    def seed(self) -> int:
        """The seed of its shifted states if no other is asked for: the same as of generated pairs."""
        return self.spec.seed if self.spec else Augmentation.seed

    @property
    def name(self) -> str:
        """What to call the dataset: the id of its spec, or the name of the file that it was imported from."""
        if isinstance(self.pairs, Spec):
            return self.pairs.id + ("-sources" if self.sources else "")
        file = self.pairs.inputs[0].name if self.pairs.inputs else ""
        stem = file.rpartition("/")[2].partition(".")[0]  # of a dataset of the hub without its owner
        return re.sub(r"[^A-Za-z0-9-]+", "-", stem).strip("-") or "dataset"


def differences(existing: Provenance, requested: Provenance) -> list[str]:
    """What differs between two recipes, one phrase each.

    >>> differences({"pairs": {"d": 10}}, {"pairs": {"d": 20}})
    ['pairs.d: existing value 10, requested 20']
    """
    return [*_differences(existing, requested, "")]


def _differences(existing: Any, requested: Any, path: str) -> list[str]:
    if isinstance(existing, dict) and isinstance(requested, dict):
        keys = sorted(set(existing) | set(requested))
        return [
            phrase
            for key in keys
            for phrase in _differences(existing.get(key), requested.get(key), f"{path}.{key}" if path else key)
        ]
    return [] if existing == requested else [f"{path}: existing value {existing}, requested {requested}"]
