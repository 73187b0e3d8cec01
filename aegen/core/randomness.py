"""Randomness by position: every draw is a hash of (key, position, number of the draw), never a running generator."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from aegen.core.types import Integers

Words = npt.NDArray[np.uint64]
SUBSETS = 1 << 16  # the longest list of subsets that is made


def derive_key(*parts: object) -> int:
    """A 64-bit key from anything printable; neighbouring seeds give unrelated keys.

    >>> derive_key("aor", 0) != derive_key("aor", 1)
    True
    """
    text = "\x1f".join(str(part) for part in parts).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"aegen/1").digest(), "little")


def keyed_hash(key: int, words: Integers) -> Words:
    """64-bit words that look independent: numbers ``words`` of the sequence SplitMix64 makes from the key."""
    mixed = words.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def below(words: Words, bound: Integers | int) -> npt.NDArray[np.int64]:
    """Uniform integers in 0 … bound-1 from random words; the bias is under bound / 2^32."""
    if isinstance(bound, int) and bound > 1 << 31:  # the product below would not fit; here the bias is bound / 2^64
        return (words % np.uint64(bound)).astype(np.int64)
    high = words >> np.uint64(32)
    return ((high * np.asarray(bound, dtype=np.uint64)) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True)
class Draws:
    """Random numbers of the rows at ``positions``: draw j of a row depends on (key, position, j) alone."""

    key: int
    positions: npt.NDArray[np.int64]

    def words(self, draw: int) -> Words:
        """One 64-bit word for each row."""
        return keyed_hash(derive_key(self.key, draw), self.positions)

    def below(self, draw: int, bound: Integers | int) -> npt.NDArray[np.int64]:
        """One integer in 0 … bound-1 for each row."""
        return below(self.words(draw), bound)

    def digits(self, bounds: Sequence[int]) -> list[npt.NDArray[np.int64]]:
        """One integer in 0 … bound-1 for each row and bound, all from as few words as 32 spare bits each allow.

        The digits of a word in mixed radix: as independent as the word is random, with a bias under 2^-32.
        """
        found: list[npt.NDArray[np.int64]] = []
        room = 0
        for bound in bounds:
            if bound > room:
                words, room = self.words(len(found)), 1 << 32
            words, whole = words // np.uint64(bound), words
            found.append((whole - words * np.uint64(bound)).view(np.int64))
            room //= bound
        return found

    def at(self, rows: Integers, columns: Integers, width: int) -> Draws:
        """Draws for single places: column ``columns[i]`` (of ``width``) of row ``rows[i]``."""
        return Draws(self.key, self.positions[rows] * width + columns)

    def fork(self, *purpose: object) -> Draws:
        """The same rows with unrelated numbers."""
        return Draws(derive_key(self.key, *purpose), self.positions)


@lru_cache(maxsize=16)
def subsets(most: int, size: int) -> list[tuple[int, ...]] | None:
    """A list in which a uniform choice draws k uniformly in 0 … most, then k of ``size`` places; None if it is long.

    >>> subsets(1, 2)
    [(), (), (0,), (1,)]
    """
    ways = [math.comb(size, count) for count in range(most + 1)]
    each = math.lcm(*ways)
    if each * len(ways) > SUBSETS:
        return None
    return [
        places
        for count, way in enumerate(ways)
        for places in combinations(range(size), count)
        for _ in range(each // way)
    ]


def picked(draws: Draws, counts: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    """For each row ``counts[row]`` of the places 0 … sizes[row]-1, each subset equally likely: (rows, places).

    The j-th pick is one of the places that are left, counted past those that are taken.
    """
    rows = np.arange(len(counts))
    taken: list[Integers] = []
    found: list[tuple[Integers, Integers]] = [(rows[:0], rows[:0])]
    for draw in range(int(counts.max(initial=0))):
        still = counts[rows] > draw
        rows, taken = rows[still], [column[still] for column in taken]
        place: Integers = Draws(draws.key, draws.positions[rows]).below(draw, sizes[rows] - draw)
        for column in taken:  # in ascending order
            place += place >= column
        found.append((rows, place))
        for index, column in enumerate(taken):
            taken[index], place = np.minimum(column, place), np.maximum(column, place)
        taken.append(place)
    return np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])
