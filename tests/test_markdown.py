"""Markdown from templates: no value becomes markup. Both packages carry the same module."""

from __future__ import annotations

import re
from email.message import Message
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aegen.card import markdown
from aegen.card.markdown import code, escape_text, fence, front_matter, project_link, read_front_matter
from tests.pages import ATTACK, code_blocks, code_spans, head_and_body

ROOT = Path(__file__).parent.parent
texts = st.text(st.sampled_from("`|\\<>&*_[]~#-+=. \n\r1a@:'\"\u2028é")) | st.text() | st.just(ATTACK)


def one_line(text):
    return " ".join(text.splitlines())


def test_both_packages_carry_the_same_module():
    assert (ROOT / "aegen/card/markdown.py").read_bytes() == (ROOT / "trainer/core/markdown.py").read_bytes()


def test_cards_link_to_the_project_once_its_metadata_says_where_it_is(monkeypatch):
    about = Message()
    about["Project-URL"] = "Paper, https://arxiv.org/abs/2210.12276"
    monkeypatch.setattr(markdown.metadata, "metadata", lambda package: about)
    assert project_link("aegen") == "aegen"
    about["Project-URL"] = "Repository, https://git.example/aegen"
    assert project_link("aegen") == "[aegen](<https://git.example/aegen>)"


@given(texts)
def test_escaped_text_is_one_line_without_markup(text):
    found = str(escape_text(text))
    assert len(found.splitlines()) <= 1
    spans, rest = code_spans(found)
    assert not spans and not set(rest) & set("\\`*[]<&|~") and not re.search(r"\b_|_\b", found.replace(r"\_", ""))
    assert not re.match(r"\s*(>|(#+|[-+]+|=+|\d+[.)])(\s|$))", found)


@given(texts)
def test_escaping_loses_nothing(text):
    shown, escaped = "", False
    for character in escape_text(text):
        escaped = character == "\\" and not escaped
        shown += "" if escaped else character
    assert shown == one_line(text)


@given(texts, st.text(st.sampled_from("ab |"), max_size=3))
def test_a_code_span_holds_its_text_and_ends_where_it_should(text, after):
    (content, *others), rest = code_spans(code(text) + after)
    line = one_line(text)
    assert not others and rest == after and content in (line, f" {line} ")


@given(texts)
def test_a_fence_holds_its_text(text):
    blocks, rest = code_blocks(f"before\n{fence(text, 'sh')}\nafter")
    assert rest == "before\nafter" and [block.strip("\n") for block in blocks] == [text.strip("\n")]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | texts
    | st.sampled_from(["on", "no", "@x", "null", "---", "1e3", "- a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab:"), inner, max_size=3),
)


@given(st.dictionaries(st.text("abc", min_size=1), values, min_size=1, max_size=4))
def test_front_matter_is_yaml_and_nothing_ends_it(fields):
    page = f"{front_matter(fields)}\n# Title\n"
    assert head_and_body(page) == (fields, "# Title\n")


def test_what_stands_in_a_head_is_read_as_text():
    page = f"{front_matter({'license': 'on', 'language': ['no'], 'size': 3})}\n"
    assert read_front_matter(page) == {"license": "on", "language": ["no"], "size": "3"}
    assert read_front_matter("---\nlicense: on\n---\n") == {"license": "on"}


LEVELS = zip("abcdefgh", "bcdefghi", strict=True)
BOMB = "a: &a [x, x]\n" + "".join(f"{two}: &{two} [{', '.join([f'*{one}'] * 9)}]\n" for one, two in LEVELS)


@pytest.mark.parametrize("head", ["{", "a: b: c", "[x]", "!!int ''", "!!python/object:os.system x", "[" * 5000, BOMB])
def test_a_strangers_head_does_no_harm(head):
    found = read_front_matter(f"---\n{head}\n---\n")
    assert isinstance(found, dict) and len(yaml.safe_dump(sorted(found))) < 1000
