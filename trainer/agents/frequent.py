"""A baseline without a network: what training did most often to a word behind its left neighbour.

Each word of a source has an outcome: the words that stand in its place in the target, with those inserted before it.
For a word and its left neighbour the most frequent outcome in training is written again; unchanged is one of them, and
wins a tie. What training never saw is left alone.

>>> learned = Frequent.learn([("he go home".split(), "he goes home".split())])
>>> learned.edit("he go there".split())
('he', 'goes', 'there')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from trainer.core.errors import BadData, InvalidConfig
from trainer.core.format import PAIR_COLUMNS, SplitName, detokenize, tokenize
from trainer.data.dataset import Dataset
from trainer.data.encode import split_texts
from trainer.data.m2 import Words, read_m2
from trainer.scoring.gold import GoldEdits
from trainer.scoring.maxmatch import MaxMatch, edits_between

BEGIN, END = " begin", " end"  # no token of a state holds a space

Place = tuple[str, str]  # a word, and its left neighbour before it


@dataclass(frozen=True)
class Frequent:
    """The outcome to write for each word and left neighbour; all others stay."""

    outcomes: dict[Place, Words]

    @classmethod
    def learn(cls, pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Frequent:
        """Count the outcomes of all words of the sources."""
        changed: dict[Place, Counter[Words]] = {}
        kept: Counter[Place] = Counter()
        for source, target in pairs:
            for place, outcome in outcomes(tuple(source), tuple(target)):
                if outcome is None:
                    kept[place] += 1
                else:
                    changed.setdefault(place, Counter())[outcome] += 1
        found = {}
        for place, counts in changed.items():
            outcome, number = min(counts.items(), key=lambda entry: (-entry[1], entry[0]))
            if number > kept[place]:
                found[place] = outcome
        return cls(found)

    def edit(self, source: Sequence[str]) -> Words:
        """A text after every word had its most frequent outcome."""
        written: list[str] = []
        for left, word in zip([BEGIN, *source], [*source, END], strict=True):
            outcome = self.outcomes.get((left, word))
            if outcome is not None:
                written += outcome
            elif word != END:
                written.append(word)
        return tuple(written)


def outcomes(source: Words, target: Words) -> Iterator[tuple[Place, Words | None]]:
    """What stands in the target for each word of the source, and behind the last; None if it is unchanged.

    Where several words become others, each becomes one if they are equally many; else the first becomes all of them.
    """
    here: dict[int, Words] = {}
    for edit in edits_between(source, target):
        (new,) = edit.corrections
        size = edit.stop - edit.start
        if not size:
            here[edit.start] = (*new, *source[edit.start : edit.start + 1])
        elif size == len(new):
            here |= {edit.start + number: (word,) for number, word in enumerate(new)}
        else:
            here |= {edit.start: new} | dict.fromkeys(range(edit.start + 1, edit.stop), ())
    for number, place in enumerate(zip([BEGIN, *source], [*source, END], strict=True)):
        yield place, here.get(number)


def read_texts(dataset: Dataset, split: SplitName) -> Iterator[tuple[Words, Words]]:
    """The sources and targets of a split, shard by shard."""
    for footer in dataset.footers("pairs", split):
        where, table = f"{dataset.where}/{footer.shard.name}", dataset.read(footer.shard, PAIR_COLUMNS)
        if any(table[name].null_count for name in PAIR_COLUMNS):
            raise BadData(f"{where}: null value in a row")
        yield from zip(*split_texts(table, where), strict=True)


def evaluate_baselines(
    data: str | Path, split: SplitName = "test", m2: str | Path | None = None, limit: int = 0
) -> dict[str, dict[str, Any]]:
    """MaxMatch of the input as it is, and of the most frequent corrections, on a split or on an M2 file."""
    dataset = Dataset(data)
    described = dataset.footers("pairs", "train")[0].description
    if described is None or described.arithmetic:
        raise InvalidConfig(f"{data}: these baselines correct text, and it has equations")
    learned, tokens = Frequent.learn(read_texts(dataset, "train")), described.tokens
    scores = {"unchanged": MaxMatch(), "frequent": MaxMatch()}
    gold = GoldEdits(dataset, split, tokens)
    sentences = read_m2(m2) if m2 else gold.annotated(read_texts(dataset, split))
    for annotated in islice(sentences, limit or None):
        scores["unchanged"].add(annotated, annotated.source)
        if m2 or gold.by_annotators:  # these edit words, whatever the tokens of the dataset
            text = detokenize(learned.edit(tokenize(" ".join(annotated.source), tokens)), tokens)
            scores["frequent"].add(annotated, tuple(text.split(" ")) if text else ())
        else:
            scores["frequent"].add(annotated, learned.edit(annotated.source))
    return {name: score.to_json() for name, score in scores.items()}
