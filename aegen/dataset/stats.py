"""The figures of a dataset, from its manifest and its shards' footers."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from aegen.core.format import SPLITS
from aegen.dataset.contract import Contract, read_contracts
from aegen.dataset.counts import Counts
from aegen.dataset.folder import Folder
from aegen.dataset.footers import read_counts
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import read_batches
from aegen.dataset.verify import SPLIT_PAIRS, overlaps
from aegen.engines.local import Local


def stats(folder: Folder, distinct: bool = False) -> dict[str, Any]:
    """All figures; distinct training steps only on request, because counting them reads every row."""
    manifest = folder.manifest()
    contracts = read_contracts(folder, manifest)
    found = figures(manifest, contracts, read_counts(folder, manifest, Local()))
    found |= {"shared sources": shared_sources(folder, manifest)}
    for config in contracts:
        if distinct:
            found[config]["unique steps"] = _unique_steps(folder, config, "train")
    return found


def figures(
    manifest: Manifest, contracts: dict[str, Contract], counts: dict[tuple[str, str], Counts]
) -> dict[str, Any]:
    """Sizes and, where there are demonstrations, the paper's data table."""
    empty = Counts()
    found: dict[str, Any] = {
        "spec": manifest.recipe.tree(),
        "pairs": {split: manifest.rows("pairs", split) for split in SPLITS},
        "unchanged": {split: counts.get(("pairs", split), empty).unchanged for split in SPLITS},
    }
    if manifest.recipe.sources:
        found = {"spec": manifest.recipe.tree(), "sources": manifest.rows("sources")}
    if "variants" in manifest.configs:
        found["variants"] = manifest.rows("variants")
    if "annotations" in manifest.configs:
        found["annotations"] = {split: manifest.rows("annotations", split) for split in SPLITS}
    for config, contract in contracts.items():
        found[config] = {
            "trajectories": {split: counts.get((config, split), empty).trajectories for split in SPLITS},
            "steps": {split: manifest.rows(config, split) for split in SPLITS},
            "T_max": contract.max_steps,
            "m": contract.max_state,
            "n": contract.action_length,
            "state vocabulary": len(contract.state_tokens),
            "action vocabulary": len(contract.action_tokens),
            "metric": contract.metric,
            "design": contract.design.name,
        }
        if config == "augmented":
            found[config]["capped pairs"] = contract.capped_pairs
    return found


def shared_sources(folder: Folder, manifest: Manifest) -> dict[str, int]:
    """Distinct sources that two splits share: none in a split by source, which `aegen verify` checks."""
    spec = manifest.recipe.spec
    if spec and spec.split == "source":
        return dict.fromkeys(map("/".join, SPLIT_PAIRS), 0)
    return overlaps(folder, manifest)


def _unique_steps(folder: Folder, config: str, split: str) -> int:
    """Distinct (state, action) rows of the split; hashes stand for them."""
    seen: set[int] = set()
    for name in folder.manifest().shards(config, split):
        for batch in read_batches(folder / name, config, ["state", "action"]):
            actions = pc.binary_join(batch.column("action"), " ")
            seen.update(map(hash, pc.binary_join_element_wise(batch.column("state"), actions, "|").to_pylist()))
    return len(seen)
