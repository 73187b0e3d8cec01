"""Inference time of two agents side by side: to decide on an action, and to return an edited text."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from trainer.agents.agent import Agent
from trainer.core.format import MANIFEST
from trainer.data.dataset import Dataset
from trainer.data.encode import load_pairs
from trainer.game.play import act, play
from trainer.report.collect import Record, TaskTiming, Times, Timing
from trainer.report.paper import PAIR
from trainer.training.run import RunFolder

GAMES = 512
REPEATS = 3


def best_in_turns(
    works: Mapping[str, Callable[[], object]], repeats: int = REPEATS, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The shortest time of each, measured alternately so that all meet the same machine; the first round warms up."""
    best = dict.fromkeys(works, float("inf"))
    for turn in range(repeats + 1):
        for name, work in works.items():
            since = clock()
            work()
            if turn:
                best[name] = min(best[name], clock() - since)
    return best


def time_agents(agents: Mapping[str, Agent], where: str | Path, repeats: int = REPEATS) -> tuple[dict[str, Times], int]:
    """The times of each agent on test sources of a dataset, and how many sources."""
    dataset = Dataset(where)
    loaded = {name: load_pairs(dataset, "test", agent.contract) for name, agent in agents.items()}
    sources = {name: (pairs.states[:GAMES].long(), pairs.lengths[:GAMES].long()) for name, pairs in loaded.items()}
    games = min(len(states) for states, _ in sources.values())

    def decide(name: str) -> None:
        with torch.inference_mode():
            act(agents[name].policy, *sources[name])

    def finish(name: str) -> None:
        agent = agents[name]
        play(agent.policy, agent.environment, *sources[name], max_steps=agent.contract.max_steps)

    actions = best_in_turns({name: lambda name=name: decide(name) for name in agents}, repeats)  # type: ignore[misc]
    texts = best_in_turns({name: lambda name=name: finish(name) for name in agents}, repeats)  # type: ignore[misc]
    return {name: Times(1e6 * actions[name] / games, 1e6 * texts[name] / games) for name in agents}, games


def measure(runs: Path, records: list[Record]) -> tuple[Timing, list[str]]:
    """The times of every task that has both agents, and a line for each task that could not be measured."""
    found: Timing = {}
    skipped = []
    for task in dict.fromkeys(record.task for record in records):
        chosen = _same_cell(runs, [r for r in records if r.task == task and r.usual and not r.label])
        if not chosen:
            continue
        agents = {name: Agent.from_pretrained(folder) for name, folder in chosen.items()}
        where = agents[PAIR[1]].description.data.get("where")
        if not isinstance(where, str) or not (Path(where) / MANIFEST).is_file():
            skipped.append(f"{task.upper()}: inference time not measured: no dataset in {where}")
            continue
        times, games = time_agents(agents, where)
        first, second = (times[name] for name in PAIR)
        ratio = Times(first.action / second.action, first.text / second.text)
        found[task] = TaskTiming(times, ratio, games, torch.get_num_threads())
    return found, skipped


def _same_cell(runs: Path, records: list[Record]) -> dict[str, Path]:
    """The folders of both agents with the same augmentation and seed, weights included."""
    for record in records:
        found = {
            other.model: runs / other.name
            for other in records
            if (other.ta, other.seed) == (record.ta, record.seed) and other.model in PAIR
        }
        if len(found) == len(PAIR) and all(RunFolder(folder).best.is_file() for folder in found.values()):
            return {name: found[name] for name in PAIR}
    return {}
