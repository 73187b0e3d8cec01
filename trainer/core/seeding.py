"""Randomness by position: every choice derives from (seed, what it is for), never from a running generator.

So a run can resume at any batch without the state of a generator, and neighbouring seeds share nothing.
"""

from __future__ import annotations

import hashlib

import torch


def derive(seed: int, *purpose: object) -> int:
    """A 63-bit key for one purpose under one seed.

    >>> derive(0, "epoch", 1) == derive(0, "epoch", 1), derive(0, "epoch", 1) == derive(1, "epoch", 1)
    (True, False)
    """
    text = "\x1f".join(map(str, (seed, *purpose))).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"trainer/1").digest(), "little") >> 1


def generator(seed: int, *purpose: object) -> torch.Generator:
    """A generator on the CPU for one purpose under one seed."""
    return torch.Generator().manual_seed(derive(seed, *purpose))
