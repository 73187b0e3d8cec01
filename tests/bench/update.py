"""An update of NAR* on AES against the plain way: packed batches of all lengths in fp32, PyTorch's usual AdamW.

Both run in processes of their own, in turns: how memory is kept is a setting of a process. ``python -m
tests.bench.update DATA HOW WIDTH BATCH UPDATES`` prints the milliseconds of an update on one core.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline.build import build
from trainer.core.device import Runtime, keep_freed_memory
from trainer.data.batches import MemorySampler
from trainer.data.dataset import Dataset
from trainer.models.policy import negative_log_likelihood
from trainer.models.zoo import build_model, open_demonstrations
from trainer.training.presets import preset

SIZES = ((128, 128, 30), (512, 256, 3))  # width, batch, updates
WARM = 2  # updates before the clock starts
TURNS = 3


def milliseconds(data: Path, how: str, width: int, batch: int, updates: int) -> float:
    """The mean time of some updates."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    fast = how == "fast"
    if fast:
        keep_freed_memory()
    runtime = Runtime(torch.device("cpu"))
    lengths, precision = ("equal", runtime.best_precision) if fast else ("mixed", "fp32")
    config = preset("core-hours", model="nar-star", width=width, batch=batch, lengths=lengths)
    demonstrations = open_demonstrations(Dataset(data), config)
    model = build_model(config, demonstrations.contract).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=fast)
    sampler = MemorySampler(demonstrations.steps, config, runtime)
    since = 0.0
    for number, update in zip(range(WARM + updates), sampler.updates(0), strict=False):
        if number == WARM:
            since = time.process_time()
        optimizer.zero_grad()
        with runtime.autocast(precision):
            scores = model(*update.batch.inputs)
        torch.autograd.backward(negative_log_likelihood(scores, update.batch.actions).mean())
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
    return 1000 * (time.process_time() - since) / updates


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "aes"
        build(Spec("aes", 100, 5, 10_000), Folder(data), Local())
        for width, batch, updates in SIZES:
            times: dict[str, list[float]] = {"plain": [], "fast": []}
            for how, found in [*times.items()] * TURNS:
                size = map(str, (width, batch, updates))
                command = [sys.executable, "-m", "tests.bench.update", str(data), how, *size]
                found.append(float(subprocess.check_output(command, text=True)))
            plain, fast = (min(found) for found in times.values())
            print(
                f"an update of NAR* on AES, {batch} steps at width {width}: {plain / fast:.2f} x faster than the "
                f"packed plain way in fp32 ({fast:.0f} and {plain:.0f} ms of one core)",
                flush=True,
            )


if __name__ == "__main__":
    print(milliseconds(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])))
