"""Any text as tokens that can be joined by one space and never look like an action token, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"POS_\d+|DONE|INSERT|DELETE|REPLACE|BOS|PAD")
_NAMED = {" ": "s", "\t": "t", "\n": "n", "\r": "r"}
_MEANT = {name: text for text, name in _NAMED.items()} | {"e": ""}
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.)", re.DOTALL)


def escape(text: str) -> str:
    r"""One token for one piece of text.

    >>> escape("a b"), escape("POS_3"), escape(""), escape("plain")
    ('a\\sb', '\\POS_3', '\\e', 'plain')
    """
    if _SPECIAL.fullmatch(text):
        return "\\" + text
    if text and text.isprintable() and " " not in text and "\\" not in text:
        return text
    return "".join(map(_escape_character, text)) or r"\e"


def _escape_character(character: str) -> str:
    if character == "\\":
        return r"\\"
    if character in _NAMED:
        return "\\" + _NAMED[character]
    # Beyond the first plane nothing separates lines or words, so four digits are enough.
    hidden = not character.isprintable() and ord(character) < 0x10000
    return f"\\u{ord(character):04x}" if hidden else character


def unescape(token: str) -> str:
    r"""The text of a token, the inverse of :func:`escape`.

    >>> unescape(r"a\sb"), unescape(r"\POS_3"), unescape(r"\e")
    ('a b', 'POS_3', '')
    """
    return _ESCAPED.sub(_meaning, token) if "\\" in token else token


def _meaning(match: re.Match[str]) -> str:
    name = match[1]
    return chr(int(name[1:], 16)) if len(name) > 1 else _MEANT.get(name, name)


def tokenize(text: str, tokens: str) -> list[str]:
    """Text as escaped tokens: its characters (``chars``), or its parts between single spaces (``words``).

    Nothing is lost: two spaces in a row have an empty word between them.

    >>> tokenize("a  b", "words"), tokenize("a b", "chars")
    (['a', '\\\\e', 'b'], ['a', '\\\\s', 'b'])
    """
    if not text:
        return []
    return [escape(part) for part in (text if tokens == "chars" else text.split(" "))]


def detokenize(tokens: Iterable[str], kind: str) -> str:
    """The original text, the inverse of :func:`tokenize`."""
    return ("" if kind == "chars" else " ").join(unescape(token) for token in tokens)


def split_state(state: str) -> tuple[str, ...]:
    """The tokens of a state as it is written in a shard.

    >>> split_state("1 + 1"), split_state("")
    (('1', '+', '1'), ())
    """
    return tuple(state.split(" ")) if state else ()


def join_state(tokens: Sequence[str]) -> str:
    """A state as it is written in a shard."""
    return " ".join(tokens)
