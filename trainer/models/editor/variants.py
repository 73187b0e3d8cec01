"""Words made from words of the state: another case, another ending, a copy of a neighbour.

Which of them pay is found in the demonstrations. With them the editor writes words that no demonstration writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from trainer.core.format import escape, unescape

CASES: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "title": lambda word: word[:1].upper() + word[1:],
}
COPIES = ("left", "right")
STEM, ENDING = 3, 3  # characters that an ending leaves at least, and has at most
SHARE, LEAST = 5e-4, 20  # of the words written, and their number, that make a variant worth having
MOST = 200


def apply(variant: str, word: str, left: str, right: str) -> str | None:
    """The token that a variant makes at a place with some token, between two others ('' for none); None: none.

    >>> apply("title", "paris", "", ""), apply("y>ies", "city", "", ""), apply("s>", "of", "", "")
    ('Paris', 'cities', None)
    >>> apply("left", "b", "a", "c"), apply("lower", "a", "", "")
    ('a', None)
    """
    if variant in COPIES:
        made = left if variant == "left" else right
        return made if made and made != word else None
    text = unescape(word) if word else ""
    if variant in CASES:
        changed = CASES[variant](text)
    else:
        old, _, new = variant.partition(">")
        if not text.endswith(old) or len(text) - len(old) < STEM:
            return None
        changed = text[: len(text) - len(old)] + new
    return escape(changed) if changed and changed != text else None


def ending(word: str, new: str) -> str | None:
    """The change of an ending that makes one token of another.

    >>> ending("city", "cities"), ending("walk", "walked"), ending("a", "the")
    ('y>ies', '>ed', None)
    """
    one, two = unescape(word), unescape(new)
    stem = next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    if one == two or stem < STEM or max(len(one), len(two)) - stem > ENDING or ">" in one + two:
        return None
    return f"{one[stem:]}>{two[stem:]}"


def worth_having(writes: Iterable[tuple[str, str, str, str]]) -> tuple[str, ...]:
    """The variants that make enough of the tokens that are written: (replaced or '', left, right, written) of each."""
    counts: Counter[str] = Counter()
    total = 0
    for word, left, right, new in writes:
        total += 1
        names = [*CASES, *COPIES, *filter(None, [ending(word, new) if word else None])]
        if first := next((name for name in names if apply(name, word, left, right) == new), None):
            counts[first] += 1
    least = max(LEAST, SHARE * total)
    kept = [name for name, count in counts.most_common() if count >= least][:MOST]
    order = [*CASES, *COPIES]
    return tuple(sorted(kept, key=lambda name: (order.index(name) if name in order else len(order), name)))
