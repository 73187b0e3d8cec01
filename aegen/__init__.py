"""Text editing as an imitation game: text pairs into state-action demonstrations.

>>> from aegen import Spec
>>> Spec.parse("aor-n10-l5-d10000-s0").d
10000
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aegen.pairs.spec import Spec

__version__ = "0.1.0"
__all__ = ["Spec", "__version__"]


def __getattr__(name: str) -> Any:
    """Loaded when it is first used, so that the command is ready for Ctrl-C at once."""
    if name != "Spec":
        raise AttributeError(f"module 'aegen' has no attribute {name!r}")
    from aegen.pairs.spec import Spec

    return Spec
