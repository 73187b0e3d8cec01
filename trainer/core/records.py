"""Records of strangers: JSON and TOML read into msgspec types; whatever is wrong is a ``BadData`` that names the place.

Types and limits are declared on the fields of a record, once. The other package carries this file byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from .errors import BadData

Record = TypeVar("Record")
MAX_BYTES = 1 << 26  # of one record, unless the caller says otherwise
_AT = re.compile(r" - at (`key` in )?`\$?(.*?)`$", re.DOTALL)


def decode(raw: bytes | str, kind: type[Record], where: object, most: int = MAX_BYTES) -> Record:
    """One record from JSON.

    >>> decode('{"d": 10}', dict[str, int], "manifest.json")
    {'d': 10}
    """
    if len(raw) > most:
        raise BadData(f"{where}: {len(raw):,} bytes of JSON; at most {most:,} are read")
    return _explained(lambda: msgspec.json.decode(raw, type=kind), where)


def convert(values: object, kind: type[Record], where: object) -> Record:
    """One record from plain values, as JSON, TOML or YAML gave them.

    >>> convert({"d": 10}, dict[str, int], "grid.toml")
    {'d': 10}
    """
    if is_dataclass(kind) and isinstance(values, dict):  # msgspec ignores what a dataclass does not know
        for name in sorted(set(values) - {field.name for field in fields(kind)}, key=str):
            raise BadData(f"{where}: object contains unknown field {str(name)[:60]}")
    return _explained(lambda: msgspec.convert(values, type=kind), where)


def _explained(read: Callable[[], Record], where: object) -> Record:
    try:
        return read()
    except msgspec.ValidationError as error:
        raise BadData(f"{where}: {explain(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadData(f"{where}: not valid JSON") from None


def explain(error: Exception) -> str:
    """What is wrong with which field, in a few words.

    >>> explain(ValueError("Expected `int` >= 2 - at `$.spec.n`"))
    'field spec.n: expected int >= 2'
    """
    text = str(error)
    found = _AT.search(text)
    said = (text[: found.start()] if found else text).replace("`", "")
    said = said[:1].lower() + said[1:]
    field = found[2].lstrip(".") if found else ""
    return f"field {field[:100]}: {said[:300]}" if field else said[:300]


def plain(record: Any) -> Any:
    """A record as the values that JSON has, which :func:`convert` reads."""
    return msgspec.json.decode(msgspec.json.encode(record))


def wrong_field(record: object) -> str | None:
    """The first field of a dataclass that is not of its declared type or beyond its declared limits, and why.

    A dataclass checks itself with it in ``__post_init__``, so that its constructor is as strict as :func:`convert`.
    """
    hints: dict[str, Any] = _hints(type(record))  # type: ignore[arg-type]
    for name, kind in hints.items():
        value = getattr(record, name)
        try:
            msgspec.convert(value, type=kind)
        except msgspec.ValidationError as error:
            return f"{name}={str(value)[:60]}: {explain(error)}"
    return None


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
