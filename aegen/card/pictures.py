"""Histograms as PNG; the same counts and the same matplotlib give the same bytes."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from typing import Any

from aegen.card.companions import KINDS, LENGTHS
from aegen.core.errors import MissingExtra
from aegen.dataset.counts import Counts

COLOURS = {"expert": "#0072b2", "variants_expert": "#56b4e9", "augmented": "#e69f00", "tags": "#009e73"}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def draw(counted: Mapping[str, Counts]) -> dict[str, bytes]:
    """The histograms by file name, from counts by config; kinds of edits only if there are several."""
    pictures = {}
    if any(found.lengths for found in counted.values()):
        longest = max(max(found.lengths, default=0) for found in counted.values())
        bins = list(range(1, longest + 1))
        shares = {config: _shares(found.lengths, bins) for config, found in counted.items()}
        pictures[LENGTHS] = _bars(list(map(str, bins)), shares, "steps, including DONE", "% of the trajectories")
    kinds = sorted({kind for found in counted.values() for kind in found.kinds})
    if len(kinds) > 1:
        shares = {config: _shares(found.kinds, kinds) for config, found in counted.items() if found.kinds}
        pictures[KINDS] = _bars(kinds, shares, "", "% of the edits")
    return pictures


def _shares(counts: Mapping[Any, int], bins: list[Any]) -> list[float]:
    total = sum(counts.values()) or 1
    return [100 * counts.get(entry, 0) / total for entry in bins]


def _bars(labels: list[str], shares: Mapping[str, list[float]], across: str, up: str) -> bytes:
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # hides messages about font caches
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra.of("matplotlib", "report") from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # ignores the user's style
        figure = Figure(figsize=(6.4, 3.2), dpi=100, layout="constrained")
        axes = figure.add_subplot()
        width = 0.8 / len(shares)
        for index, (config, heights) in enumerate(shares.items()):
            places = [place - 0.4 + width * (index + 0.5) for place in range(len(labels))]
            axes.bar(places, heights, width, label=config, color=COLOURS[config])
        every = -(-len(labels) // 25)  # more labels would overlap
        axes.set_xticks(range(0, len(labels), every), labels[::every])
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        file = io.BytesIO()
        FigureCanvasAgg(figure).print_png(file, metadata={"Software": None})
    return file.getvalue()
