"""The YAML at the head of a card: plain values in block style, every text quoted as in JSON, which YAML reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def front_matter(fields: dict[str, Any]) -> str:
    """The fields between two lines of dashes.

    >>> print(front_matter({"license": "mit", "configs": [{"config_name": "pairs", "default": True}]}), end="")
    ---
    license: "mit"
    configs:
    - config_name: "pairs"
      default: true
    ---
    """
    return "\n".join(["---", *_lines(fields), "---", ""])


def _lines(value: dict[str, Any] | list[Any]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, (dict, list)) and entry:
                yield f"{key}:"
                yield from (line if isinstance(entry, list) else f"  {line}" for line in _lines(entry))
            else:
                yield f"{key}: {_scalar(entry)}"
    else:
        for entry in value:
            if isinstance(entry, (dict, list)) and entry:
                first, *others = _lines(entry)
                yield f"- {first}"
                yield from (f"  {line}" for line in others)
            else:
                yield f"- {_scalar(entry)}"


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
