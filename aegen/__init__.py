"""Text editing as an imitation game: text pairs into state-action demonstrations.

>>> from aegen import Spec
>>> Spec.parse("aor-n10-l5-d10000-s0").d
10000
"""

from aegen.spec import Spec

__version__ = "0.1.0"
__all__ = ["Spec", "__version__"]
