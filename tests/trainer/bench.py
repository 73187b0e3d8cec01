"""What the trainer costs: ``python -m tests.trainer.bench DATASET…`` for dataset folders (say AES and AOR).

Trains a small agent for a short while on each dataset, then measures in one run, with the same weights:
recurrent inference against the plain loop (per-row environment, finished rows kept, padded to m), and the share
of data loading in the time of an update.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import torch

from tests.trainer.reference import judge
from trainer.agent import Agent
from trainer.batches import Memory
from trainer.config import preset
from trainer.data import Dataset
from trainer.device import Runtime
from trainer.play import play
from trainer.steps import load_pairs, load_steps
from trainer.training import fit, open_training

UPDATES = 600


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
        actions = policy(ids, lengths).argmax(-1).tolist()
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


def measure(folder, run):
    """The figures of one dataset."""
    config = preset("cpu", updates=UPDATES, validate_every=1000)
    trained = fit(folder, config, run, device="cpu")
    dataset = Dataset(folder)
    agent = Agent.from_pretrained(run)
    pairs = load_pairs(dataset, "test", agent.contract)
    slow, expected = timed(plain_loop, agent, pairs)
    quick, found = timed(batched, agent, pairs)
    assert found == expected, "the two loops must agree"
    footers, contract = open_training(dataset, config)
    steps = load_steps(dataset, footers, contract)
    since, count = time.perf_counter(), 0
    for _ in Memory(steps, config, Runtime(torch.device("cpu"))).turns(0):
        count += 1
    loading = (time.perf_counter() - since) / count
    update = trained.seconds / trained.updates
    return {
        "games": len(pairs),
        "plain_seconds": round(slow, 3),
        "seconds": round(quick, 3),
        "ratio": round(slow / quick, 2),
        "milliseconds_per_update": round(1000 * update, 2),
        "loading_percent": round(100 * loading / update, 2),
    }


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            print(argument, measure(Path(argument), Path(temporary) / "run"))
