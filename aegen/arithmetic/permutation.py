"""A keyed pseudo-random permutation of a range, without memory of what was visited."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aegen.core.randomness import below, derive_key, keyed_hash
from aegen.core.types import Integers

TABLE = 1 << 20  # halves up to this size are tabulated: the same numbers, looked up instead of computed
ROUNDS = 4


class Permutation:
    """A keyed pseudo-random permutation of 0 … a*b-1, as a Feistel network on (0 … a-1) x (0 … b-1)."""

    def __init__(self, key: int, a: int, b: int) -> None:
        self.a, self.b = a, b
        self.keys = [derive_key(key, "round", index) for index in range(ROUNDS)]
        self.steps = [self._step(index) for index in range(ROUNDS)]

    def _step(self, index: int) -> Callable[[Integers], Integers]:
        """Round function: from one half to a shift of the other."""
        domain, shift = (self.b, self.a) if index % 2 == 0 else (self.a, self.b)

        def step(half: Integers) -> Integers:
            return below(keyed_hash(self.keys[index], half), shift)

        if domain > TABLE:
            return step
        table = step(np.arange(domain))
        return (table.astype(np.int32) if shift <= 1 << 31 else table).take

    def __call__(self, positions: Integers) -> tuple[Integers, Integers]:
        """The pairs (half below a, half below b) at these positions."""
        left, right = np.divmod(positions, self.b)
        for index, step in enumerate(self.steps):
            if index % 2 == 0:
                left = _wrap(left + step(right), self.a)
            else:
                right = _wrap(right + step(left), self.b)
        return left, right


def _wrap(sums: Integers, modulus: int) -> Integers:
    """Sums of two residues back below the modulus: read as unsigned, what is negative is huge."""
    return np.minimum(sums.view(np.uint64), (sums - modulus).view(np.uint64)).view(np.int64)
