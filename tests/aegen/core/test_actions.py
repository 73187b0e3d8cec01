from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegen.arithmetic.tasks import writable_tokens
from aegen.core.actions import DESIGNS, index_of, load_design, position
from aegen.core.edits import Splice
from aegen.core.environment import Environment, Outcome
from aegen.core.errors import InvalidEdit, InvalidSpec
from aegen.core.format import DONE, OPERATIONS, Refusal

EDITS = {
    "insert": st.builds(lambda i, t: Splice(i, i, (t,)), st.integers(0, 99), st.sampled_from("ab+")),
    "edit": st.builds(
        lambda i, kind, t: {"i": Splice(i, i, (t,)), "d": Splice(i, i + 1, ()), "r": Splice(i, i + 1, (t,))}[kind],
        st.integers(0, 99), st.sampled_from("idr"), st.sampled_from("ab+"),
    ),
    "span": st.builds(
        lambda i, k, t: Splice(i, i + k, (t,)), st.integers(0, 99), st.integers(1, 9), st.sampled_from("ab+"),
    ),
}  # fmt: skip
EDITS |= {"span2": EDITS["span"], "span3": EDITS["span"]}


@pytest.mark.parametrize("name", DESIGNS)
@given(data=st.data())
def test_decode_is_the_inverse_of_encode(name, data):
    design, edit = DESIGNS[name], data.draw(EDITS[name])
    action = design.encode(edit)
    assert len(action) == len(design.slots)
    assert design.decode(action) == edit


@pytest.mark.parametrize(
    "name,edit",
    [
        ("insert", Splice(0, 1, ())),
        ("edit", Splice(0, 2, ("a",))),
        ("span", Splice(0, 0, ("a",))),
        ("edit", Splice(0, 0, ())),
    ],
)
def test_what_a_design_cannot_express(name, edit):
    with pytest.raises(InvalidEdit, match=name):
        DESIGNS[name].encode(edit)


def test_the_papers_actions():
    assert DESIGNS["insert"].encode(Splice(6, 6, ("+",))) == ("POS_6", "+")
    assert DESIGNS["edit"].encode(Splice(3, 4, ())) == ("DELETE", "POS_3", "POS_3")
    span = Splice(4, 9, ("96",))
    assert DESIGNS["span"].encode(span) == ("POS_4", "POS_8", "96")
    assert DESIGNS["span2"].encode(span) == ("POS_4", "96", "POS_8")
    assert DESIGNS["span3"].encode(span) == ("96", "POS_4", "POS_8")


def test_positions_have_one_spelling():
    assert index_of(position(12)) == 12
    assert [index_of(token) for token in ("POS_01", "POS_", "POS_-1", "pos_1", "POS_1 ", "POS_²")] == [None] * 6


STATE = ("1", "2", "3")
REFUSALS = [
    ("insert", ("DONE", "+"), Refusal.PARTLY_DONE),
    ("insert", ("+", "POS_1"), Refusal.WRONG_KIND),
    ("insert", ("POS_1", "POS_1"), Refusal.WRONG_KIND),
    ("insert", ("POS_1", "INSERT"), Refusal.WRONG_KIND),
    ("insert", ("POS_4", "+"), Refusal.OUT_OF_RANGE),
    ("insert", ("POS_1", "9"), Refusal.NOT_WRITABLE),
    ("edit", ("DELETE", "POS_1", "POS_2"), Refusal.DELETE_TWO_POSITIONS),
    ("edit", ("DELETE", "POS_1", "+"), Refusal.WRONG_KIND),
    ("edit", ("DELETE", "POS_3", "POS_3"), Refusal.OUT_OF_RANGE),
    ("edit", ("REPLACE", "POS_3", "+"), Refusal.OUT_OF_RANGE),
    ("edit", ("INSERT", "POS_1", "POS_1"), Refusal.WRONG_KIND),
    ("edit", ("+", "POS_1", "+"), Refusal.WRONG_KIND),
    ("edit", ("INSERT", "INSERT", "+"), Refusal.WRONG_KIND),
    ("span", ("POS_2", "POS_1", "+"), Refusal.OUT_OF_RANGE),
    ("span", ("POS_1", "POS_3", "+"), Refusal.OUT_OF_RANGE),
    ("span", ("POS_1", "+", "POS_2"), Refusal.WRONG_KIND),
    ("span", ("POS_1", "POS_2", "DELETE"), Refusal.WRONG_KIND),
]


@pytest.mark.parametrize("name,action,reason", REFUSALS)
def test_refusals_have_their_reason_and_keep_the_state(name, action, reason):
    game = Environment(DESIGNS[name], frozenset("+-"), max_state=9)
    assert game.step(STATE, action) == Outcome(STATE, refusal=reason)


def test_too_long():
    game = Environment(DESIGNS["insert"], frozenset("+"), max_state=3)
    assert game.step(STATE, ("POS_0", "+")).refusal is Refusal.TOO_LONG


def test_an_insertion_may_stand_at_the_end():
    game = Environment(DESIGNS["insert"], frozenset("+"), max_state=4)
    assert game.step(STATE, ("POS_3", "+")).state == ("1", "2", "3", "+")


@pytest.mark.parametrize("name", DESIGNS)
@given(st.data())
def test_the_environment_never_raises_and_never_changes_a_state_that_it_refuses(name, data):
    design = DESIGNS[name]
    words = st.sampled_from([DONE, *OPERATIONS, *map(position, range(6)), "+", "7", "x"])
    action = tuple(data.draw(st.lists(words, min_size=len(design.slots), max_size=len(design.slots))))
    state = tuple(data.draw(st.lists(st.sampled_from("+7"), max_size=4)))
    outcome = Environment(design, frozenset("+7"), max_state=4).step(state, action)
    assert (outcome.refusal is None) or (outcome.state == state and not outcome.done)
    assert len(outcome.state) <= max(len(state), 4)
    assert outcome.done == (action == design.done)


def test_rules_of_the_tasks():
    tokens = frozenset(("+", "=", "(", "7", "12"))
    edit, span = DESIGNS["edit"], DESIGNS["span3"]
    assert writable_tokens("aor", DESIGNS["insert"], tokens) == frozenset("+-*/=")
    assert writable_tokens("aes", span, tokens) == {"7", "12"}
    assert writable_tokens("aes", edit, tokens) == tokens
    assert writable_tokens("aec", edit, tokens) == writable_tokens("text", edit, tokens) == tokens


def test_each_name_is_its_own_design():
    assert all(load_design(name).name == name for name in DESIGNS)
    assert len({design.slots for design in DESIGNS.values()}) == len(DESIGNS)
    with pytest.raises(InvalidSpec, match="expected one of insert"):
        load_design("other")
