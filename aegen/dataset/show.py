"""Rows and trajectories drawn for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from aegen.core.edits import Splice
from aegen.core.format import detokenize, split_state, unescape, visible
from aegen.dataset.contract import Contract, read_contract
from aegen.dataset.dataset import Dataset, Trajectory
from aegen.dataset.folder import Folder
from aegen.dataset.shards import read_description_of

Paint = Callable[[str, str], str]  # (text, "old" or "new") -> text


def plain(text: str, kind: str) -> str:
    """Marks without colour: what goes in brackets, what is new in pointed ones."""
    return f"[{text}]" if kind == "old" else f"‹{text}›"


def draw_pairs(folder: Folder, split: str, count: int) -> Iterator[str]:
    """The first pairs of a split, in their original text."""
    dataset = Dataset.open(folder)
    names = dataset.manifest.shards("pairs", split)
    kind = read_description_of(folder / names[0], "pairs").tokens if names else "words"
    for pair, *sides in islice(dataset.pair_rows(split), count):
        source, target = (visible(detokenize(split_state(side), kind)) for side in sides)
        yield f"{pair:>6}  {source}  →  {target}"


def draw_sources(folder: Folder, count: int) -> Iterator[str]:
    """The first sources of a dataset without targets, in their original text."""
    dataset = Dataset.open(folder)
    names = dataset.manifest.shards("sources")
    kind = read_description_of(folder / names[0], "sources").tokens if names else "words"
    for number, source in islice(dataset.sources(), count):
        yield f"{number:>6}  {visible(detokenize(split_state(source), kind))}"


def draw_trajectories(folder: Folder, config: str, split: str, pairs: int, paint: Paint = plain) -> Iterator[str]:
    """The trajectories of the first pairs that need an edit; of ``augmented`` the expert's and one shifted each."""
    dataset = Dataset.open(folder)
    contract = read_contract(folder, dataset.manifest, config)
    drawn: set[int] = set()
    for one in dataset.trajectories(split, config):
        if len(one.steps) == 1 or one.origin > 1:
            continue
        if one.pair not in drawn and len(drawn) == pairs:
            return
        drawn.add(one.pair)
        yield f"pair {one.pair}, " + ("the expert" if one.origin == 0 else f"from shifted state {one.origin}")
        yield from draw_steps(contract, one, paint)
        yield ""


def draw_steps(contract: Contract, drawn: Trajectory, paint: Paint = plain) -> Iterator[str]:
    """One line a step: the state with the place of the edit marked, and the action."""
    width = max(len(_text(contract, step.state)) for step in drawn.steps) + 4
    fresh: range = range(0)
    for number, step in enumerate(drawn.steps):
        edit = contract.design.decode(step.action)
        old = range(edit.start, edit.stop) if isinstance(edit, Splice) else range(0)
        shown, length = _marked(contract, step.state, old, fresh, paint)
        fresh = range(edit.start, edit.start + len(edit.new)) if isinstance(edit, Splice) else range(0)
        yield f"  {number}  {shown}{' ' * (width - length)}  {visible(' '.join(map(unescape, step.action)))}"


def _text(contract: Contract, tokens: tuple[str, ...]) -> str:
    return visible(detokenize(tokens, contract.tokens))


def _marked(contract: Contract, tokens: tuple[str, ...], old: range, fresh: range, paint: Paint) -> tuple[str, int]:
    """The state with marks, and how wide it is on the screen."""
    parts, width = [], 0
    glue = "" if contract.tokens == "chars" else " "
    index = 0
    while index < len(tokens):
        kind = "old" if index in old else "new" if index in fresh else ""
        stop = old.stop if kind == "old" else index + 1
        text = _text(contract, tokens[index:stop])
        parts.append(paint(text, kind) if kind else text)
        width += len(text) + (len(paint(text, kind)) - len(text) if kind and paint is plain else 0)
        index = stop
    return glue.join(parts), width + len(glue) * max(len(parts) - 1, 0)
