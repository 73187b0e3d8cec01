"""The figures of a dataset, counted from its shards."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from aegen.arrow import to_numbers
from aegen.contract import read_contract
from aegen.folder import Folder, Manifest
from aegen.shards import read_batches
from aegen.spec import SPLITS
from aegen.verify import overlaps

DEMONSTRATIONS = ("expert", "augmented")


def stats(folder: Folder) -> dict[str, Any]:
    """All figures, and two that hold all rows in memory: sources shared by splits, distinct training steps."""
    manifest = folder.manifest()
    found = figures(folder, manifest) | {"shared sources": overlaps(folder, manifest)}
    for config in DEMONSTRATIONS:
        if config in found:
            found[config]["unique steps"] = _unique_steps(folder, config, "train")
    return found


def figures(folder: Folder, manifest: Manifest) -> dict[str, Any]:
    """Sizes and, where there are demonstrations, the paper's data table; one row group in memory at a time."""
    found: dict[str, Any] = {
        "spec": manifest.spec,
        "pairs": {split: manifest.rows("pairs", split) for split in SPLITS},
        "unchanged": _unchanged(folder, manifest),
    }
    if "variants" in manifest.configs:
        found["variants"] = manifest.rows("variants")
    for config in DEMONSTRATIONS:
        if config in manifest.configs:
            contract = read_contract(folder, manifest, config)
            found[config] = {
                "trajectories": {split: _trajectories(folder, manifest, config, split) for split in SPLITS},
                "steps": {split: manifest.rows(config, split) for split in SPLITS},
                "T_max": contract.max_steps,
                "m": contract.max_state,
                "n": len(contract.design.slots),
                "state vocabulary": len(contract.state_tokens),
                "action vocabulary": len(contract.action_tokens),
                "metric": contract.metric,
                "design": contract.design.name,
            }
            if config == "augmented":
                found[config]["capped pairs"] = contract.capped_pairs
    return found


def _unchanged(folder: Folder, manifest: Manifest) -> dict[str, int]:
    """Pairs that need no edit."""
    return {
        split: sum(
            int(pc.sum(pc.equal(batch.column("source"), batch.column("target"))).as_py() or 0)
            for name in manifest.shards("pairs", split)
            for batch in read_batches(folder / name, "pairs")
        )
        for split in SPLITS
    }


def _trajectories(folder: Folder, manifest: Manifest, config: str, split: str) -> int:
    return sum(
        int((to_numbers(batch.column("step")) == 0).sum())
        for name in manifest.shards(config, split)
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
