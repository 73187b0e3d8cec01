"""Arithmetic Operators Restoration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from aegen.sampling import Draws


@dataclass(frozen=True)
class Aor:
    """The source is the integers alone: ``3 6 2 9 3`` -> ``- 3 - 6 / 2 + 9 = 3``."""

    name: ClassVar[str] = "aor"
    one_target: ClassVar[bool] = False

    def sources(self, cells: npt.NDArray[np.int32], draws: Draws) -> npt.NDArray[np.int32]:
        """Drop sign, operators and ``=``."""
        return cells[:, 1::2]
