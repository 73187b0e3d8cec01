"""What is marked as removed and written is all that a move changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.reference import SLOTS, judge, tagged
from trainer.game.marks import of_edit, of_tags, of_texts

WORDS = ("+", "2", "3")
POSITIONS = [f"POS_{index}" for index in range(6)]
states = st.lists(st.sampled_from(WORDS), max_size=5).map(tuple)
SAID = {
    "token": [*WORDS, *POSITIONS],
    "operation": ("INSERT", "DELETE", "REPLACE"),
    "position": POSITIONS,
    "left": POSITIONS,
    "right": POSITIONS,
}


def without(tokens, places):
    assert set(places) <= set(range(len(tokens)))
    return [token for place, token in enumerate(tokens) if place not in places]


def check(before, after, found):
    assert without(before, found.removed) == without(after, found.written)
    return [after[place] for place in found.written]


@pytest.mark.parametrize("design", SLOTS)
@given(data=st.data())
def test_an_edit_changes_what_is_marked(design, data):
    slots = tuple(SLOTS[design])
    state, action = data.draw(states), data.draw(st.tuples(*(st.sampled_from(SAID[slot]) for slot in slots)))
    after, verdict = judge(slots, WORDS, 99, state, action)
    if verdict == "applied":
        assert check(state, after, of_edit(slots, action)) == [token for token in action if token in WORDS]


@given(states, st.data())
def test_a_round_of_tags_changes_what_is_marked(state, data):
    tag = st.sampled_from(["KEEP", "INSERT_7"])
    any_tag = st.sampled_from(["KEEP", "DELETE", "SUB_5", "INSERT_7"])
    tags = (data.draw(tag), *(data.draw(any_tag) for _ in state))
    written = check(state, tagged(state, tags), of_tags(tags))
    assert written == [tag.partition("_")[2] for tag in tags if "_" in tag]


@given(states, states)
def test_a_text_written_anew_is_marked_between_its_equal_ends(old, new):
    check(old, new, found := of_texts(old, new))
    assert (found.removed == found.written == ()) == (old == new)
