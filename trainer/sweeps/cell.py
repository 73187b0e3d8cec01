"""One cell of a sweep in a process of its own: ``python -m trainer.sweeps.cell`` reads it from standard input.

The input stays open as long as the sweep lives; when it closes the cell ends at once, so that nobody trains on for a
sweep that was killed. Everything on disk appears in one move, so a cell can end at any moment.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

from trainer.core.errors import BadData, TrainerError
from trainer.core.progress import Reporter
from trainer.training.checkpoint import write_json

CELL = "cell.json"  # written last: no such file, not finished
FORMAT = 1
SIZE = ("n", "l", "d")  # of a dataset that was generated


def end_with_the_sweep() -> None:
    """End this process when whoever started it is gone."""

    def wait() -> None:
        while sys.stdin.buffer.read(1 << 16):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def take_turn(log: IO[str], seconds: float = 20) -> bool:
    """Be the only process of this cell until the log is closed; False if another one works on.

    It waits a little: a cell whose sweep was just killed may be about to end.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() > until:
                return False
            time.sleep(0.2)


def run_cell(order: dict[str, Any]) -> dict[str, Any]:
    """Train and evaluate, going on with what is there; returns what ``cell.json`` says.

    Another sweep may have run the cell, or be about to: that is left to it.
    """
    import torch

    from trainer.core.config import Config
    from trainer.evaluation import evaluate_run
    from trainer.training.fit import train

    torch.set_num_threads(order["threads"])
    out, since, busy = Path(order["out"]), time.monotonic(), time.process_time()
    config = Config.parse(order["config"], "the cell")
    with (out.parent / f"{out.name}.log").open("a") as log:
        if not take_turn(log):
            return {"left": "another process runs it"}
        if (out / CELL).is_file():
            return {"left": "another process has run it"}
        described = describe(order["data"], order["cell"])
        reporter = Reporter() if order["shown"] else Reporter(log)
        result = train(
            order["data"], config, out, resume=True, device=order["device"], save_every=100, reporter=reporter
        )
        evaluation = evaluate_run(out, order["device"], order["data"], order["cell"]["split"])
        record = {
            "format": FORMAT,
            **described,
            "config": config.to_json(),
            "commands": order["commands"],
            "build": order["build"],
            "parameters": result.parameters,
            "updates": result.updates,
            "epochs": result.epochs,
            "best_epoch": result.best_epoch,
            "finished": result.finished,
            "train_seconds": round(result.seconds, 1),
            # With what was done before a kill. CPU seconds are of all threads, on a machine that others may use too.
            "seconds": round(time.monotonic() - since + result.before[0], 1),
            "cpu_seconds": round(time.process_time() - busy + result.before[1], 1),
            "device": device_name(order["device"]),
            "threads": order["threads"],
            "evaluation": evaluation,
        }
        write_json(out / CELL, record)
    return record


def describe(data: str, cell: dict[str, Any]) -> dict[str, Any]:
    """The cell with what its dataset says of itself; an error if the sweep calls it something else."""
    from trainer.data.dataset import Dataset

    dataset = Dataset(data)
    if not dataset.has("expert", "validation"):  # pairs alone, which name no edits
        return cell
    contract = dataset.contract(dataset.footers("expert", "validation"))
    found = {"task": contract.task, "metric": contract.metric, "design": contract.design}
    for key, value in found.items():
        if cell[key] and value != cell[key]:
            raise BadData(f"{data}: its {key} is {value!r}, the sweep says {cell[key]!r}")
    pairs = contract.spec.get("pairs")
    size = {key: pairs[key] for key in SIZE if key in pairs} if isinstance(pairs, dict) else {}
    return cell | found | {"size": size}


def device_name(asked: str) -> str:
    """What computed, in words."""
    from trainer.core.device import find_device

    device = find_device(asked)
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.machine()}, {os.cpu_count()} cores)"


def main() -> None:
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the sweep, which ends its cells
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    order = json.loads(sys.stdin.buffer.readline())
    end_with_the_sweep()
    try:
        record = run_cell(order)
    except TrainerError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        os._exit(error.exit_code)
    answer = {key: record[key] for key in ("evaluation", "seconds", "left") if key in record}
    print(json.dumps(answer), flush=True)
    os._exit(0)  # the waiting thread holds the input, and a normal end would wait for it


if __name__ == "__main__":
    main()
