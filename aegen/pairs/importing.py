"""Text pairs of any origin: read, checked, tokenised, split, and written as the config ``pairs``.

The input is read once to check and count, so that nothing is written for bad input, and then once for each split, so
that memory stays flat.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aegen.arithmetic.tasks import TASKS
from aegen.core.errors import BadData, InvalidSpec
from aegen.core.format import MAX_TOKEN, SPLITS, join_state, tokenize
from aegen.core.progress import Progress, silent
from aegen.core.randomness import derive_key
from aegen.pairs.readers import named_split, open_reader
from aegen.pairs.rows import Annotation, Row
from aegen.pairs.spec import Annotator, Imported, Kind, MaxTokens, Rows, Seed, SplitBy, check_fields


class Parsed(NamedTuple):
    """A good pair, as tokens joined by one space."""

    split: str
    source: str
    target: str
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class Import:
    """What to import, and how."""

    paths: tuple[Path, ...] = ()
    kind: str = "auto"
    task: str = Imported.task
    tokens: Kind = Imported.tokens
    ratio: str | None = None  # per cent of train, validation and test
    split_by: SplitBy = Imported.split_by
    source_column: str = "source"
    target_column: str = "target"
    annotator: Annotator = 0
    seed: Seed = Imported.seed
    max_tokens: MaxTokens = Imported.max_tokens
    rows_per_shard: Rows = Imported.rows_per_shard
    skip_bad: bool = Imported.skip_bad
    sources_only: bool = False  # whether targets, if there are any, are dropped
    pairs: tuple[tuple[str, str], ...] | None = None  # instead of paths: what a program holds
    skipped: Counter[str] = field(default_factory=Counter, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.task not in ("text", *TASKS):
            raise InvalidSpec(f"task={self.task}: expected one of {', '.join(('text', *TASKS))}")
        if self.pairs is None and not self.paths:
            raise InvalidSpec("nothing to import: expected paths or pairs")
        if self.pairs is not None and (self.paths or self.kind != "auto"):
            raise InvalidSpec("pairs: cannot be combined with paths or a kind of file")
        if self.task != "text" and self.tokens != "words":
            raise InvalidSpec(f"tokens={self.tokens}: task {self.task} requires words")
        if self.sources_only and self.ratio:
            raise InvalidSpec("ratio: sources without targets are for training alone; leave it out")
        for name in ("annotator", "target_column", "split_by") if self.sources_only else ():
            if getattr(self, name) != getattr(type(self), name):
                raise InvalidSpec(f"{name}: sources without targets have none; leave it out")
        for path in self.paths if self.sources_only else ():
            if split := named_split(path)[0]:
                raise InvalidSpec(f"{path}: sources without targets are for training alone; leave {split}= out")
        _ = self.shares

    @property
    def shares(self) -> tuple[int, ...] | None:
        """Per cent of train, validation and test; None keeps the splits that are there."""
        if self.ratio is None:
            return None
        parts = self.ratio.split("/")
        if len(parts) != len(SPLITS) or not all(part.isdecimal() for part in parts) or sum(map(int, parts)) != 100:
            raise InvalidSpec(
                f"ratio={self.ratio}: expected three whole numbers that add up to 100, for example 70/15/15"
            )
        return tuple(map(int, parts))

    @property
    def recorded(self) -> Imported:
        """What the dataset depends on: the settings, and the inputs by name and content."""
        reader = open_reader(self)
        names = ("task", "tokens", "split_by", "seed", "max_tokens", "rows_per_shard", "skip_bad")
        settings = {name: getattr(self, name) for name in names}
        return Imported(reader.kind, reader.inputs(), split=self.ratio, **settings, **reader.options)

    def rows(self, skipped: Counter[str] | None = None) -> Iterator[Parsed]:
        """All good pairs; a bad one is an error that says where, or with ``skip_bad`` left out and counted."""
        for row in open_reader(self).rows():
            try:
                yield self._parse(row)
            except BadData as error:
                if not self.skip_bad:
                    raise
                if skipped is not None:
                    skipped[str(error).rpartition(": ")[2]] += 1

    def _parse(self, row: Row) -> Parsed:
        if row.problem:
            raise BadData(f"{row.where}: {row.problem}")
        source, target = self._tokens(row.where, row.source), self._tokens(row.where, row.target)
        if not source and not target:
            raise BadData(f"{row.where}: an empty pair")
        return Parsed(self._split_of(row, source, target), source, target, row.annotations)

    def _tokens(self, where: str, text: str) -> str:
        """One side of a pair as a state."""
        if "\0" in text:
            raise BadData(f"{where}: a NUL character")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise BadData(f"{where}: not valid UTF-8, or an unpaired surrogate")
        if self.task != "text":  # the released equations write == for the paper's =
            text = " ".join("=" if token == "==" else token for token in text.split())
        tokens = tokenize(text, self.tokens)
        if len(tokens) > self.max_tokens:
            raise BadData(f"{where}: more than {self.max_tokens:,} tokens")
        if len(text) > MAX_TOKEN // 8 and max(map(len, tokens)) > MAX_TOKEN:  # an escape has up to six characters
            raise BadData(f"{where}: a token of more than {MAX_TOKEN:,} characters")
        return join_state(tokens)

    def _split_of(self, row: Row, source: str, target: str) -> str:
        if row.split and (row.named or not self.shares):
            return row.split
        shares = self.shares or (70, 15, 15)
        by = {"source": source, "target": target, "pair": f"{source}\x1f{target}"}[self.split_by]
        number = derive_key(self.seed, "split", by) * 100 >> 64
        return SPLITS[(number >= shares[0]) + (number >= shares[0] + shares[1])]

    def count(self, progress: Progress = silent) -> dict[str, int]:
        """Pairs of each split; reads and checks everything."""
        counts: Counter[str] = Counter()
        by_file = any(named_split(path)[0] for path in self.paths)
        annotators = defaultdict[str, set[int]](set)  # of each split, where files are named by theirs, or of all
        self.skipped.clear()
        with progress("checking", 0) as advance:
            for row in self.rows(self.skipped):
                counts[row.split] += 1
                annotators[row.split if by_file else ""].update(name for name, _ in row.annotations)
                advance(1)
        name = ", ".join(map(str, self.paths)) or "input"
        if not counts:
            raise BadData(f"{name}: no pairs")
        for split, existing in annotators.items():
            if self.annotator not in (existing or {0}):  # every target would be its source
                known, where = ", ".join(map(str, sorted(existing or {0}))), f" in {split}" if split else ""
                raise InvalidSpec(f"{name}: no annotator {self.annotator}{where}; existing: {known}")
        return {split: counts[split] for split in SPLITS}
