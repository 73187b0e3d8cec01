"""Reading a Markdown page as CommonMark does, as far as needed to see what is markup and what is text."""

from __future__ import annotations

import re
from typing import Any

import yaml

ATTACK = (
    "</script><img src=x onerror=alert(1)> `x` ``` | *b* [l](u) &amp; $\\frac$ @me\n---\n# Owned\n```\n<b>|</b>\n```"
)


def head_and_body(page: str) -> tuple[dict[str, Any], str]:
    """The fields of the YAML head, and all that follows it."""
    empty, head, body = re.split(r"^---\n", page, maxsplit=2, flags=re.MULTILINE)
    assert not empty
    return yaml.safe_load(head), body


def code_blocks(body: str) -> tuple[list[str], str]:
    """The content of the fenced blocks, and the page without them."""
    blocks, rest, fence = [], [], ""
    for line in body.split("\n"):
        run = re.match(r"(`{3,})([a-z]*)$", line)
        if fence:
            if run and not run[2] and len(run[1]) >= len(fence):
                fence = ""
            else:
                blocks[-1] += line + "\n"
        elif run:
            fence = run[1]
            blocks.append("")
        else:
            rest.append(line)
    assert not fence, "a block without an end"
    return blocks, "\n".join(rest)


def code_spans(text: str) -> tuple[list[str], str]:
    """The content of the code spans, and the text without them and without escaped characters."""
    spans: list[str] = []
    rest, index = "", 0
    while index < len(text):
        if text[index] == "\\" and index + 1 < len(text) and not text[index + 1].isalnum():
            index += 2
            continue
        run = re.compile("`+").match(text, index)
        if not run:
            rest += text[index]
            index += 1
            continue
        end = next((m for m in re.compile("`+").finditer(text, run.end()) if len(m[0]) == len(run[0])), None)
        assert end, f"a code span without an end: {text[index : index + 80]!r}"
        spans.append(text[run.end() : end.start()])
        index = end.end()
    return spans, rest


def check_inert(page: str, headings: int) -> str:
    """No HTML but our comment, no heading, table cell or code that the template has not; returns the text alone."""
    _, rest = code_blocks(head_and_body(page)[1] if page.startswith("---\n") else page)
    rest = re.sub(r"\A<!--[^\n]*-->\n", "", rest)
    _, text = code_spans(rest)
    assert "<" not in text and "onerror" not in re.findall(r"\]\(([^)]*)", text)
    assert len(re.findall(r"^#+ ", text, re.MULTILINE)) == headings
    widths = 0
    for line in rest.split("\n"):
        bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not bars or not widths or bars == widths, line
        widths = bars
    return text
