"""Everything that depends on the machine: device, precision, compilation, and the ranks of a parallel run.

The rest of the package asks a :class:`Runtime` and does not know where it runs.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.core.errors import Failed, InvalidConfig, one_line


def find_device(name: str, local_rank: int = 0) -> torch.device:
    """``auto`` is a GPU where there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise InvalidConfig(f"device: expected one of auto, cpu, cuda, got {name!r}")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InvalidConfig("device cuda: PyTorch finds no GPU; use --device cpu")
    return torch.device("cuda", local_rank) if available and name != "cpu" else torch.device("cpu")


@cache
def computes_bf16() -> bool:
    """Whether the processor multiplies bf16 numbers itself; elsewhere an LSTM has no kernel for them, or a slow one."""
    found: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # of newer versions of PyTorch
    return bool(found.get("avx512_bf16") or found.get("amx_bf16"))


def recurrent_precision(device: torch.device) -> AbstractContextManager[Any]:
    """The precision of an LSTM: that of the rest of the network, but fp32 on a CPU that does not compute bf16."""
    slow = device.type == "cpu" and not computes_bf16()
    return torch.autocast(device.type, enabled=False) if slow else nullcontext()


def keep_freed_memory() -> None:
    """Let the next update reuse the memory of the last one, where glibc would return every large block at once.

    Without it an update of an LSTM on a CPU spends a fifth of its time on pages that the system clears anew.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    mmap_threshold, trim_threshold, top_pad = -3, -1, -2  # names of malloc.h
    library = ctypes.CDLL(None)
    for option, size in ((mmap_threshold, 256 << 20), (trim_threshold, 1 << 30), (top_pad, 64 << 20)):
        library.mallopt(option, size)


@contextmanager
def many_shapes() -> Iterator[None]:
    """For batches of many sizes: oneDNN caches a kernel for each, which took gigabytes; MKL is as fast.

    On a CPU it computes in fp32: bf16 without oneDNN is ten times as slow.
    """
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    try:
        with torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.backends.mkldnn.enabled = before


@dataclass(frozen=True)
class Runtime:
    """The device of a run, and this process's rank."""

    device: torch.device
    rank: int = 0
    world: int = 1
    compiled: bool = False

    @classmethod
    def start(cls, device: str = "auto", compiled: bool = False) -> Runtime:
        """Join the ranks that torchrun started, or run alone."""
        world = int(os.environ.get("WORLD_SIZE", "1"))
        found = find_device(device, int(os.environ.get("LOCAL_RANK", "0")))
        if found.type == "cpu":
            keep_freed_memory()
        if world == 1:
            return cls(found, compiled=compiled)
        if found.type == "cuda":
            torch.cuda.set_device(found)
        try:
            dist.init_process_group("nccl" if found.type == "cuda" else "gloo")
        except (RuntimeError, ValueError) as error:
            raise Failed(f"cannot connect the ranks: {one_line(error)}") from error
        return cls(found, dist.get_rank(), world, compiled)

    def stop(self) -> None:
        """Leave the process group."""
        if self.world > 1:
            dist.destroy_process_group()

    @property
    def main(self) -> bool:
        """Whether this rank writes the log and the checkpoints."""
        return self.rank == 0

    @property
    def best_precision(self) -> str:
        """What ``auto`` is here: bf16 on a GPU, and on a CPU that computes it."""
        return "bf16" if self.device.type == "cuda" or computes_bf16() else "fp32"

    def autocast(self, precision: str) -> AbstractContextManager[Any]:
        """The arithmetic of the forward pass."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=precision == "bf16")

    def parallel(self, model: nn.Module, unused: bool) -> nn.Module:
        """The module to train through: the same weights, with gradients averaged over the ranks."""
        if self.compiled:
            uncompiled: Any = torch.compiler.disable
            for module in model.modules():
                # Packed sequences cannot be compiled: a module with an LSTM runs uncompiled.
                if any(isinstance(child, nn.LSTM) for child in module.children()):
                    module.forward = uncompiled(module.forward)
            model.compile(dynamic=True)
        if self.world == 1:
            return model
        devices = [self.device.index] if self.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=devices, find_unused_parameters=unused)

    def total(self, values: Tensor) -> Tensor:
        """The sum over the ranks."""
        if self.world > 1:
            values = values.clone()
            dist.all_reduce(values)
        return values

    def largest(self, value: int) -> int:
        """The largest value over the ranks."""
        if self.world == 1:
            return value
        shared = torch.tensor(value, device=self.device)
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return int(shared)

    def wait(self) -> None:
        """Block until every rank gets here."""
        if self.world > 1:
            dist.barrier()

    def check_memory(self, parameters: int, copies: int) -> None:
        """Refuse a model that does not fit before memory is allocated for it."""
        if self.device.type == "cuda":
            memory = torch.cuda.get_device_properties(self.device).total_memory
        else:
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        needed = 4 * parameters * copies
        if needed > memory:
            raise InvalidConfig(
                f"a model of {parameters:,} parameters needs {needed / 1e9:,.1f} GB, "
                f"{self.device} has {memory / 1e9:,.1f} GB"
            )
