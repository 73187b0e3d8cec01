"""Rows of shards as id tensors: unique states, unique steps, and the trajectories that use them.

Axes: b batch, m state, n action. A step is stored once, however many trajectories pass through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from trainer.core.errors import BadData, one_line
from trainer.core.format import KEEP, PAIR_COLUMNS, STEP_COLUMNS, SplitName, split_state
from trainer.data.contract import POSITIONS, SPECIAL, Contract, OpenContract
from trainer.data.dataset import DAMAGED, MAX_TABLE, Dataset, Footer, leading

Array = npt.NDArray[Any]

PART = 1 << 22  # ids looked up at once: the temporary tables are ten times as large as the result
# Peak bytes for each cell of a matrix:
ACTION = 12  # of action ids, and their copies while steps are made unique
GAME = 24  # of the states that games begin with: as read, as played, and as tokens again
WORD = 16  # for each token of a text kept as strings


def check_size(count: int, each: int, where: str) -> None:
    """Refuse rows whose declared sizes need too much memory, before it is allocated."""
    if count * each > MAX_TABLE:
        raise BadData(f"{where}: the rows would need {count * each / 1e9:,.1f} GB, too much to hold at once")


@dataclass(frozen=True)
class Batch:
    """The steps of one update; ``lengths`` stay on the CPU, where packing needs them."""

    states: Tensor  # (b, m)
    lengths: Tensor  # (b)
    actions: Tensor  # (b, n)

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.states, self.lengths, self.actions

    @property
    def smoothing(self) -> float:
        return 0.0

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        return Batch(
            self.states.to(device, non_blocking=True),
            self.lengths,
            self.actions.to(device, non_blocking=True),
        )


@dataclass(frozen=True)
class Steps:
    """Unique steps, and for each trajectory the steps that it takes."""

    states: Tensor  # (states, m) padded with 0
    lengths: Tensor  # (states)
    actions: Tensor  # (steps, n)
    state_of: Tensor  # (steps) row of ``states``
    taken: Tensor  # (rows) the step of every row of the shards
    starts: Tensor  # (trajectories + 1) where each trajectory begins in ``taken``
    skipped: int = 0  # rows with a token or a length that the contract does not know
    games: int = 0  # trajectories, the last ones, that are won games: then a state may have several right actions

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def trajectories(self) -> int:
        return len(self.starts) - 1

    def batch(self, index: Tensor) -> Batch:
        """The steps with these numbers, padded to the longest of them."""
        rows = self.state_of[index]
        lengths = self.lengths[rows].long()
        width = max(int(lengths.max()), 1)
        return Batch(self.states[rows, :width].long(), lengths, self.actions[index].long())

    def pooled(self, trajectories: Tensor) -> Tensor:
        """The unique steps of some trajectories, in ascending order."""
        first, last = self.starts[trajectories], self.starts[trajectories + 1]
        counts = last - first
        offsets = torch.repeat_interleave(first - (counts.cumsum(0) - counts), counts)
        unique: Tensor = torch.unique(self.taken[offsets + torch.arange(len(offsets))])
        return unique


def count_tokens(texts: pa.Array) -> Array:
    """How many tokens each text has."""
    spaces = pc.count_substring(texts, " ").to_numpy(zero_copy_only=False).astype(np.int64)
    return np.where(pc.equal(texts, "").to_numpy(zero_copy_only=False), 0, spaces + 1)


def encode_texts(texts: pa.Array, contract: Contract, where: str) -> tuple[Array, Array, Array]:
    """Token strings as ids (rows, m) and lengths (rows), and which rows the contract can express."""
    lengths = count_tokens(texts)
    width = max(int(lengths.max(initial=0)), 1) if contract.open else contract.max_state
    kind = np.dtype(np.int16 if not contract.open and len(contract.state_tokens) < 1 << 15 else np.int32)
    check_size(len(texts), width * kind.itemsize, where)
    readable = lengths <= width
    lengths = np.where(readable, lengths, 0)
    states = np.zeros((len(texts), width), dtype=kind)
    if isinstance(contract, OpenContract):
        meet(texts, contract)
    known = pa.array(contract.names[1:], texts.type)
    for part in parts_of(len(texts), width):
        # Texts that are too long are not looked up, so a part has no more tokens than cells.
        short = pc.if_else(pa.array(readable[part]), texts[part], pa.scalar("", texts.type))
        lengths[part], fits = fill(states[part], short, lengths[part], known)
        readable[part] &= fits
    return states, lengths.astype(np.int32), readable


def meet(texts: pa.Array, contract: OpenContract) -> None:
    """Number the words of some texts that were not met before, in their order."""
    known = pa.array(contract.names[1:], texts.type)
    for first in range(0, len(texts), PART >> 8):
        words = pc.unique(pc.split_pattern(texts[first : first + (PART >> 8)], " ").flatten())
        for word in words.filter(pc.invert(pc.is_in(words, value_set=known))).to_pylist():
            if word:  # an empty text is split into one
                contract.word_id(word)


def parts_of(rows: int, width: int) -> Iterator[slice]:
    """Rows of a matrix, so many at a time that they have few cells."""
    size = max(PART // max(width, 1), 1)
    return (slice(first, first + size) for first in range(0, rows, size))


def fill(states: Array, texts: pa.Array, lengths: Array, known: pa.Array) -> tuple[Array, Array]:
    """Write the ids of texts into empty rows; the lengths, 0 for a row with an unknown token, and which have none."""
    words = pc.split_pattern(texts, " ")
    empty = np.repeat(lengths == 0, words.value_lengths().to_numpy(zero_copy_only=False))  # "" is split into one
    found = pc.fill_null(pc.index_in(words.flatten(), value_set=known), -1)
    flat = found.to_numpy(zero_copy_only=False)[~empty] + 1
    rows = np.repeat(np.arange(len(lengths)), lengths)
    fits = np.bincount(rows[flat == 0], minlength=len(lengths)) == 0
    kept = np.where(fits, lengths, 0)
    states[np.arange(states.shape[1]) < kept[:, None]] = flat[np.repeat(fits, lengths)]
    return kept, fits


def encode_actions(actions: pa.Array, contract: Contract, where: str) -> tuple[Array, Array]:
    """Action lists as ids (rows, n), and which rows the contract can express."""
    n = contract.action_length
    lengths = pc.list_value_length(actions).to_numpy(zero_copy_only=False)
    if contract.game == "tags":
        return pad_tags(actions, lengths, contract, where)
    if not np.array_equal(lengths, np.full(len(actions), n)):
        raise BadData(f"{where}: every action must have {n} tokens")
    flat = actions.flatten()
    if isinstance(contract, OpenContract):
        coded = flat.dictionary_encode(null_encoding="encode")
        table = np.array([contract.action_id(token) for token in coded.dictionary.to_pylist()], dtype=np.int64)
        ids = table[coded.indices.to_numpy(zero_copy_only=False)].reshape(-1, n)
        return ids, (ids >= 0).all(axis=1)
    found = pc.fill_null(pc.index_in(flat, value_set=pa.array(contract.actions, flat.type)), -1)
    ids = found.to_numpy(zero_copy_only=False).reshape(-1, n)
    return ids, (ids >= 0).all(axis=1)


def pad_tags(actions: pa.Array, lengths: Array, contract: Contract, where: str) -> tuple[Array, Array]:
    """Rounds of tags as ids (rows, n): after the last token everything is kept."""
    check_size(len(actions), ACTION * contract.action_length, where)
    flat = actions.flatten()
    found = pc.fill_null(pc.index_in(flat, value_set=pa.array(contract.actions, flat.type)), -1)
    known = found.to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(known)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    fits = (lengths <= contract.action_length) & (np.bincount(rows[known < 0], minlength=len(lengths)) == 0)
    ids = np.full((len(lengths), contract.action_length), contract.action_ids[KEEP], dtype=known.dtype)
    kept = fits[rows]
    ids[rows[kept], place[kept]] = known[kept]
    return ids, fits


def number_steps(states: Array, actions: Array, vocabulary: int) -> tuple[Array, Array]:
    """The first row of every distinct (state, action), and for each row the number of its step."""
    code = states.astype(np.int64)
    for slot in range(actions.shape[1]):
        if int(code.max(initial=0)) >= (1 << 62) // max(vocabulary, 1):
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
        code = code * vocabulary + actions[:, slot]
    _, first, taken = np.unique(code, return_index=True, return_inverse=True)
    return first, taken.reshape(-1)


def encode_steps(table: pa.Table, contract: Contract, where: str, strict: bool = True) -> Steps:
    """Rows as id tensors; ``strict`` refuses rows outside the contract, else they are skipped and counted."""
    if any(table[name].null_count for name in STEP_COLUMNS):
        raise BadData(f"{where}: null value in a row")
    try:
        texts = one_chunk(table["state"].dictionary_encode())
        states, lengths, readable = encode_texts(texts.dictionary, contract, where)
        state_of = texts.indices.to_numpy(zero_copy_only=False)
        actions, sayable = encode_actions(one_chunk(table["action"]), contract, where)
        pair, origin, step = (table[name].to_numpy() for name in ("pair", "origin", "step"))
    except DAMAGED as error:
        raise BadData(f"{where}: {one_line(error)}") from error
    fits = readable[state_of] & sayable
    if strict and contract.open:  # a shard's own rows have the words that it declares, even if any could be read
        known = len(contract.state_tokens)
        fits &= (states.max(axis=1, initial=0) <= known)[state_of] & (lengths <= contract.max_state)[state_of]
        fits &= ((actions < known + len(SPECIAL)) | (actions >= POSITIONS)).all(axis=1)
    if strict and not fits.all():
        row = int(np.argmin(fits))
        shown = f"state {str(table['state'][row])[:40]!r}, action {table['action'][row].as_py()}"
        raise BadData(f"{where}: row {row} ({shown}) does not match the shard's description")
    begins = np.ones(len(pair), dtype=bool)
    begins[1:] = (pair[1:] != pair[:-1]) | (origin[1:] != origin[:-1]) | (step[1:] == 0)
    trajectory = begins.cumsum()[fits]
    first, taken = number_steps(state_of[fits], actions[fits], contract.action_bound)
    starts = np.flatnonzero(np.diff(trajectory, prepend=-1))
    return Steps(
        states=torch.from_numpy(states),
        lengths=torch.from_numpy(lengths),
        actions=torch.from_numpy(actions[fits][first].astype(np.int32)),
        state_of=torch.from_numpy(state_of[fits][first].astype(np.int64)),
        taken=torch.from_numpy(taken.astype(np.int64)),
        starts=torch.from_numpy(np.append(starts, len(taken)).astype(np.int64)),
        skipped=int((~fits).sum()),
    )


def one_chunk(column: pa.ChunkedArray) -> Any:
    """A column as one array, also when it has no rows."""
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(column.chunks)


def load_steps(dataset: Dataset, footers: Sequence[Footer], contract: Contract, strict: bool = True) -> Steps:
    """All steps of some shards in memory."""
    where = f"{dataset.where}/{footers[0].shard.name.rsplit('/', 1)[0]}"
    table = dataset.read_all((footer.shard for footer in footers), STEP_COLUMNS)
    if not len(table):
        raise BadData(f"{where}: no rows")
    return encode_steps(table, contract, where, strict)


@dataclass(frozen=True)
class Pairs:
    """Sources and targets as token tuples, with the sources that the contract can express as ids."""

    sources: list[tuple[str, ...]]
    targets: list[tuple[str, ...]]
    states: Tensor  # (rows, m)
    lengths: Tensor  # (rows)
    playable: Tensor  # (rows) bool

    def __len__(self) -> int:
        return len(self.sources)


def load_pairs(dataset: Dataset, split: SplitName, contract: Contract, rows: int | None = None) -> Pairs:
    """The pairs of one split; with ``rows`` only those of the first shards, up to that many."""
    footers = leading(dataset.footers("pairs", split), rows)
    for footer in footers:
        for name in ("task", "tokens", "arithmetic"):
            found, needed = getattr(footer.description, name), getattr(contract, name)
            if found != needed:
                where = f"{dataset.where}/{footer.shard.name}"
                raise BadData(f"{where}: field {name} is {str(found)[:60]!r}, the agent expects {needed!r}")
    table = dataset.read_all((footer.shard for footer in footers), PAIR_COLUMNS)
    where = f"{dataset.where}/pairs/{split}"
    if any(table[name].null_count for name in PAIR_COLUMNS):
        raise BadData(f"{where}: null value in a row")
    if not len(table):
        raise BadData(f"{where}: no rows")
    if not contract.open:
        check_size(len(table), GAME * contract.max_state, where)
    states, lengths, playable = encode_texts(one_chunk(table["source"]), contract, where)
    check_size(len(table), GAME * states.shape[1], where)
    sources, targets = split_texts(table, where)
    return Pairs(
        sources=sources,
        targets=targets,
        states=torch.from_numpy(states),
        lengths=torch.from_numpy(lengths),
        playable=torch.from_numpy(playable),
    )


def split_texts(table: pa.Table, where: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The tokens of all sources and targets; a token that occurs often is kept once."""
    columns = [one_chunk(table[side]) for side in ("source", "target")]
    check_size(int(sum(count_tokens(column).sum() for column in columns)), WORD, where)
    words: dict[str, str] = {}
    sources, targets = (
        [tuple(map(words.setdefault, found, found)) for found in map(split_state, column.to_pylist())]
        for column in columns
    )
    return sources, targets
