"""Small runs: how tests start, stop and compare them."""

from __future__ import annotations

import json
import subprocess
import sys

import torch

from trainer.core.progress import Reporter
from trainer.training.checkpoint import load_checkpoint

QUIET = {"device": "cpu", "reporter": Reporter(quiet=True)}


def weights(run, name="last"):
    return load_checkpoint(run / f"{name}.safetensors")[0]


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def story(run):
    """The lines of the metrics without the time they took."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [line | {"seconds": 0} for line in lines]


class Stop(Exception):
    pass


class Stopper(Reporter):
    """A power cut after some updates: nothing is saved on the way out."""

    def __init__(self, after):
        super().__init__(quiet=True)
        self.left = after

    def update(self, *args):
        self.left -= 1
        if self.left < 0:
            raise Stop


def torchrun(command, *arguments):
    """Run a command with two ranks on loopback."""
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*ranks, "-m", "trainer", *map(str, arguments)],
        env=command.environment | {"GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done
