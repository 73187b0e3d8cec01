"""The figures of a dataset, counted from its shards."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from aegen.arrow import to_numbers
from aegen.contract import read_contract
from aegen.folder import Folder
from aegen.shards import read_batches
from aegen.spec import SPLITS
from aegen.verify import overlaps


def stats(folder: Folder) -> dict[str, Any]:
    """Sizes, overlap and, where there are demonstrations, the paper's data table."""
    manifest = folder.manifest()
    figures: dict[str, Any] = {
        "spec": manifest.spec,
        "pairs": {split: manifest.rows("pairs", split) for split in SPLITS},
        "unchanged": _unchanged(folder),
        "shared sources": overlaps(folder, manifest),
    }
    if "variants" in manifest.configs:
        figures["variants"] = manifest.rows("variants")
    for config in ("expert", "augmented"):
        if config in manifest.configs:
            contract = read_contract(folder, manifest, config)
            figures[config] = {
                "trajectories": {split: _trajectories(folder, config, split) for split in SPLITS},
                "steps": {split: manifest.rows(config, split) for split in SPLITS},
                "unique steps": _unique_steps(folder, config, "train"),
                "T_max": contract.max_steps,
                "m": contract.max_state,
                "n": len(contract.design.slots),
                "state vocabulary": len(contract.state_tokens),
                "action vocabulary": len(contract.action_tokens),
                "metric": contract.metric,
                "design": contract.design.name,
            }
            if config == "augmented":
                figures[config]["capped pairs"] = contract.capped_pairs
    return figures


def _unchanged(folder: Folder) -> dict[str, int]:
    """Pairs that need no edit."""
    manifest = folder.manifest()
    return {
        split: sum(
            int(pc.sum(pc.equal(batch.column("source"), batch.column("target"))).as_py() or 0)
            for name in manifest.shards("pairs", split)
            for batch in read_batches(folder / name, "pairs")
        )
        for split in SPLITS
    }


def _trajectories(folder: Folder, config: str, split: str) -> int:
    return sum(
        int((to_numbers(batch.column("step")) == 0).sum())
        for name in folder.manifest().shards(config, split)
        for batch in read_batches(folder / name, config, ["step"])
    )


def _unique_steps(folder: Folder, config: str, split: str) -> int:
    """Distinct (state, action) rows of the split; hashes stand for them."""
    seen: set[int] = set()
    for name in folder.manifest().shards(config, split):
        for batch in read_batches(folder / name, config, ["state", "action"]):
            actions = pc.binary_join(batch.column("action"), " ")
            seen.update(map(hash, pc.binary_join_element_wise(batch.column("state"), actions, "|").to_pylist()))
    return len(seen)
