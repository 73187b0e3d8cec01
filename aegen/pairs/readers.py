"""The formats in which text pairs come. A reader yields rows one by one and says where each was found."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from aegen.core.errors import BadData, InvalidSpec, MissingExtra
from aegen.core.format import SPLITS, SplitName
from aegen.files.places import short
from aegen.pairs.rows import Reader, Row, digests, lines_of
from aegen.pairs.spec import InputFile
from aegen.pairs.tables import Table

if TYPE_CHECKING:
    from aegen.pairs.importing import Import


# What a split may be called elsewhere, and what it is here.
SPLIT_NAMES: dict[str, SplitName] = {name: name for name in SPLITS}
SPLIT_NAMES |= dict.fromkeys(("val", "valid", "dev"), "validation")


@dataclass(frozen=True)
class Parallel:
    """Two text files, line by line."""

    source: Path
    target: Path
    split: str | None = None
    kind: ClassVar[str] = "parallel"
    options: ClassVar[dict[str, Any]] = {}

    def rows(self) -> Iterator[Row]:
        missing = ("", "", "missing")
        for left, right in zip_longest(lines_of(self.source), lines_of(self.target), fillvalue=missing):
            if "missing" in (left[2], right[2]):
                longer, shorter = (left, self.target) if right is missing else (right, self.source)
                yield Row(longer[0], problem=f"{shorter.name} has fewer lines")
                continue
            problem = left[2] or right[2]
            if not problem and (not left[1] or not right[1]):
                problem = "an empty line"
            yield Row(right[0] if right[2] or not right[1] else left[0], left[1], right[1], self.split, problem)

    def inputs(self) -> tuple[InputFile, ...]:
        return digests(self.source, self.target)


@dataclass(frozen=True)
class Lines:
    """One text file with a source on each line."""

    path: Path
    kind: ClassVar[str] = "lines"
    options: ClassVar[dict[str, Any]] = {}

    def rows(self) -> Iterator[Row]:
        for where, text, problem in lines_of(self.path):
            yield Row(where, text, text, problem=problem or ("" if text else "an empty line"))

    def inputs(self) -> tuple[InputFile, ...]:
        return digests(self.path)


@dataclass(frozen=True)
class Memory:
    """Pairs that a program holds."""

    pairs: tuple[tuple[str, str], ...]
    kind: ClassVar[str] = "python"
    options: ClassVar[dict[str, Any]] = {}

    def rows(self) -> Iterator[Row]:
        for number, (source, target) in enumerate(self.pairs, start=1):
            yield Row(f"pair {number}", source, target)

    def inputs(self) -> tuple[InputFile, ...]:
        content = json.dumps(self.pairs).encode()
        return (InputFile("pairs", hashlib.sha256(content).hexdigest()),)


@dataclass(frozen=True)
class Released:
    """A folder in the layout of the paper's authors: ``train_x.txt``, ``train_y.txt``, ``val_…``, ``test_…``."""

    folder: Path
    kind: ClassVar[str] = "released"
    options: ClassVar[dict[str, Any]] = {}
    names: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    def _parts(self) -> list[Parallel]:
        there = [name for name in self.names if (self.folder / f"{name}_x.txt").exists()]
        if not there:
            raise BadData(f"{self.folder}: no train_x.txt, val_x.txt or test_x.txt in it")
        return [
            Parallel(self.folder / f"{name}_x.txt", self.folder / f"{name}_y.txt", SPLIT_NAMES[name]) for name in there
        ]

    def rows(self) -> Iterator[Row]:
        for part in self._parts():
            yield from part.rows()

    def inputs(self) -> tuple[InputFile, ...]:
        return tuple(entry for part in self._parts() for entry in part.inputs())


@dataclass(frozen=True)
class M2:
    """The M2 format of grammatical error correction: ``S`` a sentence, ``A`` the edits of an annotator."""

    path: Path
    annotator: int = 0
    split: str | None = None  # to which all sentences go
    kind: ClassVar[str] = "m2"

    @property
    def options(self) -> dict[str, Any]:
        return {"annotator": self.annotator}

    def rows(self) -> Iterator[Row]:
        block: list[tuple[str, str, str]] = []
        for line in lines_of(self.path):
            _, text, problem = line
            if block and not problem and (not text or text.startswith("S ")):
                yield self._read(block)
                block = []
            if text or problem:
                block.append(line)
        if block:
            yield self._read(block)

    def _read(self, block: list[tuple[str, str, str]]) -> Row:
        """One sentence and its edits; what is wrong with one line is wrong with all of them."""
        edits, marked = [], dict[int, list[str]]()
        for number, (where, text, problem) in enumerate(block):
            if problem or not text.startswith("A " if number else "S "):
                return Row(where, problem=problem or "expected a line that begins with S or A")
            if number:
                annotator, edit, trouble = self._edit(text)
                if trouble:
                    return Row(where, problem=trouble)
                known = marked.setdefault(annotator, [])
                if edit and not 0 <= edit[0] <= edit[1] <= len(block[0][1][2:].split(" ")):
                    return Row(where, problem="an edit outside the sentence")
                if edit:
                    known.append("|||".join(text[2:].split("|||")[:3]))
                if edit and annotator == self.annotator:
                    edits.append(edit)
        annotations = tuple((name, tuple(found)) for name, found in sorted(marked.items()))
        row = Row(block[0][0], block[0][1][2:], "", self.split, "", self.split is not None, annotations)
        return self._corrected(row, edits)

    @staticmethod
    def _edit(text: str) -> tuple[int, tuple[int, int, list[str]] | None, str]:
        """Whose edit it is, the edit if it is one, and what is wrong with it."""
        fields = text[2:].split("|||")
        try:
            start, stop = map(int, fields[0].split())
            annotator = int(fields[5])
        except (ValueError, IndexError):
            return 0, None, "an edit that cannot be read"
        if not 0 <= annotator < 1 << 31:
            return 0, None, "an annotator that is no number from 0 on"
        if fields[1] == "noop" or start < 0:
            return annotator, None, ""
        written = fields[2].split("||")[0]  # the first of several alternatives
        return annotator, (start, stop, written.split(" ") if written not in ("", "-NONE-") else []), ""

    @staticmethod
    def _corrected(row: Row, edits: list[tuple[int, int, list[str]]]) -> Row:
        words, target, reached = row.source.split(" "), [], 0
        for start, stop, new in sorted(edits, key=lambda edit: edit[:2]):
            if not reached <= start <= stop <= len(words):
                return replace(row, problem="edits that overlap or lie outside the sentence")
            target += words[reached:start] + new
            reached = stop
        return replace(row, target=" ".join(target + words[reached:]))

    def inputs(self) -> tuple[InputFile, ...]:
        return tuple(replace(file, split=self.split) for file in digests(self.path))


@dataclass(frozen=True)
class Several:
    """Files of one format, one after the other."""

    parts: tuple[M2, ...]

    @property
    def kind(self) -> str:
        return self.parts[0].kind

    @property
    def options(self) -> dict[str, Any]:
        return self.parts[0].options

    def rows(self) -> Iterator[Row]:
        for part in self.parts:
            yield from part.rows()

    def inputs(self) -> tuple[InputFile, ...]:
        return tuple(file for part in self.parts for file in part.inputs())


@dataclass(frozen=True)
class HubDataset:
    """A dataset that the package ``datasets`` loads: a hub id or a folder."""

    name: str
    source: str
    target: str
    divided: bool = False  # anew, whatever its splits are called
    kind: ClassVar[str] = "datasets"

    @property
    def options(self) -> dict[str, Any]:
        return {"source_column": self.source, "target_column": self.target}

    def _load(self) -> Any:
        try:
            import datasets
        except ImportError:
            raise MissingExtra.of("datasets", "hub") from None
        name, _, config = self.name.partition(":")
        try:
            if (Path(name) / "dataset_dict.json").exists() or (Path(name) / "state.json").exists():
                loaded = datasets.load_from_disk(name)
            else:
                loaded = datasets.load_dataset(name, config or None)
        except Exception as error:  # whatever it stumbles over in a stranger's folder, of which it checks little
            raise self._refused(error) from None
        return {str(split): data for split, data in loaded.items()} if isinstance(loaded, dict) else {"": loaded}

    def _refused(self, error: Exception) -> BadData:
        return BadData(f"{self.name}: the package datasets cannot read it ({type(error).__name__}: {short(error)})")

    def rows(self) -> Iterator[Row]:
        splits = self._load()
        unknown = [split for split in splits if split not in SPLIT_NAMES]
        if unknown and len(splits) > 1 and not self.divided:  # one alone is divided by the default ratio
            expected = f"expected one of {', '.join(SPLITS)}, or use --ratio"
            raise InvalidSpec(f"{self.name}: split {unknown[0]!r}: {expected}")
        for split, data in splits.items():
            for name in (self.source, self.target):
                if name not in data.column_names:
                    raise BadData(
                        f"{self.name}: no column {name!r}; there are {', '.join(map(repr, data.column_names))}"
                    )
            for number, (source, target) in enumerate(self._pairs(data), start=1):
                row = Row(f"{self.name}/{split or 'all'}:{number}", split=SPLIT_NAMES.get(split))
                if isinstance(source, str) and isinstance(target, str):
                    yield replace(row, source=source, target=target)
                else:
                    yield replace(row, problem="no text")

    def _pairs(self, data: Any) -> Iterator[tuple[Any, Any]]:
        try:
            for record in data:
                yield record[self.source], record[self.target]
        except Exception as error:
            raise self._refused(error) from None

    def inputs(self) -> tuple[InputFile, ...]:
        content = "-".join(data._fingerprint for data in self._load().values())
        there = Path(self.name)
        return (InputFile(there.name if there.exists() else self.name, content),)


SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet", ".m2": "m2"}
KINDS = ("auto", "released", "parallel", "csv", "tsv", "jsonl", "parquet", "m2", "datasets", "lines")


def open_reader(wanted: Import) -> Reader:
    """The reader for these paths: by the asked kind, or by what they look like."""
    if wanted.pairs is not None:
        _check_annotator(wanted, Memory.kind)
        return Memory(wanted.pairs)
    splits, paths = zip(*map(named_split, wanted.paths), strict=True)
    kind = wanted.kind
    if kind not in KINDS:
        raise InvalidSpec(f"kind={kind}: expected one of {', '.join(KINDS)}")
    for path in paths:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InvalidSpec(f"{path}: import reads its input several times, which a pipe does not allow; use a file")
    if kind == "auto":
        plain = wanted.sources_only and len(paths) == 1 and paths[0].is_file() and paths[0].suffix not in SUFFIXES
        kind = "lines" if plain else _guess(paths)
    if kind == "lines" and not wanted.sources_only:
        raise InvalidSpec("kind=lines has no targets: use --sources-only, or another kind")
    _check_annotator(wanted, kind)
    target_column = wanted.source_column if wanted.sources_only else wanted.target_column
    if any(splits) and kind != "m2":
        raise InvalidSpec(f"{wanted.paths[0]}: SPLIT=FILE is for M2 files only, not {kind}")
    if len(paths) != (2 if kind == "parallel" else 1) and kind != "m2":
        raise InvalidSpec(f"{kind} takes {'two files' if kind == 'parallel' else 'one path'}, not {len(paths)}")
    match kind:
        case "parallel":
            return Parallel(paths[0], paths[1])
        case "released":
            return Released(paths[0])
        case "m2":
            return Several(tuple(M2(*each) for each in zip(paths, repeat(wanted.annotator), splits, strict=False)))
        case "datasets":
            divided = wanted.ratio is not None or wanted.sources_only
            return HubDataset(str(paths[0]), wanted.source_column, target_column, divided)
        case "lines":
            return Lines(paths[0])
    return Table(paths[0], kind, wanted.source_column, target_column)


def _check_annotator(wanted: Import, kind: str) -> None:
    if wanted.annotator and kind != "m2":
        raise InvalidSpec(f"annotator={wanted.annotator}: only M2 files have annotators, not {kind}")


def named_split(path: Path) -> tuple[str | None, Path]:
    """The split that an argument names, if it names one, and the path.

    >>> named_split(Path("validation=data/dev.m2"))
    ('validation', PosixPath('data/dev.m2'))
    """
    split, mark, rest = str(path).partition("=")
    return (split, Path(rest)) if mark and split in SPLITS and rest and not path.exists() else (None, path)


def _guess(paths: tuple[Path, ...]) -> str:
    if all(path.suffix == ".m2" for path in paths) and len(paths) > 1:
        return "m2"
    if len(paths) == 2 and not any(path.suffix in SUFFIXES for path in paths):  # two tables are not two texts
        return "parallel"
    path = paths[0]
    if any((path / f"{name}_x.txt").exists() for name in Released.names):
        return "released"
    if path.suffix in SUFFIXES and not path.is_dir():
        return SUFFIXES[path.suffix]
    if path.is_file():
        offered = [kind for kind in KINDS if kind not in ("auto", "lines")]  # with --sources-only this would be lines
        raise InvalidSpec(f"{path.name}: unknown format; choose --kind {' | '.join(offered)}")
    if not path.exists() and not re.fullmatch(r"[\w.-]+/[\w.-]+(:[\w.-]+)?", str(path)):
        raise BadData(f"{path}: No such file or directory, and not the id of a dataset (owner/name)")
    return "datasets"
