"""What an agent learns from: the training rows of a dataset as steps, and the rows held out to measure it.

Shards of pairs declare no vocabularies and sizes, so the contract of a model that writes whole texts is read off
their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch

from trainer.core.errors import BadData, InvalidConfig, MissingShards
from trainer.core.format import DONE, PAIR_COLUMNS, STEP_COLUMNS, ConfigName, SplitName, split_state
from trainer.core.records import plain
from trainer.data.contract import Contract
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
)

Shards = Literal["augmented", "expert", "variants", "tags", "pairs"]
"""The training rows that an agent can ask for; ``variants`` are the expert's with more sources of each target."""

HELD_OUT: dict[str, ConfigName] = {"edits": "expert", "tags": "tags", "text": "pairs"}  # by game
MAX_IN_MEMORY = 1 << 32  # bytes of id tensors


@dataclass(frozen=True)
class Demonstrations:
    """The shards that one agent learns from, opened: their footers are read, their rows are not."""

    dataset: Dataset
    configs: tuple[ConfigName, ...]
    footers: list[Footer]
    contract: Contract
    streamable: bool = True  # whether the agent could read them in parts

    @classmethod
    def open(
        cls, dataset: Dataset, shards: Shards, streamable: bool = True, contract_type: type[Contract] = Contract
    ) -> Demonstrations:
        """Find the shards, and what they declare together."""
        configs = find_configs(dataset, shards)
        if shards == "pairs":
            footers = dataset.footers("pairs", "train")
            return cls(dataset, configs, footers, text_contract(dataset, footers), streamable)
        footers, contract = dataset.open_steps(configs, "train")
        return cls(dataset, configs, footers, contract_type.of(contract, dataset.where), streamable)

    @property
    def where(self) -> str:
        """For error messages."""
        return f"{self.dataset.where}/{self.configs[0]}"

    @cached_property
    def steps(self) -> Steps:
        """All steps in memory, read once."""
        rows = sum(footer.shard.rows for footer in self.footers)
        needed = rows * (4 * self.contract.max_state + 8 * self.contract.action_length + 32)
        if needed > MAX_IN_MEMORY:
            size = f"{rows:,} steps may need {needed / 1e9:.1f} GB of memory"
            how = "use --stream to read them in parts" if self.streamable else "use fewer, or a model that streams"
            raise InvalidConfig(f"{self.dataset.where}: {size}; {how}")
        return load_demonstrations(self.dataset, self.footers, self.contract)

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of every shard that a run reads, those of its validation included."""
        found: dict[str, str] = {}
        for config in self.configs:
            found |= self.dataset.hashes(config, "train")
        held_out = self.dataset.hashes(HELD_OUT[self.contract.game], "validation")
        return found | held_out | self.dataset.hashes("pairs", "validation")


def find_configs(dataset: Dataset, shards: Shards) -> tuple[ConfigName, ...]:
    """The configs of a dataset that hold these shards."""
    if shards == "tags" and not dataset.has("tags", "train"):
        how = "write them with `aegen trajectories FOLDER --design tags`"
        raise MissingShards(f"{dataset.where}: no tags/train shards; {how}")
    if shards == "augmented" and not dataset.has("augmented", "train"):
        how = "write them with `aegen augment FOLDER`, or use --train-on expert"
        raise MissingShards(f"{dataset.where}: no augmented/train shards; {how}")
    if shards != "variants":
        return (shards,)
    if dataset.has("variants_expert", "train"):
        return ("expert", "variants_expert")
    first = dataset.read_footer(dataset.select("expert", "train")[0], STEP_COLUMNS)
    if not (first.description and first.description.one_source):
        raise MissingShards(
            f"{dataset.where}: no variants_expert/train shards; `aegen build … --variants 4` writes them"
        )
    return ("expert",)  # a target has one source, so there is nothing to vary


def text_contract(dataset: Dataset, footers: Sequence[Footer]) -> Contract:
    """What a model that writes whole texts needs to know: all tokens, the longest text, the longest target."""
    tokens: set[str] = set()
    longest_source = longest_target = 0
    for footer in footers:
        where = f"{dataset.where}/{footer.shard.name}"
        table = dataset.read(footer.shard, PAIR_COLUMNS)
        if any(table[name].null_count for name in PAIR_COLUMNS):
            raise BadData(f"{where}: null value in a row")
        sources, targets = split_texts(table, where)
        tokens.update(*sources, *targets)
        longest_source = max(longest_source, *map(len, sources), 0)
        longest_target = max(longest_target, *map(len, targets), 0)
    first = footers[0].description
    values: dict[str, Any] = {
        "config": "pairs",
        "split": "train",
        **{key: getattr(first, key) for key in ("task", "tokens", "arithmetic", "one_source", "spec")},
        "goal": plain(first.goal) if first else None,
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


def load_demonstrations(dataset: Dataset, footers: Sequence[Footer], contract: Contract, strict: bool = True) -> Steps:
    """All steps of some shards in memory; a pair is one step that writes the whole target."""
    if contract.game != "text":
        return load_steps(dataset, footers, contract, strict)
    table = dataset.read_all((footer.shard for footer in footers), PAIR_COLUMNS)
    where = f"{dataset.where}/pairs"
    if not len(table):
        raise BadData(f"{where}: no rows")
    if any(table[name].null_count for name in PAIR_COLUMNS):
        raise BadData(f"{where}: null value in a row")
    done, n = contract.action_ids[DONE], contract.action_length
    check_size(len(table), ACTION * n, where)
    states, lengths, readable = encode_texts(one_chunk(table["source"]), contract, where)
    actions = torch.full((len(table), n), done, dtype=torch.int32)
    for row, text in enumerate(table["target"].to_pylist()):
        words = split_state(text)
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


def check_held_out(dataset: Dataset, contract: Contract) -> None:
    """Refuse a dataset without a validation split: the best agent is the one that does best there."""
    for config in {HELD_OUT[contract.game], "pairs"}:
        if not any(shard.rows for name, shard in dataset.shards.items() if name.startswith(f"{config}/validation-")):
            how = "`aegen import … --ratio 80/10/10` makes one"
            raise BadData(f"{dataset.where}: no {config} in the validation split, which training needs; {how}")


def load_held_out(dataset: Dataset, split: SplitName, contract: Contract, rows: int | None = None) -> Steps:
    """The right actions of a split that is not learned from; rows that the contract cannot express are skipped.

    With ``rows`` only the first shards, up to that many rows.
    """
    footers = leading(dataset.footers(HELD_OUT[contract.game], split), rows)
    return load_demonstrations(dataset, footers, contract, strict=False)
