"""Laws of edits: what is left of a trajectory leads to its end, in any order, and classes name edits and back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.game.test_environment import contract
from tests.trainer.reference import levenshtein
from trainer.core.errors import BadData, InvalidConfig
from trainer.core.format import escape, is_special, unescape
from trainer.core.records import convert
from trainer.data.contract import OpenContract
from trainer.models.editor.edits import Edit, EditClasses, EditorKnowledge, check_spans, made, remaining
from trainer.models.editor.trajectories import decode_edits
from trainer.models.editor.variants import apply, ending, worth_having

texts = st.lists(st.integers(1, 4), max_size=8)


def played(source, target):
    """The edits of a trajectory, each in the positions of the state that it is played on."""
    shift, found = 0, []
    for start, stop, new in levenshtein(source, target):
        found.append(Edit(start + shift, stop + shift, new[0] if new else None))
        shift += len(new) - (stop - start)
    return found


@given(texts, texts, st.data())
def test_edits_that_are_left_can_be_made_in_any_order(source, target, data):
    edits = played(source, target)
    left = remaining(edits)
    assert left[:1] == edits[:1]
    if len(left) < len(edits):  # several insertions into one gap: the others are seen once the first is made
        gaps = [start for start, stop, _ in levenshtein(source, target) if start == stop]
        assert len(set(gaps)) < len(gaps)
        return
    chosen = data.draw(st.lists(st.booleans(), min_size=len(left), max_size=len(left)))
    state, others = made(source, left, chosen)
    assert made(state, others, [True] * len(others))[0] == target
    assert made(source, left, [False] * len(left)) == (source, sorted(left, key=lambda edit: edit[:2]))


def test_an_edit_of_what_was_written_is_not_told_from_before():
    assert remaining([Edit(2, 3, 9), Edit(2, 3, 8), Edit(5, 6, 7)]) == [Edit(2, 3, 9)]
    assert remaining([Edit(4, 5, 9), Edit(0, 1, None), Edit(2, 2, 7)]) == [
        Edit(4, 5, 9),
        Edit(0, 1, None),
        Edit(3, 3, 7),
    ]


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).map(escape)


@pytest.mark.parametrize("design", ["insert", "edit", "span", "span-3"])
@given(data=st.data())
def test_an_edit_is_its_class_its_word_and_its_action(design, data):
    rules = contract(design, OpenContract)
    span = 3 if design.startswith("span") else 0
    classes = EditClasses(rules, EditorKnowledge(("title", "left", ">s"), span))
    state = [
        rules.word_id(word) for word in data.draw(st.lists(st.sampled_from(["2", "+", "new", "cats"]), min_size=1))
    ]
    start = data.draw(st.integers(0, len(state) - 1))
    width = {"insert": 0, "edit": data.draw(st.integers(0, 1))}.get(design, data.draw(st.integers(1, 3)))
    stop = min(start + width, len(state))
    new = data.draw(st.sampled_from(["2", "3", "Cats", "new"]))
    removes = design == "edit" and width and data.draw(st.booleans())
    edit = Edit(start, stop, None if removes else rules.word_id(new))
    kind = classes.kind(edit)
    assert classes.edit(start, start == stop, kind, edit.new) == edit
    assert classes.writes(start == stop, kind) == (edit.new is not None)
    assert decode_edits(torch.tensor([classes.action(edit)]), torch.tensor([len(state)]), rules) == [edit]
    if edit.new is None or rules.names[edit.new] == (rules.names[state[start]] if stop - start == 1 else ""):
        return
    answer = classes.answer(edit, state)
    if answer >= 0:
        assert classes.word(answer, edit, state) == edit.new
    else:
        assert new not in rules.action_tokens


@given(WORDS, WORDS)
def test_a_variant_is_a_token_and_changes_something(word, new):
    for name in ("lower", "upper", "title", "left", "right", ">s", "s>", "y>ies"):
        token = apply(name, word, new, "")
        assert token is None or (token != word and not is_special(token) and " " not in token)
    if (name := ending("abc" + word, "abc" + new)) is not None:
        assert apply(name, "abc" + word, "", "") == escape(unescape("abc" + new))


def test_only_variants_that_pay_are_kept():
    plurals = [(f"cat{letter}", "", "", f"cat{letter}s") for letter in "abcdefghijklmnopqrstuvwxyz"]
    assert worth_having([*plurals, ("one", "", "", "two"), ("paris", "", "", "Paris")]) == (">s",)
    assert worth_having(plurals[:3]) == ()


def test_knowledge_of_other_data_is_refused():
    for values in ({"variants": ["swap"]}, {"span": 3}, {"variants": ["a>b>c"]}):
        with pytest.raises(BadData, match="field (variants|span)"):
            convert(values, EditorKnowledge, "run").check(contract("edit"), "run")
    with pytest.raises(InvalidConfig, match="at most 64 tokens, these have up to 70"):
        check_spans([Edit(0, 70, 1)])
