"""Which shards a model learns from: demonstrations for agents, rounds of tags, or the pairs themselves.

Pairs say nothing of vocabularies and sizes, so the contract of a model that writes whole texts is read off their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from trainer.core.config import Config
from trainer.core.errors import BadData, NoLessons
from trainer.core.format import DONE, PAIR_COLUMNS, SplitName
from trainer.core.format import ConfigName as Kind
from trainer.data.contract import FORMAT, Contract
from trainer.data.dataset import Dataset, Footer, leading
from trainer.data.encode import (
    ACTION,
    Steps,
    check_size,
    encode_texts,
    load_steps,
    number_steps,
    one_chunk,
    split_texts,
    split_tokens,
)
from trainer.game.baselines import rules_of
from trainer.game.environment import Verdict
from trainer.models.zoo import find_model

WITHOUT_VARIANTS = ("aor",)  # nothing in an array of integers can be varied
HELD_OUT: dict[str, Kind] = {"edits": "expert", "tags": "tags", "text": "pairs"}  # by game


def kinds(config: Config, dataset: Dataset) -> list[Kind]:
    """The configs whose training rows a model learns from."""
    chosen = find_model(config.model).learns_from or config.train_on
    if chosen == "variants":
        if dataset.has("variants_expert", "train"):
            return ["expert", "variants_expert"]
        pairs = dataset.spec.get("pairs")
        if not isinstance(pairs, dict) or pairs.get("task") not in WITHOUT_VARIANTS:
            raise NoLessons(
                f"{dataset.where}: no variants_expert/train shards: `aegen build … --variants 4` writes them"
            )
        return ["expert"]
    if chosen == "tags" and not dataset.has("tags", "train"):
        raise NoLessons(f"{dataset.where}: no tags/train shards: `aegen trajectories FOLDER --design tags` writes them")
    return [chosen]  # type: ignore[list-item]


def open_training(dataset: Dataset, config: Config) -> tuple[list[Footer], Contract]:
    """The footers to train on and their contract."""
    if find_model(config.model).game == "text":
        footers = dataset.footers("pairs", "train")
        return footers, text_contract(dataset, footers)
    return dataset.open_steps(kinds(config, dataset), "train")


def text_contract(dataset: Dataset, footers: Sequence[Footer]) -> Contract:
    """What a model that writes whole texts needs to know: all tokens, the longest text, the longest target."""
    tokens: set[str] = set()
    longest_source = longest_target = 0
    for footer in footers:
        where = f"{dataset.where}/{footer.shard.name}"
        table = dataset.read(footer.shard, PAIR_COLUMNS)
        if any(table[name].null_count for name in PAIR_COLUMNS):
            raise BadData(f"{where}: a row with an empty cell")
        sources, targets = split_texts(table, where)
        tokens.update(*sources, *targets)
        longest_source = max(longest_source, *map(len, sources), 0)
        longest_target = max(longest_target, *map(len, targets), 0)
    first = footers[0].description
    values: dict[str, Any] = {
        "format": FORMAT,
        "config": "pairs",
        "split": "train",
        **{key: getattr(first, key) for key in ("task", "tokens", "arithmetic", "one_source", "spec")},
        "metric": "none",
        "backend": {},
        "design": "text",
        "slots": ["text"],
        "state_tokens": sorted(tokens),
        "action_tokens": sorted({*tokens, DONE}),
        "writable": sorted(tokens),
        "max_state": max(1, longest_source, longest_target),
        "action_length": longest_target + 1,
        "max_steps": 1,
    }
    return Contract.parse(values, f"{dataset.where}/{footers[0].shard.name}")


def load_lessons(dataset: Dataset, footers: Sequence[Footer], contract: Contract, strict: bool = True) -> Steps:
    """All steps of some shards in memory."""
    if contract.game != "text":
        return load_steps(dataset, footers, contract, strict)
    table = dataset.read_all((footer.shard for footer in footers), PAIR_COLUMNS)
    where = f"{dataset.where}/pairs"
    if not len(table) or any(table[name].null_count for name in PAIR_COLUMNS):
        raise BadData(f"{where}: no rows, or a row with an empty cell")
    done, n = contract.action_ids[DONE], contract.action_length
    check_size(len(table), ACTION * n, where)
    states, lengths, readable = encode_texts(one_chunk(table["source"]), contract, where)
    actions = torch.full((len(table), n), done, dtype=torch.int32)
    for row, text in enumerate(table["target"].to_pylist()):
        words = split_tokens(text)
        if len(words) < n and all(word in contract.action_ids for word in words):
            actions[row, : len(words)] = torch.tensor([contract.action_ids[word] for word in words], dtype=torch.int32)
        else:
            readable[row] = False
    rows = torch.from_numpy(readable.nonzero()[0])
    first, taken = number_steps(rows.numpy(), actions[rows].numpy(), len(contract.actions))
    return Steps(
        states=torch.from_numpy(states),
        lengths=torch.from_numpy(lengths),
        actions=actions[rows][torch.from_numpy(first)],
        state_of=rows[torch.from_numpy(first)],
        taken=torch.from_numpy(taken),
        starts=torch.arange(len(rows) + 1),
        skipped=len(table) - len(rows),
    )


def check_games(steps: Steps, contract: Contract, where: str) -> None:
    """Refuse trajectories that are no games: whoever follows them to the end, and not step by step, would be lost."""
    last = torch.zeros(len(steps.taken), dtype=torch.bool)
    last[steps.starts[1:] - 1] = True
    follows = (steps.state_of[steps.taken].roll(-1) + 1).masked_fill(last, 0)  # the state after each row, 0 for the end
    rules, count = rules_of(contract), len(steps.states) + 1
    for part in torch.split(torch.unique(steps.taken * count + follows), 1 << 14):  # a number sorts quicker than a pair
        batch, ends, state = steps.batch(part // count), part % count == 0, (part % count - 1).clamp(min=0)
        after, lengths, verdicts = rules.step(batch.states, batch.lengths, batch.actions)
        width = min(after.shape[1], steps.states.shape[1])
        same = (lengths == steps.lengths[state]) & (after[:, :width] == steps.states[state, :width]).all(1)
        right = torch.where(ends, verdicts == Verdict.DONE, same & (verdicts == Verdict.APPLIED))
        if not right.all():
            raise BadData(f"{where}: a trajectory whose actions do not lead from state to state and then to DONE")


def load_held_out(dataset: Dataset, split: SplitName, contract: Contract, rows: int | None = None) -> Steps:
    """The right actions of a split that is not learned from; what the contract cannot express is skipped.

    With ``rows`` only the first shards, up to that many rows.
    """
    footers = leading(dataset.footers(HELD_OUT[contract.game], split), rows)
    return load_lessons(dataset, footers, contract, strict=False)


def hashes(config: Config, contract: Contract, dataset: Dataset) -> dict[str, str]:
    """The SHA-256 of every shard that a run reads."""
    found: dict[str, str] = {}
    for kind in kinds(config, dataset):
        found |= dataset.hashes(kind, "train")
    return found | dataset.hashes(HELD_OUT[contract.game], "validation") | dataset.hashes("pairs", "validation")
