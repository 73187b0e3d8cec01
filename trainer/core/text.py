r"""Tokens and text: the escapes that let any text travel as tokens joined by single spaces.

A token of a shard never is empty, never holds white space or control characters, and never looks like
one of the game's own words unless it is one. Text becomes such tokens by a bijection: ``\s`` is a space,
``\t`` a tab, ``\n`` a line feed, ``\r`` a carriage return, ``\\`` a backslash, ``\e`` the empty token,
``\uXXXX`` any other character that does not print, and a leading backslash marks a word that would look like
a special token (``\DONE``, ``\POS_3``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainer.core.errors import InvalidText

DONE = "DONE"
INSERT, DELETE, REPLACE = OPERATIONS = ("INSERT", "DELETE", "REPLACE")
KEEP, SUBSTITUTE, INSERT_AFTER = "KEEP", "SUB_", "INSERT_"  # with DELETE, the tags of a round
POSITION = re.compile(r"POS_(0|[1-9][0-9]*)", re.ASCII)

EMPTY = r"\e"
_RESERVED = re.compile(r"POS_\d+|DONE|INSERT|DELETE|REPLACE|BOS|PAD")
_LETTERS = {" ": "s", "\t": "t", "\n": "n", "\r": "r", "\\": "\\"}
_PLAIN = {letter: character for character, letter in _LETTERS.items()}
_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|.)", re.DOTALL)


def is_special(token: str) -> bool:
    """Whether a token is one of the game's own words: ``DONE``, an operation, or a position.

    >>> is_special("POS_3"), is_special("POS_03"), is_special("DONE")
    (True, False, True)
    """
    return token == DONE or token in OPERATIONS or POSITION.fullmatch(token) is not None


def escape(piece: str) -> str:
    r"""The token that stands for a piece of text.

    >>> escape("a b"), escape(""), escape("DONE"), escape("+")
    ('a\\sb', '\\e', '\\DONE', '+')
    """
    if not piece:
        return EMPTY
    if _RESERVED.fullmatch(piece):
        return "\\" + piece
    return "".join(map(_escaped, piece))


def _escaped(character: str) -> str:
    if character in _LETTERS:
        return "\\" + _LETTERS[character]
    # Beyond the first plane nothing separates lines or words, so four digits are enough.
    if character.isprintable() or ord(character) > 0xFFFF:
        return character
    return f"\\u{ord(character):04x}"


def unescape(token: str) -> str:
    r"""The piece of text that a token stands for; the inverse of :func:`escape`.

    >>> unescape(r"a\sb"), unescape(r"\e"), unescape(r"\DONE"), unescape("+")
    ('a b', '', 'DONE', '+')
    """
    if token == EMPTY:
        return ""
    return _ESCAPE.sub(_meant, token)


def _meant(match: re.Match[str]) -> str:
    name = match[1]
    return chr(int(name[1:], 16)) if len(name) > 1 else _PLAIN.get(name, name)


def split(text: str, tokens: str) -> tuple[str, ...]:
    r"""Text as tokens: ``words`` are cut at single spaces, ``chars`` at every character.

    >>> split("a  b", "words"), split("a b", "chars"), split("", "words")
    (('a', '\\e', 'b'), ('a', '\\s', 'b'), ())
    """
    if not text:
        return ()
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidText("the text is not valid Unicode: it holds half of a surrogate pair")
    return tuple(escape(piece) for piece in (text.split(" ") if tokens == "words" else text))


def join(state: Sequence[str], tokens: str) -> str:
    r"""Tokens as text, the inverse of :func:`split`.

    >>> join(["a", r"\s", "b"], "chars"), join(["-", "3"], "words")
    ('a b', '- 3')
    """
    return (" " if tokens == "words" else "").join(map(unescape, state))
