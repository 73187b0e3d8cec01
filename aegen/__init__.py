"""Text editing as an imitation game: text pairs into state-action demonstrations.

>>> import aegen
>>> aegen.Spec.parse("aor-n10-l5-d10k").d
10000
>>> [step.action for step in aegen.trajectory("1 1 2".split(), "1 + 1 = 2".split(), design="insert")]
[('POS_1', '+'), ('POS_3', '='), ('DONE', 'DONE')]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aegen.api import Dataset, Step, Trajectory, build, import_pairs, load, trajectory
    from aegen.core.edits import Splice
    from aegen.core.environment import Environment
    from aegen.core.errors import (
        AegenError,
        BadData,
        Failed,
        FolderConflict,
        InvalidEdit,
        InvalidSpec,
        MissingExtra,
        NoAccess,
    )
    from aegen.experts.metrics import Metric
    from aegen.pairs.spec import Spec

__version__ = "0.1.0"
__all__ = [
    "AegenError",
    "BadData",
    "Dataset",
    "Environment",
    "Failed",
    "FolderConflict",
    "InvalidEdit",
    "InvalidSpec",
    "Metric",
    "MissingExtra",
    "NoAccess",
    "Spec",
    "Splice",
    "Step",
    "Trajectory",
    "__version__",
    "build",
    "import_pairs",
    "load",
    "trajectory",
]

# Loaded when first used, so that the command starts quickly.
_HOMES = {
    "core.edits": ("Splice",),
    "core.environment": ("Environment",),
    "core.errors": (
        "AegenError", "BadData", "Failed", "FolderConflict", "InvalidEdit", "InvalidSpec", "MissingExtra", "NoAccess",
    ),
    "experts.metrics": ("Metric",),
    "pairs.spec": ("Spec",),
    "api": ("Dataset", "Step", "Trajectory", "build", "import_pairs", "load", "trajectory"),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"aegen.{home}"), name)
    raise AttributeError(f"module 'aegen' has no attribute {name!r}")
