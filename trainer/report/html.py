"""A report as one HTML file that needs nothing else: pictures and games are inside."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from trainer.report.collect import Record, Timing
from trainer.report.figures import Figures
from trainer.report.markdown import costs, order_line, remarks, timing_rows
from trainer.report.tables import SHORT, Entry, Table, orders

TEMPLATE = Path(__file__).with_name("page.html")
NOTE = (
    "Mean ± sample standard deviation over seeds, in percent; below it the paper's figure and the difference to it. "
    "Bold is the best of its block, a star the best of its column, among what was run. Empty: not run."
)
GALLERY = """<div id="gallery" tabindex="0">
<p><label>Cell <select id="cell"></select></label><label>Game <select id="game"></select></label></p>
<div class="tokens" id="state"></div>
<div id="action"></div>
<p><button id="back" type="button">← back</button><button id="forward" type="button">forward →</button>
<span id="where"></span></p>
<p><span id="verdict"></span>; wanted: <span id="target"></span></p>
</div>"""


def entry_html(entry: Entry) -> str:
    """One cell: ours, then the paper's."""
    mine = ""
    if entry.mean is not None:
        mine = f"{entry.mean:.2f}" + (f" ± {entry.std:.2f}" if entry.std is not None else "")
        mine += "*" if entry.best_of_all else ""
    kind = ' class="best"' if entry.best else ""
    text = f'<span{kind} data-ours="{"" if entry.mean is None else f"{entry.mean:.4f}"}">{mine}</span>'
    if entry.theirs:
        spread = f" ± {entry.theirs[1]:.2f}" if entry.theirs[1] is not None else ""
        gap = f"<small>({entry.difference:+.2f})</small>" if entry.difference is not None else ""
        text += f"<small>paper {entry.theirs[0]:.2f}{spread}</small>{gap}"
    return f"<td>{text}</td>"


def table_html(found: Table, records: Sequence[Record]) -> str:
    """One table of the paper with our figures, and what its order says."""
    head = [*found.heads, *(f"{task.upper()} {SHORT[measure]}" for task, measure in found.columns)]
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    before = None
    for row in found.rows:
        kind = ' class="block"' if before is not None and row.block != before else ""
        before = row.block
        cells = "".join(f"<td>{escape(part)}</td>" for part in row.head) + "".join(map(entry_html, row.cells.values()))
        lines.append(f"<tr{kind}>{cells}</tr>")
    compared = "".join(f"<li>{escape(order_line(order))}</li>" for order in orders(found))
    said = f"<p>Order of the methods by equation accuracy:</p><ul>{compared}</ul>" if compared else ""
    body = f'<div class="wide"><table id="table-{escape(found.key)}">{"".join(lines)}</table></div>'
    noted = "".join(f"<p>{escape(line)}</p>" for line in remarks(found, records))
    return f"<h2>{escape(found.title)}</h2>{body}{noted}{said}"


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> str:
    """A table of texts."""
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return f'<table id="table-{name}">{"".join(lines)}</table>'


def figure_html(name: str, caption: str, files: dict[str, bytes]) -> str:
    """A picture inside the page."""
    data = base64.b64encode(files["svg"]).decode()
    alt = escape(caption, quote=True)
    image = f'<img id="figure-{name}" alt="{alt}" src="data:image/svg+xml;base64,{data}">'
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"


def details(record: Record) -> str:
    """The commands and the hashes of a cell."""
    commands = "\n".join([*([record.build] if record.build else []), *record.commands])
    hashes = "\n".join(f"{digest}  {file}" for file, digest in sorted(record.data.items()))
    name = escape(record.name)
    return f"<details><summary>{name}</summary><pre>{escape(commands)}</pre><pre>{escape(hashes)}</pre></details>"


def page(
    title: str,
    records: Sequence[Record],
    found: Sequence[Table],
    figures: Figures,
    timing: Timing,
    games: Sequence[dict[str, Any]],
) -> str:
    """The whole report."""
    timed = f'<h2>Inference time</h2><div class="wide">{plain_table(*timing_rows(timing), "timing")}</div>'
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        note=escape(NOTE),
        tables="\n".join(table_html(table, records) for table in found),
        figures="\n".join(figure_html(name, caption, files) for name, (caption, files) in figures.items()),
        timing=timed if timing else "",
        gallery=GALLERY if games else "<p>No games were kept.</p>",
        costs=plain_table(*costs(records), "costs"),
        commands="\n".join(map(details, records)),
        games=json.dumps(games, ensure_ascii=False).replace("<", "\\u003c"),  # so that no text can end the script
    )
