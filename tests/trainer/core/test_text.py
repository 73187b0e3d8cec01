import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainer.core.errors import InvalidText
from trainer.core.format import detokenize as join
from trainer.core.format import escape, is_special, unescape
from trainer.core.text import split

PIECES = st.text() | st.sampled_from(
    ["DONE", "POS_3", "POS_03", "\\DONE", "\\", "\\e", "\\u0041", "", " ", "\U000e0001"]
)


@given(PIECES)
@example("\\POS_3")
@example("\\s")
def test_unescape_undoes_escape(piece):
    token = escape(piece)
    assert unescape(token) == piece
    assert token and not re.search(r"\s", token) and not is_special(token)


@given(PIECES, PIECES)
def test_two_pieces_never_share_a_token(one, two):
    assert (escape(one) == escape(two)) == (one == two)


@given(st.text(), st.sampled_from(["words", "chars"]))
def test_text_survives_its_tokens(text, tokens):
    assert join(split(text, tokens), tokens) == text


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(InvalidText, match="surrogate"):
        split("\ud800", "words")
