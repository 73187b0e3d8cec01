"""The pages of a report from their templates: one HTML file that needs nothing else, and Markdown."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trainer.core.markdown import markdown_templates
from trainer.pages.games import asset
from trainer.report.claims import claims
from trainer.report.collect import Record, Timing
from trainer.report.figures import Figures
from trainer.report.headline import RIGHT, headlines, own_first
from trainer.report.notes import order_line, remarks, with_spread
from trainer.report.tables import SHORT, Table, label, orders

GALLERY = files("trainer.report") / "templates" / "gallery.js"


@dataclass(frozen=True)
class Page:
    """What the templates show; the names are those in the templates."""

    title: str
    records: Sequence[Record]
    tables: Sequence[Table]
    figures: Figures
    timing: Timing
    games: Sequence[dict[str, Any]] = ()

    @property
    def results(self) -> list[Table]:
        """The tables of what was run, without empty rows and columns; own texts first if they are the subject."""
        found = [ran for table in self.tables if (ran := table.ran)]
        return sorted(found, key=lambda table: not table.key.startswith("other")) if own_first(self.records) else found

    @property
    def paper(self) -> list[Table]:
        """The paper's tables that have more than what was run."""
        return [whole for table in self.tables if (whole := table.whole)]

    @property
    def script(self) -> Markup:
        """What the page runs; nothing in it comes from a run."""
        return Markup(asset("stepper.js") + GALLERY.read_text(encoding="utf-8"))  # noqa: S704 - our own files

    @property
    def style(self) -> Markup:
        """The looks of the page."""
        return Markup(asset("page.css") + asset("stepper.css"))  # noqa: S704 - our own files

    @property
    def policy(self) -> str:
        """What the page may load and run: its own pictures and script, and nothing from anywhere else."""
        digest = base64.b64encode(sha256(self.script.encode()).digest()).decode()
        return (
            f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
            "base-uri 'none'; form-action 'none'"
        )


def html_page(page: Page) -> str:
    """The whole report as HTML."""
    return HTML.get_template("report.html").render(page=page, **vars(page))


def markdown_page(page: Page) -> str:
    """The whole report as Markdown."""
    return MARKDOWN.get_template("report.md").render(page=page, **vars(page))


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
    templates.globals |= {"headlines": headlines, "right": RIGHT}
    templates.filters |= {"order_line": order_line, "with_spread": with_spread}
