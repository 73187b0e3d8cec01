"""The dictionary's way of spelling, beside the agents: SymSpell with its own list of 82,765 English words.

``python -m tests.symspell DATA`` prints what it gets right of the test words, and how many of these its list has: it
can write no other word. The agents know no list, and none of these words is in their training.
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path

from symspellpy import SymSpell, Verbosity

from trainer.core.format import unescape
from trainer.data.dataset import Dataset

DISTANCE = 2  # edits of a word, as its authors have it


def words(texts: list[str]) -> list[str]:
    """Words from texts whose tokens are characters."""
    return ["".join(map(unescape, text.split(" "))) for text in texts]


def measure(data: str | Path) -> dict[str, float]:
    """Of a dataset's test words, by characters: how many, and per cent that are written right, and that it knows."""
    dataset = Dataset(data)
    table = dataset.read_all(dataset.select("pairs", "test"), {"source": "string", "target": "string"})
    sources, targets = (words(table[name].to_pylist()) for name in ("source", "target"))
    checker = SymSpell(max_dictionary_edit_distance=DISTANCE)
    listed = Path(str(files("symspellpy") / "frequency_dictionary_en_82_765.txt"))
    assert checker.load_dictionary(listed, term_index=0, count_index=1)
    written = [
        checker.lookup(word, Verbosity.TOP, DISTANCE, include_unknown=True, transfer_casing=True)[0].term
        for word in sources
    ]
    right = sum(one == two for one, two in zip(written, targets, strict=True))
    known = sum(word.lower() in checker.words for word in targets)
    return {
        "words": len(targets),
        "right": round(100 * right / len(targets), 2),
        "known": round(100 * known / len(targets), 2),
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
