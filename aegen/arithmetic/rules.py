"""Which tokens a task lets an agent write."""

from __future__ import annotations

from aegen.arithmetic.equation import OPERATORS, is_integer
from aegen.core.actions import Design

ARITHMETIC_WRITABLE = frozenset((*OPERATORS, "="))


def writable_tokens(task: str, design: Design, tokens: frozenset[str]) -> frozenset[str]:
    """Which tokens a task lets an agent write: AOR operators and ``=``, AES integers, the others any that they know.

    AES's rule belongs to edits that replace a whole parenthesis; token by token, anything may have to be written.
    """
    if task == "aor":
        return ARITHMETIC_WRITABLE
    return frozenset(filter(is_integer, tokens)) if task == "aes" and "left" in design.slots else tokens
