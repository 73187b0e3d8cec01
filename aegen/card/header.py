"""The YAML head of a card: what the hub and ``datasets`` read there, and the terms that its owner stated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from aegen.card.companions import read_card
from aegen.card.markdown import read_front_matter
from aegen.columns.schemas import SCHEMAS
from aegen.core.errors import InvalidSpec
from aegen.core.format import SPLITS
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest

PAPER = "2210.12276"  # on arXiv
PAPER_URL = f"https://arxiv.org/abs/{PAPER}"
SCALES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B")
TERM = re.compile(r"[a-z0-9][a-z0-9.-]*")


@dataclass(frozen=True)
class Terms:
    """Licence and language, which only the owner of an imported dataset knows."""

    license: str = "unknown"
    language: str = "und"

    @classmethod
    def of(cls, folder: Folder, manifest: Manifest, licence: str | None = None, language: str | None = None) -> Terms:
        """Ours for generated data; else those on the current card, with the owner's changes."""
        if manifest.recipe.spec:
            if licence is not None or language is not None:
                raise InvalidSpec("--license and --language are for imported texts; generated data is MIT")
            return cls("mit", "zxx")  # the code for no linguistic content
        head = read_front_matter(read_card(folder) or "")
        listed = head.get("language")
        said = {"license": head.get("license"), "language": listed[0] if isinstance(listed, list) and listed else None}
        kept = {name: text for name, text in said.items() if isinstance(text, str) and TERM.fullmatch(text)}
        return cls(**kept).stated(licence, language)

    def stated(self, licence: str | None, language: str | None) -> Terms:
        """With the owner's changes."""
        for name, text in (("license", licence), ("language", language)):
            if text is not None and not TERM.fullmatch(text):
                raise InvalidSpec(f"{name}={text}: expected lower-case letters, digits, dots and dashes")
        return Terms(licence or self.license, language or self.language)


def default_config(manifest: Manifest) -> str:
    """Default config: the one with demonstrations for every split."""
    if manifest.recipe.sources:
        return "sources"
    return "expert" if "expert" in manifest.configs else "pairs"


def header(manifest: Manifest, in_memory: dict[tuple[str, str], int], terms: Terms) -> dict[str, Any]:
    """The fields of the YAML head; ``in_memory`` are bytes by config and split."""
    task = manifest.recipe.task
    rows = manifest.total_rows
    kinds = ["text-editing", "imitation-learning", *(["arithmetic"] if task != "text" else [])]
    return {
        "pretty_name": manifest.recipe.name,
        "license": terms.license,
        "language": [terms.language],
        "task_categories": ["text-generation", "reinforcement-learning"],
        "size_categories": [SCALES[min(max(0, len(str(rows)) - 3), len(SCALES) - 1)]],
        "tags": ["aegen", *kinds, task, f"arxiv:{PAPER}"],
        "configs": [_config(manifest, config) for config in manifest.configs],
        "dataset_info": [_info(manifest, in_memory, config) for config in manifest.configs],
    }


def _splits(manifest: Manifest, config: str) -> list[str]:
    """The splits with rows: ``datasets`` cannot load an empty one."""
    return [split for split in SPLITS if manifest.rows(config, split)]


def _config(manifest: Manifest, config: str) -> dict[str, Any]:
    files = [{"split": split, "path": f"{config}/{split}-*.parquet"} for split in _splits(manifest, config)]
    default = {"default": True} if config == default_config(manifest) else {}
    return {"config_name": config, **default, "data_files": files}


def _info(manifest: Manifest, in_memory: dict[tuple[str, str], int], config: str) -> dict[str, Any]:
    splits = [
        {"name": split, "num_bytes": in_memory[config, split], "num_examples": manifest.rows(config, split)}
        for split in _splits(manifest, config)
    ]
    return {
        "config_name": config,
        "features": [_feature(field) for field in SCHEMAS[config]],
        "splits": splits,
        "download_size": sum(manifest.files[name].bytes for name in manifest.shards(config)),
        "dataset_size": sum(in_memory[config, split] for split in _splits(manifest, config)),
    }


def _feature(field: Any) -> dict[str, Any]:
    kind = str(field.type)
    return {"name": field.name, **({"list": "string"} if kind.startswith("list") else {"dtype": kind})}
