"""AR* against NAR*, in turns in one run: how long an action takes, and how long a returned text.

What an action costs does not depend on the weights, so nothing is trained: a text is returned along the expert's way,
as a perfect agent would. Counted is the time of one core, which other work on the machine does not lengthen.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline.build import build
from trainer.data.dataset import Dataset
from trainer.data.demonstrations import load_held_out
from trainer.game.play import act
from trainer.models.zoo import build_model, open_demonstrations
from trainer.report.paper import PAIR
from trainer.report.timing import best_in_turns
from trainer.training.presets import preset

GAMES = 8


def ratios(data: Path, size: str) -> tuple[float, float]:
    """How many times longer AR* takes than NAR*: for the first action of some games, and for all of theirs."""
    dataset = Dataset(data)
    agents = {}
    for name in PAIR:
        config = preset(size, model=name, train_on="expert")
        contract = open_demonstrations(dataset, config).contract
        agents[name] = build_model(config, contract).eval()
    steps = load_held_out(dataset, "test", contract)
    starts, ends = steps.starts[:GAMES], steps.starts[1 : GAMES + 1]
    # Step after step, as games are played: the games that still go on are asked about together.
    rounds = [(starts + step)[starts + step < ends] for step in range(int((ends - starts).max()))]

    def decide(name: str, asked: list[torch.Tensor]) -> None:
        for rows in asked:
            batch = steps.batch(steps.taken[rows])
            with torch.inference_mode():
                act(agents[name], batch.states, batch.lengths)

    found = []
    for asked in (rounds[:1], rounds):
        works = {name: lambda name=name, asked=asked: decide(name, asked) for name in PAIR}
        times = best_in_turns(works, repeats=5, clock=time.process_time)
        found.append(times[PAIR[0]] / times[PAIR[1]])
    return found[0], found[1]


def run() -> None:
    print("inference on one core: how many times longer AR* takes than NAR*")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for task, n in (("aor", 10), ("aes", 100), ("aec", 10)):
            data = Path(folder) / task
            build(Spec(task, n, 5, 1_000), Folder(data), Local())
            for size in ("paper", "cpu"):
                action, text = ratios(data, size)
                print(
                    f"  {task}, preset {size:<6} an action {action:5.2f} x   a returned text {text:5.2f} x", flush=True
                )
    torch.set_num_threads(threads)
