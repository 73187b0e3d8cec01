"""One cell of a sweep in a process of its own: ``python -m trainer.cell`` reads the cell from its standard input.

The input stays open as long as the sweep lives; when it closes the cell ends at once, so that nobody trains on for a
sweep that was killed. Everything on disk appears in one move, so a cell can end at any moment.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from pathlib import Path
from typing import Any

from trainer.checkpoint import write_json
from trainer.errors import FolderConflict, TrainerError
from trainer.progress import Reporter

CELL = "cell.json"  # written last: no such file, not finished
FORMAT = 1


def end_with_the_sweep() -> None:
    """End this process when whoever started it is gone."""

    def wait() -> None:
        while sys.stdin.buffer.read(1 << 16):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def await_turn(out: Path, seconds: float = 20) -> None:
    """Let a cell of a sweep that was just killed end before its folder is taken over."""
    from trainer.run import Run

    until = time.monotonic() + seconds
    while True:
        run = Run(out)
        try:
            run.hold()
            return
        except FolderConflict:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        finally:
            run.release()


def run_cell(order: dict[str, Any]) -> dict[str, Any]:
    """Train and evaluate, going on with what is there; returns what ``cell.json`` says."""
    import torch

    from trainer.config import Config
    from trainer.evaluation import evaluate_run
    from trainer.training import fit

    torch.set_num_threads(order["threads"])
    out, since, busy = Path(order["out"]), time.monotonic(), time.process_time()
    config = Config.parse(order["config"], "the cell")
    await_turn(out)
    with (out.parent / f"{out.name}.log").open("a") as log:
        reporter = Reporter() if order["shown"] else Reporter(log)
        result = fit(order["data"], config, out, resume=True, device=order["device"], save_every=100, reporter=reporter)
    evaluation = evaluate_run(out, order["device"], order["data"], order["cell"]["split"])
    record = {
        "format": FORMAT,
        **order["cell"],
        "config": config.to_json(),
        "commands": order["commands"],
        "build": order["build"],
        "parameters": result.parameters,
        "updates": result.updates,
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "finished": result.finished,
        "train_seconds": round(result.seconds, 1),
        "seconds": round(time.monotonic() - since, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),  # of all threads, on a machine that others may use too
        "device": device_name(order["device"]),
        "threads": order["threads"],
        "evaluation": evaluation,
    }
    write_json(out / CELL, record)
    return record


def device_name(asked: str) -> str:
    """What computed, in words."""
    from trainer.device import find_device

    device = find_device(asked)
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.machine()}, {os.cpu_count()} cores)"


def main() -> None:
    """The process."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    order = json.loads(sys.stdin.buffer.readline())
    end_with_the_sweep()
    try:
        record = run_cell(order)
    except TrainerError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        os._exit(error.exit_code)
    print(json.dumps({"evaluation": record["evaluation"], "seconds": record["seconds"]}), flush=True)
    os._exit(0)  # the waiting thread holds the input, and a normal end would wait for it


if __name__ == "__main__":
    main()
