"""Sources without targets: what an agent can practise on besides the pairs of its dataset."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.core.description import Goal
from trainer.core.errors import BadData
from trainer.core.format import SOURCE_COLUMNS, split_state
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset
from trainer.data.encode import GAME, check_size, encode_texts, one_chunk


@dataclass(frozen=True)
class Sources:
    """Texts to play from, what winning is, and for training pairs their targets."""

    texts: list[tuple[str, ...]]
    states: Tensor  # (rows, m)
    lengths: Tensor  # (rows)
    goal: Goal
    targets: list[tuple[str, ...]] | None = None
    unreadable: int = 0  # left out: too long for the agent, or with tokens that it does not know

    def __len__(self) -> int:
        return len(self.texts)


def playable(texts: list[tuple[str, ...]], states: Tensor, lengths: Tensor, rows: Tensor, goal: Goal) -> Sources:
    """The sources that an agent can read."""
    chosen = rows.nonzero()[:, 0]
    kept = [texts[row] for row in chosen.tolist()]
    return Sources(kept, states[chosen].long(), lengths[chosen].long(), goal, None, len(texts) - len(kept))


def load_sources(dataset: Dataset, contract: Contract) -> Sources:
    """The sources of a dataset of config ``sources``; those of another task, or without a reward, are refused."""
    footers = dataset.footers("sources", "train")
    goals = []
    for footer in footers:
        said, where = footer.description, f"{dataset.where}/{footer.shard.name}"
        assert said
        for name in ("task", "tokens"):
            found, needed = getattr(said, name), getattr(contract, name)
            if found != needed:
                raise BadData(f"{where}: field {name} is {str(found)[:60]!r}, the agent expects {needed!r}")
        if said.goal is None or said.goal.wins == "target":
            raise BadData(f"{where}: no reward: {said.task} is won by reaching a target, and sources have none")
        goals.append(said.goal)
    if len(set(goals)) != 1:
        raise BadData(f"{dataset.where}: its shards define different goals")
    where = f"{dataset.where}/sources"
    table = dataset.read_all((footer.shard for footer in footers), SOURCE_COLUMNS)
    if any(table[name].null_count for name in SOURCE_COLUMNS):
        raise BadData(f"{where}: null value in a row")
    check_size(len(table), GAME * contract.max_state, where)
    column = one_chunk(table["source"])
    states, lengths, readable = encode_texts(column, contract, where)
    texts = [split_state(text) for text in column.to_pylist()]
    ids, sizes, rows = (torch.from_numpy(array) for array in (states, lengths, readable))
    found = playable(texts, ids, sizes, rows, goals[0])
    if not len(found):
        raise BadData(f"{where}: the agent can read none of {len(texts):,} sources: it was trained on other tokens")
    return found
