"""AR* against NAR* at the paper's width, in turns in one run: how long an action takes.

What an action costs does not depend on the weights, so nothing is trained. Beside the whole action stands the time of
the decoder alone, the part in which the two differ. Counted is the time of one core, which other work on the machine
does not lengthen.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline.build import build
from trainer.data.dataset import Dataset
from trainer.data.demonstrations import load_held_out
from trainer.models.encoded import Encoded
from trainer.models.zoo import build_model, open_demonstrations
from trainer.report.paper import PAIR
from trainer.report.timing import best_in_turns
from trainer.training.presets import preset

BATCHES = (1, 256)


def deciders(agent: Encoded, states: Tensor, lengths: Tensor) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    """The whole of an action, and its decoder alone, behind an encoder that has been asked already."""
    encoded = agent.encoder(states, lengths)

    def whole() -> Tensor:
        return agent.scores(states, lengths)

    def decoder() -> Tensor:
        encoder, agent.encoder.forward = agent.encoder.forward, lambda *_: encoded  # type: ignore[method-assign]
        try:
            return agent.scores(states, lengths)
        finally:
            agent.encoder.forward = encoder  # type: ignore[method-assign]

    return whole, decoder


@torch.inference_mode()
def ratios(data: Path, batch: int) -> tuple[float, float]:
    """How many times longer AR* takes than NAR*: for an action, and for its decoder alone."""
    dataset, works = Dataset(data), []
    for name in PAIR:
        config = preset("paper", model=name, train_on="expert")
        contract = open_demonstrations(dataset, config).contract
        agent = build_model(config, contract).eval()
        assert isinstance(agent, Encoded)
        steps = load_held_out(dataset, "test", contract)
        rows = steps.lengths[steps.state_of].argsort(stable=True)[-batch:]  # of similar length, as games are grouped
        asked = steps.batch(rows)
        works.append(deciders(agent, asked.states, asked.lengths))
    found = []
    for part in range(2):
        pair = {name: work[part] for name, work in zip(PAIR, works, strict=True)}
        times = best_in_turns(pair, repeats=20 if batch == 1 else 5, clock=time.process_time)
        found.append(times[PAIR[0]] / times[PAIR[1]])
    return found[0], found[1]


def run() -> None:
    print("inference on one core: how many times longer AR* takes than NAR*, width 512")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for task, n in (("aor", 10), ("aes", 100), ("aec", 10)):
            data = Path(folder) / task
            build(Spec(task, n, 5, 1_000), Folder(data), Local())
            for batch in BATCHES:
                action, decoder = ratios(data, batch)
                print(
                    f"  {task}, {batch:>3} states   an action {action:5.2f} x   its decoder {decoder:5.2f} x",
                    flush=True,
                )
    torch.set_num_threads(threads)
