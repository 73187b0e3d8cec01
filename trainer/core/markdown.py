"""Markdown from Jinja2 templates: every value is escaped, so that no text from outside becomes markup or HTML.

The other package carries this file byte for byte.
"""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import metadata
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

MAX_HEAD = 1 << 16  # characters of a YAML head that is read
_INLINE = re.compile(r"[\\`*\[\]<&|~]|(?<![^\W_])_|_(?![^\W_])")  # inside a word _ is literal
_BLOCK = re.compile(r"^(\s*\d*)(>|[-+=#.)]+(?=\s|$))")  # starts a list, a heading, a quote, an underline or a rule


def markdown_templates(package: str) -> Environment:
    """The templates in the folder ``templates`` of a package.

    Values are escaped as text. Filters for other places: ``code`` (a code span, not in a table), ``fence`` (a code
    block), ``front_matter`` (YAML), ``comma`` (1,000).
    """
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,  # marks what templates and filters return as finished, so that it is escaped once
        finalize=escape_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"code": code, "fence": fence, "front_matter": front_matter, "comma": "{:,}".format}
    return made


def escape_text(value: object) -> Markup:
    r"""A value as text on one line.

    >>> print(escape_text("<b> | NAR*"), escape_text("---"), escape_text(-0.5))
    \<b> \| NAR\* \--- -0.5
    """
    if isinstance(value, Markup):
        return value
    line = " ".join(str(value).splitlines())
    return Markup(_BLOCK.sub(r"\1\\\2", _INLINE.sub(r"\\\g<0>", line)))  # noqa: S704 - escaped for Markdown


def code(value: object) -> Markup:
    """A code span that its content cannot end.

    >>> print(code("x"), code("a`b"))
    `x` ``a`b``
    """
    line = " ".join(str(value).splitlines())
    quote = "`" * next(n for n in range(1, len(line) + 2) if n not in map(len, re.findall("`+", line)))
    pad = " " if not line.strip() or line[0] in " `" or line[-1] in " `" else ""
    return Markup(f"{quote}{pad}{line}{pad}{quote}")  # noqa: S704 - a code span holds no markup


def fence(text: str, language: str = "text") -> Markup:
    """A code block that its content cannot end.

    >>> print(fence("x", "sh"))
    ```sh
    x
    ```
    """
    quote = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return Markup(f"{quote}{language}\n{str(text).strip(chr(10))}\n{quote}")  # noqa: S704 - code holds no markup


def project_link(package: str) -> Markup:
    """The project's name for a page that strangers read, linked if the installed package's ``[project.urls]`` say where
    the repository is.

    >>> print(project_link("jinja2"), project_link("no-such-package"))
    aegen aegen
    """
    with suppress(metadata.PackageNotFoundError):
        for entry in metadata.metadata(package).get_all("Project-URL") or ():
            label, _, url = entry.partition(", ")
            if label == "Repository":
                return Markup(f"[aegen](<{url}>)")  # noqa: S704 - from our own metadata
    return Markup("aegen")


def front_matter(fields: dict[str, Any]) -> Markup:
    """The YAML head of a page.

    >>> print(front_matter({"license": "mit", "language": ["no"]}))
    ---
    license: mit
    language:
    - 'no'
    ---
    """
    text = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
    return Markup(f"---\n{text}---")  # noqa: S704 - YAML quotes what is special


def read_front_matter(page: str) -> dict[str, Any]:
    """The fields at the head of a page, as texts; empty if the page has no readable head.

    >>> read_front_matter("---\\nlicense: mit\\n---\\n# Title"), read_front_matter("# Title")
    ({'license': 'mit'}, {})
    """
    head = re.match(r"---\n(.*?\n)---\n", page[:MAX_HEAD], re.DOTALL)
    try:  # BaseLoader: texts, lists and objects alone, so that a stranger's page cannot unfold to gigabytes
        fields = yaml.load(head[1], Loader=yaml.BaseLoader) if head else None  # noqa: S506
    except (yaml.YAMLError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
