from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aegen.core.actions import DESIGNS, SPECIAL, position
from aegen.core.format import detokenize, escape, join_state, split_state, tokenize, unescape

texts = st.text() | st.sampled_from(
    [*SPECIAL, "POS_3", "\\POS_3", "\\", "\\\\", "\\s", " ", "\u2028", "\u00a0", "\\e", "\\u0020", "BOS"]
)


@given(texts)
def test_unescape_is_the_inverse(text):
    assert unescape(escape(text)) == text


@given(texts)
def test_a_token_is_one_word_on_one_line_and_no_action_token(text):
    token = escape(text)
    assert token and " " not in token and len(token.splitlines()) == 1
    assert token not in {*SPECIAL, position(3), "BOS", "PAD"}


@given(texts, st.sampled_from(["words", "chars"]))
def test_the_original_text_comes_back(text, kind):
    tokens = tokenize(text, kind)
    assert detokenize(tokens, kind) == text
    assert split_state(join_state(tokens)) == tokens


@given(st.lists(texts, max_size=5))
def test_escape_keeps_texts_apart(parts):
    assert len({escape(part) for part in parts}) == len(set(parts))


def test_designs_know_only_plain_special_tokens():
    assert DESIGNS["insert"].decode(("POS_1", escape("DONE"))).new == (r"\DONE",)
