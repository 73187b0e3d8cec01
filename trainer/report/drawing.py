"""How the pictures of a report look: colours of Okabe and Ito, and never colour alone."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GREEN, SKY, RED, PURPLE, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", "#1a1a1a",
)  # fmt: skip
# An SVG has no background, and in a browser with dark colours what is black in it turns light.
DARK = (
    "<style>@media (prefers-color-scheme: dark) {"
    + "".join(f'[style*="{kind}: {BLACK}"] {{ {kind}: #e6e8eb !important }} ' for kind in ("fill", "stroke"))
    + "}</style>"
)
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK)
MARKS = "osD^vPX*<>ph"
HATCHES = ("", "//", "..", "xx")
STYLES = ("-", "--", "-.", ":")


def panels(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    """A figure with axes (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows))
    return figure, figure.subplots(rows, columns, squeeze=False)


def share_legend(figure: Any, axes: Any, columns: int = 4) -> None:
    """One legend below all panels, so that it covers no data and names what is drawn in any of them."""
    found: dict[str, Any] = {}
    for here in axes.flat:
        for handle, name in zip(*here.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        figure.legend([*found.values()], [*found], loc="outside lower center", ncols=columns, fontsize=7)


def style_of(number: int) -> dict[str, Any]:
    """How the method of a number looks, everywhere: colour, mark, and another line when the colours are used up."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKS[number % len(MARKS)],
        "linestyle": STYLES[number // len(COLOURS) % len(STYLES)],
    }
