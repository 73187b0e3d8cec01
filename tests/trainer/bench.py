"""What the trainer costs: ``python -m tests.trainer.bench DATASET…`` for dataset folders (say AES and AOR).

Trains a planner for a short while on each dataset, then measures in one run, with the same weights: recurrent
inference against the plain loop (per-row environment, finished rows kept, padded to m). And of one of the paper's
agents the share of data loading in the time of an update.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch

from tests.trainer.reference import judge
from trainer.agents.agent import Agent
from trainer.core.device import Runtime
from trainer.core.progress import Reporter
from trainer.data.batches import MemorySampler
from trainer.data.dataset import Dataset
from trainer.data.encode import load_pairs
from trainer.game.play import play
from trainer.models.zoo import open_demonstrations
from trainer.training.fit import train_run
from trainer.training.presets import preset

UPDATES = 1500  # of the planner: enough to play well
SOME = 60  # of the paper's agent: enough to time


@torch.inference_mode()
def plain_loop(agent, pairs):
    """Recurrent inference without any of the shortcuts; the final states as token tuples."""
    contract, policy = agent.contract, agent.policy
    names = (*contract.actions, "BOS")
    states, finished = list(pairs.sources), [False] * len(pairs)
    for _ in range(contract.max_steps):
        ids = torch.zeros(len(states), contract.max_state, dtype=torch.long)
        for row, state in enumerate(states):
            ids[row, : len(state)] = torch.tensor([contract.state_ids[token] for token in state], dtype=torch.long)
        lengths = torch.tensor([len(state) for state in states])
        actions = policy.scores(ids, lengths).argmax(-1).tolist()
        for row, action in enumerate(actions):
            if not finished[row]:
                said = [names[token] for token in action]
                states[row], verdict = judge(contract.slots, contract.writable, contract.max_state, states[row], said)
                finished[row] = verdict == "done"
        if all(finished):
            break
    return states


def batched(agent, pairs):
    """The same through the trainer."""
    names = ("", *agent.contract.state_tokens)
    played = play(agent.policy, agent.environment, pairs.states, pairs.lengths, max_steps=agent.contract.max_steps)
    rows = zip(played.states.tolist(), played.lengths.tolist(), strict=True)
    return [tuple(names[token] for token in state[:length]) for state, length in rows]


def timed(function, *arguments, repeat=3):
    """The best time of some repetitions, and the result."""
    best, result = float("inf"), None
    for _ in range(repeat):
        since = time.perf_counter()
        result = function(*arguments)
        best = min(best, time.perf_counter() - since)
    return best, result


def play_ratio(folder, run):
    """Recurrent inference of a trained planner against the plain loop."""
    train_run(folder, preset("fast", updates=UPDATES, validate_every=1000), run, device="cpu")
    agent = Agent.from_pretrained(run)
    pairs = load_pairs(Dataset(folder), "test", agent.contract)
    slow, expected = timed(plain_loop, agent, pairs)
    quick, found = timed(batched, agent, pairs)
    assert found == expected, "the two loops must agree"
    return {
        "games": len(pairs),
        "plain_seconds": round(slow, 3),
        "seconds": round(quick, 3),
        "ratio": round(slow / quick, 2),
    }


def loading_share(folder, run):
    """Of the time of an update, how much goes into its data."""
    config = preset("cpu", updates=SOME, validate_every=1000)
    dataset = Dataset(folder)
    demonstrations = open_demonstrations(dataset, config)
    source = MemorySampler(demonstrations.steps, config, Runtime(torch.device("cpu")))
    since = time.perf_counter()
    for _ in islice(source.updates(0), SOME):
        pass
    loading = time.perf_counter() - since
    clock = Clock()
    train_run(folder, config, run, device="cpu", reporter=clock)
    return {
        "milliseconds_per_update": round(1000 * clock.seconds / clock.updates, 2),
        "loading_percent": round(100 * (loading / SOME) / (clock.seconds / clock.updates), 2),
    }


class Clock(Reporter):
    """The time from the first update to the last."""

    def __init__(self):
        super().__init__(quiet=True)
        self.first, self.last, self.updates = 0.0, 0.0, -1

    def update(self, *arguments):
        self.last = time.perf_counter()
        self.first = self.first or self.last
        self.updates += 1

    @property
    def seconds(self):
        return self.last - self.first


def measure(folder, run):
    """The figures of one dataset."""
    return play_ratio(folder, run / "planner") | loading_share(folder, run / "agent")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            print(argument, measure(Path(argument), Path(temporary) / "run"))
