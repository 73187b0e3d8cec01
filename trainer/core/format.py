r"""The facts of the dataset format: version, names, limits, escapes, slots, refusals.

``aegen`` writes the format and ``trainer`` reads it. Neither imports the other, so both carry this file byte for byte,
and a test holds the copies together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

VERSION = 2
KEY = "aegen"  # of the description in a shard's Parquet metadata
MANIFEST = "manifest.json"

# Names

ConfigName = Literal["pairs", "variants", "expert", "variants_expert", "augmented", "tags", "sources", "annotations"]
SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
PAIR_COLUMNS = {"id": "int64", "source": "string", "target": "string"}
SOURCE_COLUMNS = {"id": "int64", "source": "string"}
ANNOTATION_COLUMNS = {"pair": "int64", "annotator": "int32", "edits": "list<string>"}
STEP_COLUMNS = {"pair": "int64", "origin": "int32", "step": "int16", "state": "string", "action": "list<string>"}
COLUMNS: dict[ConfigName, dict[str, str]] = {
    "pairs": PAIR_COLUMNS,
    "variants": PAIR_COLUMNS,
    "expert": STEP_COLUMNS,
    "variants_expert": STEP_COLUMNS,
    "augmented": STEP_COLUMNS,
    "tags": STEP_COLUMNS,
    "sources": SOURCE_COLUMNS,
    "annotations": ANNOTATION_COLUMNS,
}
SHARD = re.compile(  # a match cannot lead out of the dataset folder
    rf"({'|'.join(COLUMNS)})/({'|'.join(SPLITS)})-([0-9]{{5,9}})-of-([0-9]{{5,9}})\.parquet", re.ASCII
)

# Limits: a writer refuses to exceed them, a reader checks them before it allocates memory.

MAX_TOKEN = 1 << 12  # characters of one escaped token
MAX_DIGITS = 1000  # of an integer in an equation
MAX_STATE = 1 << 16  # tokens of one state
MAX_TEXT = MAX_STATE // 2  # tokens of a source or a target: a state may hold parts of both
MAX_STEPS = (1 << 15) - 1  # steps of one trajectory: the column is int16
MAX_VOCABULARY = 1 << 20  # tokens of one vocabulary
MAX_NAME = 1 << 10  # characters of a task, metric or design
MAX_DESCRIPTION = 1 << 26  # bytes of one description
MAX_FOOTER = 1 << 27  # bytes of one Parquet footer, description included
MAX_GROUP = 1 << 30  # bytes of one row group, uncompressed and without dictionaries
MAX_ROWS = 1 << 40  # rows of one shard
MAX_SHARD = 1 << 36  # bytes of one shard
MAX_MANIFEST = 1 << 28  # bytes; a million files take about 200 MB

# Actions

DONE = "DONE"
INSERT, DELETE, REPLACE = OPERATIONS = ("INSERT", "DELETE", "REPLACE")
KEEP, SUBSTITUTE, INSERT_AFTER = "KEEP", "SUB_", "INSERT_"  # with DELETE, the tags of a round
POSITION = re.compile(r"POS_(0|[1-9][0-9]{0,17})", re.ASCII)
POSITION_SLOTS = frozenset(("position", "left", "right"))
SLOTS = frozenset(
    {
        ("position", "token"),
        ("operation", "position", "token"),
        ("left", "right", "token"),
        ("left", "token", "right"),
        ("right", "left", "token"),
        ("right", "token", "left"),
        ("token", "left", "right"),
        ("token", "right", "left"),
        ("tags",),  # one tag for the beginning of the text and one for each token
        ("text",),  # the whole text; no shard has it, but a model may play it
    }
)


class Refusal(StrEnum):
    """Why the environment refuses an action, in the order in which it checks."""

    PARTLY_DONE = "partly-done"
    WRONG_KIND = "wrong-kind"
    DELETE_TWO_POSITIONS = "delete-two-positions"
    OUT_OF_RANGE = "out-of-range"
    NOT_WRITABLE = "not-writable"
    TOO_LONG = "too-long"


def is_special(token: str) -> bool:
    """Whether a token belongs to the game: ``DONE``, an operation, or a position.

    >>> is_special("POS_3"), is_special("POS_03"), is_special("DONE"), is_special("+")
    (True, False, True, False)
    """
    return token == DONE or token in OPERATIONS or POSITION.fullmatch(token) is not None


# Texts as tokens: joined by one space they form a state, and none of them looks like a special token.

_RESERVED = re.compile(r"POS_\d+|DONE|INSERT|DELETE|REPLACE|BOS|PAD")
_LETTERS = {" ": "s", "\t": "t", "\n": "n", "\r": "r", "\\": "\\"}
_CHARACTERS = {letter: character for character, letter in _LETTERS.items()} | {"e": ""}
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.)", re.DOTALL)


def escape(text: str) -> str:
    r"""The token for a piece of text.

    >>> escape("a b"), escape("POS_3"), escape(""), escape("plain")
    ('a\\sb', '\\POS_3', '\\e', 'plain')
    """
    if _RESERVED.fullmatch(text):
        return "\\" + text
    if text and text.isprintable() and " " not in text and "\\" not in text:
        return text
    return "".join(map(_escape_character, text)) or r"\e"


def _escape_character(character: str) -> str:
    if character in _LETTERS:
        return "\\" + _LETTERS[character]
    # Beyond the first plane no character separates lines or words, so four digits are enough.
    hidden = not character.isprintable() and ord(character) < 0x10000
    return f"\\u{ord(character):04x}" if hidden else character


def unescape(token: str) -> str:
    r"""The text of a token, the inverse of :func:`escape`.

    >>> unescape(r"a\sb"), unescape(r"\POS_3"), unescape(r"\e")
    ('a b', 'POS_3', '')
    """
    return _ESCAPED.sub(_unescape_match, token) if "\\" in token else token


def _unescape_match(match: re.Match[str]) -> str:
    name = match[1]
    return chr(int(name[1:], 16)) if len(name) > 1 else _CHARACTERS.get(name, name)


def visible(text: str) -> str:
    r"""A text for a terminal: what is not printable is escaped, so that it cannot command the terminal.

    >>> visible("a b"), visible("\x1b[31m"), visible("\u202e")
    ('a b', '\\x1b[31m', '\\u202e')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def tokenize(text: str, tokens: str) -> tuple[str, ...]:
    """Text as escaped tokens: its characters (``chars``), or its parts between single spaces (``words``).

    Nothing is lost: two spaces in a row have an empty word between them.

    >>> tokenize("a  b", "words"), tokenize("a b", "chars"), tokenize("", "words")
    (('a', '\\\\e', 'b'), ('a', '\\\\s', 'b'), ())
    """
    return tuple(map(escape, text if tokens == "chars" else text.split(" "))) if text else ()


def detokenize(tokens: Iterable[str], kind: str) -> str:
    """The original text, the inverse of :func:`tokenize`."""
    return ("" if kind == "chars" else " ").join(map(unescape, tokens))


def split_state(state: str) -> tuple[str, ...]:
    """The tokens of a state as a shard stores it.

    >>> split_state("1 + 1"), split_state("")
    (('1', '+', '1'), ())
    """
    return tuple(state.split(" ")) if state else ()


def join_state(tokens: Iterable[str]) -> str:
    """A state as a shard stores it."""
    return " ".join(tokens)
