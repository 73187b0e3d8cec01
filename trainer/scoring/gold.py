"""What should have been edited: the annotators' edits where there are any, else those that lead to the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from trainer.core.errors import BadData
from trainer.core.format import ANNOTATION_COLUMNS, SplitName, detokenize
from trainer.data.dataset import Dataset
from trainer.data.m2 import Annotated, Words, parse_edits
from trainer.scoring.maxmatch import edits_between


def towards(source: Sequence[str], target: Sequence[str]) -> Annotated:
    """The edits that lead to a target, as if somebody had annotated them."""
    return Annotated(tuple(source), (edits_between(tuple(source), tuple(target)),))


class GoldEdits:
    """The gold edits of a split. Annotators edit words, whatever the tokens of the dataset are."""

    def __init__(self, dataset: Dataset, split: SplitName, tokens: str) -> None:
        self.dataset, self.split, self.tokens = dataset, split, tokens
        self.by_annotators = dataset.has("annotations", split)

    def units(self, state: Sequence[str]) -> Words:
        """A state as what the edits count: words, or tokens."""
        if not self.by_annotators:
            return tuple(state)
        text = detokenize(state, self.tokens)
        return tuple(text.split(" ")) if text else ()

    def annotated(self, texts: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Iterator[Annotated]:
        """The gold edits of pairs (source, target), all of the split from the first on, in order."""
        if not self.by_annotators:
            for source, target in texts:
                yield towards(source, target)
            return
        marked = groupby(self._rows(), key=lambda row: row[0])
        where = f"{self.dataset.where}/annotations/{self.split}"
        for number, (source, _) in enumerate(texts):
            words = self.units(source)
            _, rows = next(marked, (None, ()))
            annotators = tuple(parse_edits(edits, len(words), f"{where}: pair {number}") for _, edits in rows)
            if not annotators:
                raise BadData(f"{where}: fewer pairs than pairs/{self.split} has")
            yield Annotated(words, annotators)

    def _rows(self) -> Iterator[tuple[int, Any]]:
        for footer in self.dataset.footers("annotations", self.split):
            table = self.dataset.read(footer.shard, ANNOTATION_COLUMNS)
            if any(table[name].null_count for name in ANNOTATION_COLUMNS):
                raise BadData(f"{self.dataset.where}/{footer.shard.name}: null value in a row")
            for edits, pair in zip(table["edits"].to_pylist(), table["pair"].to_pylist(), strict=True):
                if None in edits:
                    raise BadData(f"{self.dataset.where}/{footer.shard.name}: null value in a row")
                yield pair, edits
