"""What the site needs besides the pages in this folder; MkDocs calls these functions by their names.

The project's own pages (changelog, contributing, security) stay at the root of the repository and are pages of the
site, too. Links between the root and this folder are rewritten. A page that would load anything from another host
fails the build.
"""

from __future__ import annotations

import posixpath
import re
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

from griffe import Extension, Object
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
PROJECT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
LINK = re.compile(r"(?<=\]\()(?!https?://|#)([^)#\s]+)")
# What a browser fetches to show a page; where a reader may go is another thing.
LOADED = re.compile(r"<(?:script|img|iframe|source|audio|video)[^>]*\ssrc=[^>]*|<link[^>]*\shref=[^>]*")
HOST = re.compile(r"\s(?:src|href)=[\"']?(?:https?:)?//")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages at the root."""
    for name, uri in PROJECT.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def relink(markdown: str, uri: str) -> str:
    """The links of a page as they are on the site; ``uri`` is its place there.

    >>> relink("[a](cards/format.md) [b](SECURITY.md)", "contributing.md")
    '[a](format.md) [b](security.md)'
    >>> relink("[a](../../SECURITY.md#secrets) [b](../format.md)", "howto/cluster.md")
    '[a](../security.md#secrets) [b](../format.md)'
    """
    here = "" if uri in PROJECT.values() else posixpath.join("cards", posixpath.dirname(uri))

    def linked(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, found[1]))
        on_site = PROJECT.get(target) or (target.removeprefix("cards/") if target.startswith("cards/") else None)
        return posixpath.relpath(on_site, posixpath.dirname(uri) or ".") if on_site else found[1]

    return LINK.sub(linked, markdown)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links between the root and the pages."""
    return relink(markdown, page.file.src_uri)


def readable(docstring: str) -> str:
    """A docstring as Markdown: examples become blocks of code, and names of other objects lose Sphinx's roles.

    >>> readable("See :func:`load`.\\n\\n>>> 1 + 1\\n2")
    'See `load`.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    parts = re.sub(r":(?:class|func|meth|mod|attr):(?=`)", "", docstring).split("\n\n")
    return "\n\n".join(f"```pycon\n{part}\n```" if part.startswith(">>>") else part for part in parts)


def example_blocks(text: str) -> str:
    r"""The help of a command as Markdown: what a terminal shows line by line, its examples, becomes a block of code.

    >>> example_blocks("Do it.\n\n\b\nExamples:\n  aegen a\n  aegen b")
    'Do it.\n\nExamples:\n\n```sh\naegen a\naegen b\n```'
    >>> example_blocks("\b\nExample: aegen a")
    'Example:\n\n```sh\naegen a\n```'
    """
    parts = []
    for part in cleandoc(text).split("\n\n"):
        head, colon, lines = part.removeprefix("\b\n").partition(":")
        block = f"{head}:\n\n```sh\n{cleandoc(chr(10) + lines.lstrip(' '))}\n```"
        parts.append(block if part.startswith("\b\n") and colon else part)
    return "\n\n".join(parts)


def on_pre_build(config: Any) -> None:
    """Let the reference of commands show their examples as code."""
    for package in ("aegen", "trainer"):
        group = import_module(f"{package}.cli").main
        for command in (group, *group.commands.values()):
            command.help = example_blocks(command.help or "")


class Readable(Extension):
    """What mkdocstrings does to every docstring that it finds."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite it before it is parsed."""
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse what would be fetched from another host."""
    for found in LOADED.findall(output):
        fetched = not found.startswith("<link") or re.search(r"rel=[\"']?(?:stylesheet|icon|preload|preconnect)", found)
        if fetched and HOST.search(found):
            raise PluginError(f"{page.file.src_uri}: loads from another host: {found}")
    return output
