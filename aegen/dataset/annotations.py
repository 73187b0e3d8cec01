"""The edits of annotators, which come with imported M2 files: a row for each pair and annotator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from aegen.core.errors import BadData
from aegen.core.format import detokenize, split_state
from aegen.dataset.counts import Counts, count_rows
from aegen.dataset.footers import shard_counts
from aegen.dataset.shards import read_batches, read_description_of, read_pairs
from aegen.files.places import Remote

Place = Path | Remote
EDIT = re.compile(r"(\d{1,9}) (\d{1,9})\|\|\|.*\|\|\|.*", re.ASCII | re.DOTALL)  # start, stop, type and correction


def check_annotations(path: Place, pairs: Place) -> int:
    """Every pair has one or more annotators, in order, and all their edits lie in its source. Rows seen."""
    sizes = _source_words(pairs)
    rows, last, size, counts = 0, (-1, -1), 0, Counts()
    for batch in read_batches(path, "annotations"):
        counts += count_rows(batch)
        for pair, annotator, edits in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if pair != last[0]:
                expected, size = next(sizes, (None, 0))
                if pair != expected:
                    raise BadData(f"{path}: row {rows}: pair {pair}, expected {expected}")
            elif annotator <= last[1]:
                raise BadData(f"{path}: row {rows}: the annotators of pair {pair} do not ascend")
            for edit in edits:
                found = EDIT.fullmatch(edit)
                if not found or not int(found[1]) <= int(found[2]) <= size:
                    raise BadData(f"{path}: row {rows}: not an edit of pair {pair}: {edit[:80]!a}")
            last, rows = (pair, annotator), rows + 1
    if left := next(sizes, None):
        raise BadData(f"{path}: pair {left[0]} has no annotator")
    if counts != shard_counts(path, "annotations"):
        raise BadData(f"{path}: its counts are not those of its rows")
    return rows


def _source_words(pairs: Place) -> Iterator[tuple[int, int]]:
    """Id and number of words of each source: annotators count words, whatever the tokens are."""
    tokens = read_description_of(pairs, "pairs").tokens
    for pair, source, _ in read_pairs(pairs):
        yield pair, len(detokenize(split_state(source), tokens).split(" "))
