"""Sources without targets: distinct, and none of them in the validation or test of a dataset.

They are drawn as the sources of pairs are, so each of an equation's has a solution; the equation is not kept. All are
held in memory, as is a digest of every source that is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from aegen.core.errors import BadData, InvalidSpec
from aegen.pairs.generate import order_of, scan
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec

Digest = bytes


def digest(text: str) -> Digest:
    """A short stand-in for a text."""
    return blake2b(text.encode(), digest_size=16).digest()


def candidates(spec: Spec) -> Iterator[str]:
    """The sources of all equations of a spec, in its order, repetitions included."""
    order = order_of(spec)
    for block in range(-(-order.size // order.block)):
        yield from scan(spec, block).sources.texts().to_pylist()


def fresh(texts: Iterable[str], held_out: set[Digest]) -> Iterator[str]:
    """Each text once, without those that are held out.

    >>> list(fresh(["a", "b", "a", "c"], {digest("c")}))
    ['a', 'b']
    """
    seen = set(held_out)
    for text in texts:
        if (found := digest(text)) not in seen:
            seen.add(found)
            yield text


def generated_sources(spec: Spec, held_out: set[Digest]) -> list[str]:
    """``spec.d`` sources; too few in the whole space: an error that says how many there are."""
    found = []
    for text in fresh(candidates(spec), held_out):
        found.append(text)
        if len(found) == spec.d:
            return found
    apart = " apart from those held out" if held_out else ""
    raise InvalidSpec(f"d={spec.d:,}: there are {len(found):,} sources for n={spec.n}, l={spec.l}{apart}")


def imported_sources(source: Import, held_out: set[Digest]) -> list[str]:
    """All sources of some files."""
    source.skipped.clear()
    found = [*fresh((row.source for row in source.rows(source.skipped)), held_out)]
    if not found:
        raise BadData(f"{', '.join(map(str, source.paths)) or 'input'}: no sources, or all of them are held out")
    return found
