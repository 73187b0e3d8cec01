"""The types that everybody uses."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Tokens = tuple[str, ...]
Integers = npt.NDArray[Any]
