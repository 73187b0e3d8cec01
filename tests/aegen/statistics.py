"""Do two samples come from one distribution? A two-sample chi-square test without SciPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable


def same_distribution(left: Iterable[Hashable], right: Iterable[Hashable], z: float = 4.0) -> bool:
    """Whether chi-square stays below its quantile at ``z`` standard normal units (Wilson-Hilferty)."""
    counts = [Counter(left), Counter(right)]
    totals = [sum(count.values()) for count in counts]
    statistic, cells = 0.0, 0
    rare = [0.0, 0.0]
    for key in set(counts[0]) | set(counts[1]):
        seen = [counts[0][key], counts[1][key]]
        if sum(seen) < 20:  # too rare for the approximation: pooled
            rare = [rare[0] + seen[0], rare[1] + seen[1]]
            continue
        statistic, cells = statistic + _term(seen, totals), cells + 1
    if sum(rare) >= 20:
        statistic, cells = statistic + _term(rare, totals), cells + 1
    freedom = max(cells - 1, 1)
    limit = freedom * (1 - 2 / (9 * freedom) + z * (2 / (9 * freedom)) ** 0.5) ** 3
    return statistic < limit


def _term(seen: list[float], totals: list[int]) -> float:
    both = sum(seen) / sum(totals)
    return sum((count - total * both) ** 2 / (total * both) for count, total in zip(seen, totals, strict=True))
