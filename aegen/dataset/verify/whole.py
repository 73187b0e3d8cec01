"""Hashes, schemas and completeness of a dataset; and the check of everything, which sends out that of its rows."""

from __future__ import annotations

from collections.abc import Callable

from aegen.columns.schemas import SCHEMAS
from aegen.core.errors import BadData
from aegen.core.format import MANIFEST, SPLITS
from aegen.core.progress import Progress, silent
from aegen.dataset.annotations import check_annotations
from aegen.dataset.contract import Contract, read_contracts
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest, file_info
from aegen.dataset.names import shard_name, shard_parts
from aegen.dataset.shards import open_shard
from aegen.dataset.verify.demonstrations import check_steps
from aegen.dataset.verify.distinct import check_all_sources, check_unique, leaking_variants, overlaps
from aegen.dataset.verify.pairs import check_pairs, check_sources, check_variants
from aegen.engines.engine import Engine
from aegen.pairs.spec import Spec

Findings = dict[str, int]


def verify(folder: Folder, engine: Engine, progress: Progress = silent) -> Findings:
    """Check everything; the first thing that is wrong is an error that names the file."""
    manifest = folder.manifest()
    spec, contracts = check_whole(folder, manifest)
    jobs: list[tuple[Callable[..., int], tuple[object, ...]]] = []
    for name in [name for config in SCHEMAS for name in manifest.shards(config)]:
        config, _ = shard_parts(name)
        if config == "sources":
            jobs.append((check_sources, (folder / name,)))
        elif config == "annotations":
            jobs.append((check_annotations, (folder / name, folder / _pairs_of(name))))
        elif config in ("pairs", "variants"):
            jobs.append((check_pairs, (folder / name, config, spec)))
            if config == "variants" and spec:
                jobs.append((check_variants, (folder / name, folder / _pairs_of(name), spec)))
        else:
            jobs.append((check_steps, (folder / name, folder / _pairs_of(name), config, contracts[config])))
    with progress("verifying", len(jobs)) as advance:
        rows = 0
        for found in engine.map(_call, jobs):
            rows += found
            advance(1)
    findings = {"files": len(manifest.files), "rows": rows}
    if manifest.recipe.sources:
        check_all_sources(folder, manifest, spec)
        return findings
    if spec:
        check_unique(folder, manifest, spec)
    findings["sources in two splits"] = sum(overlaps(folder, manifest).values())
    if spec and spec.split == "source" and findings["sources in two splits"]:
        raise BadData(f"{folder.path}: {findings['sources in two splits']} sources occur in two splits")
    if spec and spec.split == "source" and (leaks := leaking_variants(folder, manifest)):
        raise BadData(f"{folder.path}: {leaks} sources of variants occur in validation or test")
    return findings


def check_whole(folder: Folder, manifest: Manifest) -> tuple[Spec | None, dict[str, Contract]]:
    """All but the meaning of the rows: the files, what they say of themselves, and that none is missing."""
    spec = manifest.recipe.spec
    check_files(folder, manifest)
    contracts = read_contracts(folder, manifest)
    _check_complete(folder, manifest, spec)
    capped = contracts["augmented"].capped_pairs if "augmented" in contracts else 0
    if manifest.capped_pairs != capped:
        raise BadData(f"{folder / MANIFEST}: field capped_pairs is {manifest.capped_pairs}, the shards say {capped}")
    return spec, contracts


def _call(function: Callable[..., int], arguments: tuple[object, ...]) -> int:
    return function(*arguments)


def _pairs_of(name: str) -> str:
    """The shard of pairs that a shard of demonstrations begins and ends with."""
    config, _, file = name.partition("/")
    return f"{'variants' if config == 'variants_expert' else 'pairs'}/{file}"


def check_files(folder: Folder, manifest: Manifest) -> None:
    """Every listed file is there, unaltered, and no other."""
    for name, wanted in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise BadData(f"{path}: missing")
        there = file_info(path, wanted.rows)
        if there != wanted:
            what = "size" if there.bytes != wanted.bytes else "content"
            raise BadData(f"{path}: altered ({what} differs from the manifest)")
        file, _ = open_shard(path, shard_parts(name)[0])
        with file:
            if file.metadata.num_rows != wanted.rows:
                raise BadData(f"{path}: {file.metadata.num_rows} rows, the manifest says {wanted.rows}")
    for config in SCHEMAS:
        for path in folder.there(config):
            if f"{config}/{path.name}" not in manifest.files:
                advice = "rerun the command that was interrupted, or remove the file"
                raise BadData(f"{path}: not in the manifest; {advice}")


def _check_complete(folder: Folder, manifest: Manifest, spec: Spec | None) -> None:
    """Every split of every config is there with all its shards, and generated data is as large as its spec says."""
    alone = manifest.recipe.sources is not None
    for config in ("sources",) if alone else manifest.recipe.tree():
        for split in SPLITS if config not in ("augmented", "sources") else ("train",):
            names = manifest.shards(config, split)
            if names != [shard_name(config, split, index, len(names)) for index in range(len(names))] or not names:
                raise BadData(f"{folder.path}: the manifest does not list all shards of {config}/{split}")
    names = [name for name in manifest.shards("variants") if manifest.recipe.expert]
    if [*map(_pairs_of, manifest.shards("variants_expert"))] != names:
        raise BadData(f"{folder.path}: the manifest does not list all shards of variants_expert/train")
    marked = [*map(_pairs_of, manifest.shards("annotations"))]
    if marked and marked != manifest.shards("pairs"):
        raise BadData(f"{folder.path}: the manifest does not list all shards of annotations")
    if alone and manifest.configs != ["sources"]:
        raise BadData(f"{folder.path}: shards of {manifest.configs[0]} in a dataset of sources without targets")
    if spec and alone:
        if manifest.rows("sources") != spec.d:
            raise BadData(f"{folder.path}: {manifest.rows('sources')} rows of sources, the spec says {spec.d}")
    elif spec:
        wanted = {"pairs": spec.d, "variants": spec.variants * manifest.rows("pairs", "train")}
        for config, rows in wanted.items():
            if manifest.rows(config) != rows:
                raise BadData(f"{folder.path}: {manifest.rows(config)} rows of {config}, the spec says {rows}")
