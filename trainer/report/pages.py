"""The pages of a report from their templates: one HTML file that needs nothing else, and Markdown."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from trainer.core.markdown import markdown_templates
from trainer.report.collect import Record
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
    timing: dict[str, Any]
    games: Sequence[dict[str, Any]] = ()


def html_page(page: Page) -> str:
    """The whole report as HTML."""
    return html_templates().get_template("report.html").render(vars(page))


def markdown_page(page: Page) -> str:
    """The whole report as Markdown."""
    return report_markdown().get_template("report.md").render(vars(page))


def markdown_table(table: Table) -> str:
    """One table of the paper with our figures beside its own."""
    return str(report_markdown().get_template("tables.md").module.table(table)).strip()  # type: ignore[attr-defined]


def markdown_timing(timing: dict[str, Any]) -> str:
    """The table of inference times."""
    return str(report_markdown().get_template("tables.md").module.timing(timing)).strip()  # type: ignore[attr-defined]


@cache
def html_templates() -> Environment:
    """HTML, every value escaped."""
    made = Environment(
        loader=PackageLoader("trainer.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    made.filters |= {"base64": lambda content: base64.b64encode(content).decode(), "comma": "{:,}".format}
    return with_words(made)


@cache
def report_markdown() -> Environment:
    """Markdown, every value escaped."""
    return with_words(markdown_templates("trainer.report"))


def with_words(made: Environment) -> Environment:
    """What both kinds of template call."""
    made.globals |= {"orders": orders, "remarks": remarks, "label": label, "short": SHORT}
    made.filters |= {"order_line": order_line, "with_spread": with_spread}
    return made
