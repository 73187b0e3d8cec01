"""The pages of a report from their templates: one HTML file that needs nothing else, and Markdown."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from trainer.core.markdown import markdown_templates
from trainer.report.claims import claims
from trainer.report.collect import Record, Timing
from trainer.report.figures import Figures
from trainer.report.notes import order_line, remarks, with_spread
from trainer.report.tables import SHORT, Table, label, orders


@dataclass(frozen=True)
class Page:
    """What the templates show; the names are those in the templates."""

    title: str
    records: Sequence[Record]
    tables: Sequence[Table]
    figures: Figures
    timing: Timing
    games: Sequence[dict[str, Any]] = ()


def html_page(page: Page) -> str:
    """The whole report as HTML."""
    return HTML.get_template("report.html").render(vars(page))


def markdown_page(page: Page) -> str:
    """The whole report as Markdown."""
    return MARKDOWN.get_template("report.md").render(vars(page))


HTML = Environment(
    loader=PackageLoader("trainer.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
HTML.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
HTML.filters |= {"base64": lambda content: base64.b64encode(content).decode(), "comma": "{:,}".format}
MARKDOWN = markdown_templates("trainer.report")
for templates in (HTML, MARKDOWN):
    templates.globals |= {"orders": orders, "claims": claims, "remarks": remarks, "label": label, "short": SHORT}
    templates.filters |= {"order_line": order_line, "with_spread": with_spread}
