"""Is a dataset what it claims to be? Hashes and schemas first, then the meaning of every row."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegen.arithmetic.candidates import Space
from aegen.arithmetic.equation import DIVIDE, EQUALS, OPERATORS, fold, integer_type, is_integer, value
from aegen.arithmetic.vocabulary import EQUALS_ID, FIRST_INTEGER_ID, SYMBOLS, arithmetic_vocabulary, integers_of
from aegen.columns.arrow import of_numbers, to_numbers
from aegen.columns.ragged import intern
from aegen.columns.schemas import SCHEMAS
from aegen.core.errors import BadData
from aegen.core.format import MANIFEST, SPLITS, split_state
from aegen.core.progress import Progress, silent
from aegen.core.types import Integers, Tokens
from aegen.dataset.annotations import check_annotations
from aegen.dataset.contract import Contract, read_contracts
from aegen.dataset.counts import Counts, count_rows
from aegen.dataset.folder import Folder
from aegen.dataset.footers import shard_counts
from aegen.dataset.manifest import Manifest, file_info
from aegen.dataset.names import shard_name, shard_parts
from aegen.dataset.shards import open_shard, read_batches, read_pairs
from aegen.engines.engine import Engine
from aegen.files.places import Remote
from aegen.pairs.sources import candidates
from aegen.pairs.spec import Spec

Place = Path | Remote
Findings = dict[str, int]
Digests = npt.NDArray[np.bytes_]
DIGEST = np.dtype("S16")
HELD_TOKENS = 1 << 26  # of states whose outcome is remembered
SPLIT_PAIRS = (("train", "validation"), ("train", "test"), ("validation", "test"))


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
        _check_unique(folder, manifest, spec)
    findings["sources in two splits"] = sum(overlaps(folder, manifest).values())
    if spec and spec.split == "source" and findings["sources in two splits"]:
        raise BadData(f"{folder.path}: {findings['sources in two splits']} sources occur in two splits")
    if spec and spec.split == "source" and (leaks := _leaking_variants(folder, manifest)):
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
                raise BadData(f"{path}: not in the manifest")


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


# Pairs


def check_pairs(path: Place, config: str, spec: Spec | None) -> int:
    """Ids ascend; of generated pairs every equation holds and every source is one of its target. Rows seen."""
    rows, last, counts = 0, -1, Counts()
    descends = np.less_equal if config == "pairs" else np.less  # the variants of a pair share its id
    for batch in read_batches(path, config):
        ids = to_numbers(batch.column("id"))
        if (bad := np.flatnonzero(descends(ids, np.append(last, ids[:-1])[: len(ids)]))).size:
            raise BadData(f"{path}: ids do not ascend at row {rows + bad[0]}")
        last = int(ids[-1]) if len(ids) else last
        if spec:
            numbers = equation_numbers(batch.column("target"), spec)
            if (bad := np.flatnonzero(numbers < 0)).size:
                raise BadData(f"{path}: row {rows + bad[0]}: not an equation: {batch.column('target')[int(bad[0])]}")
            _check_sources(path, rows, batch, spec)
        counts += count_rows(batch)
        rows += len(batch)
    _check_counts(path, config, counts)
    return rows


def _check_counts(path: Place, config: str, counted: Counts) -> None:
    """The footer's counts are those of the rows."""
    stored = shard_counts(path, config)
    for field in Counts.__struct_fields__:
        said, found = getattr(stored, field), getattr(counted, field)
        if said != found:
            raise BadData(f"{path}: field counts.{field} is {str(said)[:99]}, expected {str(found)[:99]}")


def equation_numbers(texts: pa.StringArray, spec: Spec) -> Integers:
    """The number of each equation in its space; -1 for a text that is no true equation of this N and L."""
    space, kind = Space(spec.n, spec.l), integer_type(spec.n, spec.l)
    longest = 2 * spec.l * (len(str(spec.n + 1)) + 1)  # bytes; more is no equation, and would take many more once split
    fitting = pc.if_else(pc.less_equal(pc.binary_length(texts), longest), texts, "")
    ragged, _ = intern(fitting, arithmetic_vocabulary(spec.n).to_pylist())
    numbers = np.full(len(texts), -1, dtype=np.int64)
    for signed in (False, True):
        (rows,) = np.nonzero(ragged.lengths == 2 * spec.l - 1 + signed)
        cells = ragged.values[ragged.offsets[rows][:, None] + np.arange(2 * spec.l - 1 + signed)]
        body = cells[:, 1:] if signed else cells
        integers, operators = body[:, 0::2], body[:, 1:-1:2]
        good = (integers >= FIRST_INTEGER_ID).all(axis=1) & (integers < FIRST_INTEGER_ID + spec.n).all(axis=1)
        good &= (operators[:, :-1] < 4).all(axis=1) & (operators[:, -1] == EQUALS_ID)
        if signed:
            good &= (cells[:, 0] == SYMBOLS.index("-")) & (integers_of(integers[:, 0]) <= spec.n)
        rows, values = rows[good], integers_of(integers[good]).astype(kind)
        first, operators = (-values[:, 0] if signed else values[:, 0]), operators[good, :-1]
        total, term, denominator = fold(np.zeros_like(first), first, np.ones_like(first), operators, values[:, 1:-1])
        true = total + term == values[:, -1] * denominator
        numbers[rows[true]] = space.encode(first, operators, values[:, 1:-1])[true]
    return numbers


def _check_sources(path: Place, first: int, batch: pa.RecordBatch, spec: Spec) -> None:
    from Levenshtein import distance

    checks: dict[str, Callable[[list[str], list[str]], bool]] = {
        "aor": _is_aor_source,
        "aes": partial(_is_aes_source, spec),
        "aec": partial(_is_aec_source, spec, distance),
    }
    check = checks[spec.task]
    for row, (source, target) in enumerate(
        zip(*(batch.column(c).to_pylist() for c in ("source", "target")), strict=True)
    ):
        if not check(source.split(" "), target.split(" ")):
            raise BadData(f"{path}: row {first + row}: {source!r} is not an {spec.task} source of {target!r}")


def _is_aor_source(source: list[str], target: list[str]) -> bool:
    return source == [token for token in target if is_integer(token)]


def _is_aes_source(spec: Spec, source: list[str], target: list[str]) -> bool:
    """The target, but for integers written as ``( a o b )`` or ``( - a o b )``."""
    simplified: list[str] = []
    operators = OPERATORS if spec.division else OPERATORS[:DIVIDE]
    while "(" in source and ")" in source:
        start, stop = source.index("("), source.index(")")
        match inside := source[start + 1 : stop]:
            case [a, operator, b] | ["-", a, operator, b] if operator in operators:
                if not (_is_operand(a, spec.n) and _is_operand(b, spec.n)):
                    return False
            case _:
                return False
        simplified += [*source[:start], str(value(inside))]
        source = source[stop + 1 :]
    return simplified + source == target


def _is_aec_source(
    spec: Spec, distance: Callable[[list[str], list[str]], int], source: list[str], target: list[str]
) -> bool:
    """At most so many mistakes, none at the last token, and no new token but operators and integers."""
    if source == target:
        return True
    if not source or source[-1] != target[-1] or source.count(EQUALS) > 1:
        return False
    return distance(source[:-1], target[:-1]) <= spec.errors and all(_is_token(token, spec.n) for token in source)


def _is_token(token: str, n: int) -> bool:
    return token in (*OPERATORS, EQUALS) or _is_operand(token, n)


def _is_operand(token: str, n: int) -> bool:
    """Whether a token is an integer in 2 … N+1."""
    fits = is_integer(token) and not token.startswith("0") and len(token) <= len(str(n + 1))
    return fits and 2 <= int(token) <= n + 1


def check_variants(path: Place, pairs: Place, spec: Spec) -> int:
    """Every pair has its variants, in order, with its own id and target. No rows: they are counted elsewhere."""
    table = pa.Table.from_batches(read_batches(pairs, "pairs", ["id", "target"]))
    rows = 0
    for batch in read_batches(path, "variants", ["id", "target"]):
        of = np.arange(rows, rows + len(batch)) // spec.variants
        wanted = table.take(of_numbers(of[of < len(table)])).combine_chunks()
        if not pa.Table.from_batches([batch]).equals(wanted):
            raise BadData(f"{path}: variants that do not belong to the pairs of {pairs.name}, from row {rows} on")
        rows += len(batch)
    if rows != spec.variants * len(table):
        raise BadData(f"{path}: {rows} variants of {len(table)} pairs; expected {spec.variants} each")
    return 0


def _leaking_variants(folder: Folder, manifest: Manifest) -> int:
    """Distinct sources of variants, all of them for training, that another split has too."""
    mine = _distinct_sources(folder, manifest, "variants", "train")
    others = [_distinct_sources(folder, manifest, "pairs", split) for split in SPLITS[1:]]
    return sum(_in_common(mine, other) for other in others)


def _distinct_sources(folder: Folder, manifest: Manifest, config: str, split: str) -> Digests:
    """One digest for each, sorted: the texts would not fit into memory."""
    parts = [np.empty(0, dtype=DIGEST)]
    for name in manifest.shards(config, split):
        for batch in read_batches(folder / name, config, ["source"]):
            parts.append(_distinct(_digests(batch.column("source"))))
    return _distinct(np.concatenate(parts))


def _digests(texts: pa.StringArray) -> Digests:
    raw = [blake2b(text, digest_size=DIGEST.itemsize).digest() for text in texts.cast(pa.binary()).to_pylist()]
    return np.array(raw, dtype=DIGEST)


def _distinct(digests: Digests) -> Digests:
    digests.sort()  # numpy.unique takes several times as long
    new = np.ones(len(digests), dtype=np.bool_)
    new[1:] = digests[1:] != digests[:-1]
    return digests[new]


def _in_common(left: Digests, right: Digests) -> int:
    return len(np.intersect1d(left, right, assume_unique=True))


def _check_unique(folder: Folder, manifest: Manifest, spec: Spec) -> None:
    numbers = [
        equation_numbers(batch.column("target"), spec)
        for name in manifest.shards("pairs")
        for batch in read_batches(folder / name, "pairs")
    ]
    everything = np.sort(np.concatenate(numbers))
    repeated = int((np.diff(everything) == 0).sum())
    if repeated:
        raise BadData(f"{folder.path}: {repeated} equations occur twice")


def overlaps(folder: Folder, manifest: Manifest) -> dict[str, int]:
    """Distinct sources that two splits share, for each pair of splits."""
    distinct: dict[str, Digests] = {split: _distinct_sources(folder, manifest, "pairs", split) for split in SPLITS}
    found = {}
    for left, right in SPLIT_PAIRS:
        found[f"{left}/{right}"] = _in_common(distinct[left], distinct[right])
    return found


# Sources without targets


def check_sources(path: Place) -> int:
    """Ids ascend. Rows seen."""
    rows, last, counts = 0, -1, Counts()
    for batch in read_batches(path, "sources"):
        ids = to_numbers(batch.column("id"))
        if (bad := np.flatnonzero(np.less_equal(ids, np.append(last, ids[:-1])[: len(ids)]))).size:
            raise BadData(f"{path}: ids do not ascend at row {rows + bad[0]}")
        last, rows, counts = int(ids[-1]) if len(ids) else last, rows + len(batch), counts + count_rows(batch)
    _check_counts(path, "sources", counts)
    return rows


def check_all_sources(folder: Folder, manifest: Manifest, spec: Spec | None) -> None:
    """No source occurs twice, and those of a spec come in its order."""
    names, found = manifest.shards("sources"), _distinct_sources(folder, manifest, "sources", "train")
    if len(found) != manifest.rows("sources"):
        raise BadData(f"{folder.path}: {manifest.rows('sources') - len(found)} sources occur twice")
    if spec is None:
        return
    drawn = candidates(spec)
    for name in names:
        for batch in read_batches(folder / name, "sources", ["source"]):
            for text in batch.column("source").to_pylist():
                if text not in drawn:  # goes on to the next one that equals it
                    raise BadData(f"{folder / name}: {text!r} is not a source of the spec, or not in its order")


# Demonstrations


def check_steps(path: Place, pairs: Place, config: str, contract: Contract) -> int:
    """Replay every trajectory through the environment to its pair's goal. Steps seen."""
    kept = min(1 << 16, HELD_TOKENS // (contract.max_state + 1))
    step = lru_cache(maxsize=kept)(contract.environment.step)
    wanted = read_pairs(pairs, "variants" if config == "variants_expert" else "pairs")
    rows, counts = 0, Counts()
    trajectory: tuple[int, int] | None = None
    expected: Tokens | None = None  # the state that the environment says comes next; None at the end of a trajectory
    number, goal, seen_pair = 0, "", -1

    def wrong(what: str) -> BadData:
        return BadData(f"{path}: row {rows}: {what}")

    for batch in read_batches(path, config):
        for pair, origin, index, state, action in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            tokens = split_state(state)
            if len(tokens) > contract.max_state:
                raise wrong(f"a state of {len(tokens):,} tokens, the metadata says {contract.max_state:,} at most")
            if expected is None:
                if origin == 0:
                    seen_pair, source, goal = next(wanted, (-1, "", ""))
                    if state != source:
                        raise wrong("the trajectory does not begin with its pair's source")
                elif config != "augmented" or trajectory is None or trajectory != (pair, origin - 1):
                    raise wrong(f"origin {origin} out of order")
                if pair != seen_pair:
                    raise wrong(f"pair {pair}, expected {seen_pair}")
                trajectory, number = (pair, origin), 0
                if index != 0:
                    raise wrong(f"the trajectory begins with step {index}")
            elif tokens != expected or trajectory != (pair, origin) or index != number:
                raise wrong("the step does not follow from the previous one")
            outcome = step(tokens, tuple(action))
            if outcome.refusal:
                raise wrong(f"the environment refuses {action}: {outcome.refusal}")
            if outcome.done and state != goal:
                raise wrong("the trajectory does not end at its goal")
            expected, number = (None if outcome.done else outcome.state), number + 1
            rows += 1
        counts += count_rows(batch, contract.design)
    if expected is not None or next(wanted, None) is not None:
        raise wrong("the trajectories end before the pairs do")
    _check_counts(path, config, counts)
    return rows
