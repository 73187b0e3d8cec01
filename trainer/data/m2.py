"""The M2 format of grammatical error correction: sentences, and what each annotator would change in them.

``S`` begins a sentence of words separated by single spaces, ``A`` an edit of it:
``A start stop|||type|||correction|||required|||comment|||annotator``. Several corrections are separated by ``||``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trainer.core.errors import BadData

MAX_LINE = 1 << 24  # bytes of one line that a reader is willing to hold
NOTHING = ("", "-NONE-")  # how a correction says that the words go
NOOP = "noop"  # the type of an edit that says: this annotator changes nothing

Words = tuple[str, ...]


@dataclass(frozen=True, order=True)
class Edit:
    """``words[start:stop]`` become one of the ``corrections``."""

    start: int
    stop: int
    corrections: tuple[Words, ...]
    type: str = ""

    @property
    def kind(self) -> str:
        """What it does: insert, delete or replace words.

        >>> Edit(2, 2, (("the",),)).kind, Edit(2, 3, ((),)).kind, Edit(2, 3, (("a", "b"),)).kind
        ('insert', 'delete', 'replace')
        """
        return "insert" if self.start == self.stop else "replace" if any(self.corrections) else "delete"


@dataclass(frozen=True)
class Annotated:
    """A sentence, and the edits of each annotator; one who changes nothing has none."""

    source: Words
    annotators: tuple[tuple[Edit, ...], ...] = ((),)


@dataclass
class _Open:
    """A sentence whose edits are being read."""

    source: Words
    edits: dict[int, list[Edit]] = field(default_factory=dict)

    def closed(self) -> Annotated:
        annotators = tuple(tuple(sorted(self.edits[name])) for name in sorted(self.edits))
        return Annotated(self.source, annotators or ((),))


def read_m2(path: str | Path) -> Iterator[Annotated]:
    """The sentences of a file, one after the other."""
    try:
        with Path(path).open("rb") as file:
            yield from parse_m2(_lines(file, Path(path).name), Path(path).name)
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from None


def _lines(file: Iterable[bytes], name: str) -> Iterator[str]:
    for number, raw in enumerate(file, 1):
        if len(raw) > MAX_LINE:
            raise BadData(f"{name}:{number}: a line of more than {MAX_LINE:,} bytes")
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise BadData(f"{name}:{number}: not valid UTF-8 (byte {error.start + 1} of the line)") from None


def parse_m2(lines: Iterable[str], name: str = "m2") -> Iterator[Annotated]:
    """The sentences of some lines.

    >>> list(parse_m2(["S I likes it .", "A 1 2|||R:VERB:SVA|||like|||REQUIRED|||-NONE-|||0"]))[0].annotators
    ((Edit(start=1, stop=2, corrections=(('like',),), type='R:VERB:SVA'),),)
    """
    reading: _Open | None = None
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if line.startswith("S ") or line == "S":
            if reading:
                yield reading.closed()
            reading = _Open(tuple(line[2:].split(" ")) if line[2:] else ())
        elif line.startswith("A ") and reading:
            annotator, edit = _edit(line, where)
            known = reading.edits.setdefault(annotator, [])
            if edit is None:
                continue
            if edit.stop > len(reading.source):
                raise BadData(f"{where}: an edit outside the sentence")
            if edit not in known:
                known.append(edit)
        elif line:
            raise BadData(f"{where}: expected a line that begins with S or A")
    if reading:
        yield reading.closed()


def parse_edits(edits: Iterable[str], words: int, where: str) -> tuple[Edit, ...]:
    """The edits of one annotator as a shard has them, ``start stop|||type|||correction``, of so many words."""
    found = set()
    for text in edits:
        _, edit = _edit(f"A {text}|||REQUIRED|||-NONE-|||0", where)
        if edit and edit.stop > words:
            raise BadData(f"{where}: an edit outside the sentence")
        if edit:
            found.add(edit)
    return tuple(sorted(found))


def _edit(line: str, where: str) -> tuple[int, Edit | None]:
    """The annotator of a line, and the edit, if it is one."""
    fields = line[2:].split("|||")
    try:
        start, stop = map(int, fields[0].split())
        kind, correction, annotator = fields[1], fields[2], int(fields[5])
    except (ValueError, IndexError):
        raise BadData(f"{where}: an edit that cannot be read") from None
    if kind == NOOP or start < 0:
        return annotator, None
    if stop < start:
        raise BadData(f"{where}: an edit that ends before it begins")
    written = () if correction in NOTHING else correction.split("||")
    options = tuple(() if one in NOTHING else tuple(one.split(" ")) for one in written) or ((),)
    return annotator, Edit(start, stop, options, kind)


def write_m2(source: Words, edits: Iterable[Edit]) -> str:
    """A sentence and its edits as M2, for other tools.

    >>> write_m2(("I", "likes"), [Edit(1, 2, (("like",),))]).splitlines()
    ['S I likes', 'A 1 2|||replace|||like|||REQUIRED|||-NONE-|||0', '']
    """
    lines = [f"S {' '.join(source)}"]
    for edit in edits:
        correction = "||".join(" ".join(words) or "-NONE-" for words in edit.corrections)
        lines.append(f"A {edit.start} {edit.stop}|||{edit.type or edit.kind}|||{correction}|||REQUIRED|||-NONE-|||0")
    if len(lines) == 1:
        lines.append("A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0")
    return "\n".join(lines) + "\n\n"
