"""JSON of strangers: manifests, and what shards say of themselves."""

from __future__ import annotations

import json
import re
from typing import Any

from aegen.core.errors import BadData
from aegen.core.format import FORMAT

MAX_DESCRIPTION = 1 << 26  # bytes that a reader takes memory for
MAX_DEPTH = 32  # of objects and lists
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # of a pair, which is a character, or alone, which is none


def parse_json(raw: bytes, where: object, most: int = MAX_DESCRIPTION) -> dict[str, Any]:
    """One JSON object from untrusted bytes."""
    if len(raw) > most:
        raise BadData(f"{where}: {len(raw):,} bytes of JSON; expected at most {most:,}")
    try:
        text = raw.decode()
        found = json.loads(text)
        if _SURROGATE.search(text):  # half a character, which nobody could write or print, is the author's mistake
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise BadData(f"{where}: not valid JSON") from None
    if not isinstance(found, dict):
        raise BadData(f"{where}: expected a JSON object")
    _check_depth(found, where)
    return found


def _check_depth(found: dict[str, Any], where: object) -> None:
    """Refuse what is nested deeper than anything of ours: whoever compares or writes it goes as deep."""
    level: list[Any] = [found]
    for _ in range(MAX_DEPTH):
        inside = (entry.values() if isinstance(entry, dict) else entry for entry in level)
        level = [entry for entries in inside for entry in entries if isinstance(entry, (dict, list))]
        if not level:
            return
    raise BadData(f"{where}: nested too deeply; expected at most {MAX_DEPTH} levels")


def check_format(version: object, where: object) -> None:
    """Refuse what a later aegen wrote."""
    if version != FORMAT:
        raise BadData(
            f"{where}: format version {version!r}; this aegen reads {FORMAT}: install the aegen that wrote it"
        )
