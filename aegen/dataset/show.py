"""Rows and trajectories drawn for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from aegen.core.edits import Splice
from aegen.core.errors import BadData
from aegen.core.format import DONE, KEEP, detokenize, split_state, unescape
from aegen.dataset.contract import Contract, read_contract
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import read_batches, read_description_of

Paint = Callable[[str, str], str]  # (text, "old" or "new") -> text
Trajectory = list[tuple[int, str, list[str]]]  # (origin, state, action)


def plain(text: str, kind: str) -> str:
    """Marks without colour: what goes in brackets, what is new in pointed ones."""
    return f"[{text}]" if kind == "old" else f"‹{text}›"


def draw_pairs(folder: Folder, split: str, count: int) -> Iterator[str]:
    """The first pairs of a split, in their original text."""
    manifest = folder.manifest()
    names = manifest.shards("pairs", split)
    kind = read_description_of(folder / names[0], "pairs").tokens if names else "words"
    rows = (row for name in names for batch in read_batches(folder / name, "pairs") for row in batch.to_pylist())
    for row in islice(rows, count):
        source, target = (detokenize(split_state(row[side]), kind) for side in ("source", "target"))
        yield f"{row['id']:>6}  {source}  →  {target}"


def trajectories(
    folder: Folder, config: str, split: str, manifest: Manifest | None = None
) -> Iterator[tuple[int, Trajectory]]:
    """The trajectories of a config: (pair, steps)."""
    current: Trajectory = []
    for name in (manifest or folder.manifest()).shards(config, split):
        for batch in read_batches(folder / name, config):
            for row in batch.to_pylist():
                if not row["action"]:
                    raise BadData(f"{folder / name}: a step without an action")
                current.append((row["origin"], row["state"], row["action"]))
                if row["action"][0] == DONE or (config == "tags" and set(row["action"]) == {KEEP}):
                    yield row["pair"], current
                    current = []


def draw_trajectories(folder: Folder, config: str, split: str, pairs: int, paint: Paint = plain) -> Iterator[str]:
    """The trajectories of the first pairs that need an edit; of ``augmented`` the expert's and one shifted each."""
    contract = read_contract(folder, folder.manifest(), config)
    drawn: set[int] = set()
    for pair, steps in trajectories(folder, config, split):
        origin = steps[0][0]
        if len(steps) == 1 or origin > 1:
            continue
        if pair not in drawn and len(drawn) == pairs:
            return
        drawn.add(pair)
        yield f"pair {pair}, " + ("the expert" if origin == 0 else f"from shifted state {origin}")
        yield from draw_steps(contract, steps, paint)
        yield ""


def draw_steps(contract: Contract, steps: Trajectory, paint: Paint = plain) -> Iterator[str]:
    """One line a step: the state with the place of the edit marked, and the action."""
    width = max(len(_text(contract, split_state(state))) for _, state, _ in steps) + 4
    fresh: range = range(0)
    for number, (_, state, action) in enumerate(steps):
        tokens = split_state(state)
        edit = contract.design.decode(tuple(action))
        old = range(edit.start, edit.stop) if isinstance(edit, Splice) else range(0)
        shown, length = _marked(contract, tokens, old, fresh, paint)
        fresh = range(edit.start, edit.start + len(edit.new)) if isinstance(edit, Splice) else range(0)
        yield f"  {number}  {shown}{' ' * (width - length)}  {' '.join(map(unescape, action))}"


def _text(contract: Contract, tokens: tuple[str, ...]) -> str:
    return detokenize(tokens, contract.tokens)


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
