"""What the hub and ``datasets`` read at the head of a card: which files are which config, and what is in them."""

from __future__ import annotations

from typing import Any

from aegen.columns.schemas import SCHEMAS
from aegen.core.format import SPLITS
from aegen.dataset.manifest import Manifest

PAPER = "2210.12276"
SCALES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B")


def default_config(manifest: Manifest) -> str:
    """The config that one gets who asks for none: the one with demonstrations for every split."""
    return "expert" if "expert" in manifest.configs else "pairs"


def header(
    manifest: Manifest, in_memory: dict[tuple[str, str], int], name: str, licence: str, language: str
) -> dict[str, Any]:
    """The fields of the front matter; ``in_memory`` are bytes by config and split."""
    task = manifest.recipe.task
    rows = sum(info.rows for info in manifest.files.values())
    kinds = ["text-editing", "imitation-learning", *(["arithmetic"] if task != "text" else [])]
    return {
        "pretty_name": name,
        "license": licence,
        "language": [language],
        "task_categories": ["text-generation", "reinforcement-learning"],
        "size_categories": [SCALES[min(max(0, len(str(rows)) - 3), len(SCALES) - 1)]],
        "tags": ["aegen", *kinds, task, f"arxiv:{PAPER}"],
        "configs": [_config(manifest, config) for config in manifest.configs],
        "dataset_info": [_info(manifest, in_memory, config) for config in manifest.configs],
    }


def _splits(manifest: Manifest, config: str) -> list[str]:
    """The splits that hold rows: ``datasets`` cannot load an empty one."""
    return [split for split in SPLITS if manifest.rows(config, split)]


def _config(manifest: Manifest, config: str) -> dict[str, Any]:
    files = [{"split": split, "path": f"{config}/{split}-*.parquet"} for split in _splits(manifest, config)]
    default = {"default": True} if config == default_config(manifest) else {}
    return {"config_name": config, **default, "data_files": files}


def _info(manifest: Manifest, in_memory: dict[tuple[str, str], int], config: str) -> dict[str, Any]:
    splits = [
        {
            "name": split,
            "num_bytes": in_memory[config, split],
            "num_examples": manifest.rows(config, split),
        }
        for split in _splits(manifest, config)
    ]
    return {
        "config_name": config,
        "features": [_feature(field) for field in SCHEMAS[config]],
        "splits": splits,
        "download_size": sum(manifest.files[name].bytes for name in manifest.shards(config)),
        "dataset_size": sum(split["num_bytes"] for split in splits),
    }


def _feature(field: Any) -> dict[str, Any]:
    kind = str(field.type)
    return {"name": field.name, **({"list": "string"} if kind.startswith("list") else {"dtype": kind})}
