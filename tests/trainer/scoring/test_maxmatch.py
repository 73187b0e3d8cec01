"""MaxMatch: cases made by hand, the definition by brute force, and laws."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainer.core.errors import BadData
from trainer.data.m2 import Annotated, Edit, parse_m2, read_m2, write_m2
from trainer.scoring.maxmatch import DELETE, INSERT, KEEP, REPLACE, Counts, MaxMatch, edits_between, lattice, match


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def gold(*edits: tuple[int, int, str]) -> tuple[Edit, ...]:
    return tuple(Edit(start, stop, (words(new),)) for start, stop, new in edits)


def scored(*sentences: tuple[str, str, list[tuple[Edit, ...]]]) -> MaxMatch:
    score = MaxMatch()
    for source, output, annotators in sentences:
        score.add(Annotated(words(source), tuple(annotators)), words(output))
    return score


# By hand: source, output, gold edits; then how many are correct and proposed.
CASES = {
    "the paper's phrase": ("our baseline system feeds word", "Our baseline system feeds a word",
                           gold((4, 5, "a word")), 1, 2),
    "nothing done": ("a cat sat", "a cat sat", gold((0, 1, "the")), 0, 0),
    "one of two": ("he go to school yesterday", "he went to school yesterday", gold((1, 2, "went"), (2, 3, "")), 1, 1),
    "too much": ("he go home", "he goes to home", gold((1, 2, "goes")), 1, 2),
    "a phrase edit with two unchanged words": ("a b c d", "x b c y", gold((0, 4, "x b c y")), 1, 1),
    "with three it is none": ("a b c d e", "x b c d y", gold((0, 5, "x b c d y")), 0, 2),
    "other edits are merged across two words": ("a b c d", "x b c y", gold(), 0, 1),
    "across three they are not": ("a b c d e", "x b c d y", gold(), 0, 2),
    "the same words are inserted once": ("a b", "a the the b", gold((1, 1, "the")), 1, 2),
    "two insertions at one place": ("a b", "a x y b", gold((1, 1, "x"), (1, 1, "y")), 2, 2),
    "an insertion before a deletion": ("a b c", "a x c", gold((1, 1, "x"), (1, 2, "")), 2, 2),
    "words that change places": ("a b", "b a", gold((0, 1, ""), (2, 2, "a")), 2, 2),
    "a doubled word goes": ("the the cat", "the cat", gold((1, 2, "")), 1, 1),
    "or the other one": ("the the cat", "the cat", gold((0, 1, "")), 1, 1),
    "all goes": ("a b", "", gold((0, 2, "")), 1, 1),
    "from nothing": ("", "a b", gold((0, 0, "a b")), 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases_made_by_hand(name):
    source, output, edits, correct, proposed = CASES[name]
    found = match(words(source), words(output), edits)
    assert (len(found.correct), len(found.proposed)) == (correct, proposed)


def test_the_best_annotator_counts_and_an_alternative_is_as_good():
    source, output = "she dont like it", "she does not like it"
    good, other = gold((1, 2, "does not")), gold((1, 2, "did not"))
    assert scored((source, output, [other, good])).total == Counts(1, 1, 1)
    either = (Edit(1, 2, (words("did not"), words("does not"))),)
    assert scored((source, output, [either])).total == Counts(1, 1, 1)


def test_the_annotator_is_chosen_by_the_score_of_all_sentences_so_far():
    """One edit of each annotator is found. Alone, fewer gold edits are better; an unknown precision is no matter."""
    few, many = gold((0, 1, "x")), gold((0, 1, "x"), (2, 3, "y"))
    assert scored(("a b c", "x b c", [many, few])).total == Counts(1, 1, 1)


def test_figures():
    score = scored(
        ("he go to home", "he goes to home", [(Edit(1, 2, (("goes",),), "R:VERB"), Edit(2, 3, ((),), "U:PREP"))]),
        ("I am fine", "I am very fine", [()]),
    )
    found = score.to_json()
    assert (found["precision"], found["recall"], found["f0.5"]) == (50.0, 50.0, 50.0)
    assert found["kinds"]["replace"]["f0.5"] == 100.0 and found["kinds"]["insert"]["precision"] == 0.0
    assert found["kinds"]["delete"] == Counts(0, 0, 1).to_json()
    assert found["types"]["R:VERB"] == {"recall": 100.0, "correct": 1, "gold": 1}
    assert found["types"]["U:PREP"]["recall"] == 0.0 and found["sentences"] == 2


def test_edits_that_change_nothing_do_not_count():
    score = scored(("a b", "a b", [gold((0, 1, "a"))]))
    assert score.total == Counts(0, 0, 0) and score.total.f == 1


# The definition, by brute force

few = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)
STEP = {KEEP: (1, 1), REPLACE: (1, 1), DELETE: (1, 0), INSERT: (0, 1)}


@st.composite
def annotated(draw: st.DrawFn, sources=few, corrections=few) -> tuple[tuple[str, ...], tuple[Edit, ...]]:
    """A sentence and edits of it that do not overlap."""
    source = draw(sources)
    places = sorted(draw(st.lists(st.integers(0, len(source)), max_size=4)))
    edits = {}
    for start, stop in list(pairwise(places))[::2]:
        edit = Edit(start, stop, (draw(corrections)[:2],))
        if edit.corrections[0] != source[start:stop]:
            edits[start, stop] = edit
    return source, tuple(edits.values())


def paths(arcs, cell, end):
    """All ways through a lattice, as (arc, cell before, cell after)."""
    if cell == end:
        yield []
    for arc, (down, right) in STEP.items():
        if arcs.get(cell, 0) & arc:
            after = (cell[0] + down, cell[1] + right)
            for rest in paths(arcs, after, end):
                yield [(arc, cell, after), *rest]


def readings(path):
    """All ways to read a path as unchanged words and phrase edits."""
    if not path:
        yield []
        return
    if path[0][0] == KEEP:
        yield from readings(path[1:])
    for size in range(1, len(path) + 1):
        arcs = [arc for arc, _, _ in path[:size]]
        if arcs.count(KEEP) <= 2 and arcs.count(KEEP) < size:
            for rest in readings(path[size:]):
                yield [(path[0][1], path[size - 1][2]), *rest]


def brute(source, output, edits):
    """The most edits in common, then the fewest."""
    best = (0, -len(source) - len(output))
    for path in paths(lattice(source, output), (0, 0), (len(source), len(output))):
        for reading in readings(path):
            proposed = [(a[0], b[0], output[a[1] : b[1]]) for a, b in reading]
            correct = sum((edit.start, edit.stop, edit.corrections[0]) in proposed for edit in edits)
            best = max(best, (correct, -len(proposed)))
    return best


def distance(source, output, price):
    """Edit distance, as in a textbook."""
    table = {(0, 0): 0}
    for i in range(len(source) + 1):
        for j in range(len(output) + 1):
            options = [table[i, j]] if (i, j) in table else []
            if i:
                options.append(table[i - 1, j] + 1)
            if j:
                options.append(table[i, j - 1] + 1)
            if i and j:
                options.append(table[i - 1, j - 1] + price * (source[i - 1] != output[j - 1]))
            table[i, j] = min(options)
    return table


@given(few, few)
def test_the_lattice_has_all_shortest_alignments_and_no_other(source, output):
    found = {(cell, arc) for cell, arcs in lattice(source, output).items() for arc in STEP if arcs & arc}
    wanted = set()
    for price in (1, 2):
        ahead, behind = distance(source, output, price), distance(source[::-1], output[::-1], price)
        n, m = len(source), len(output)
        for (i, j), done in ahead.items():
            for arc, (down, right) in STEP.items():
                k, l = i + down, j + right
                if k > n or l > m or (arc in (KEEP, REPLACE) and (source[i] == output[j]) != (arc == KEEP)):
                    continue
                cost = {KEEP: 0, REPLACE: price}.get(arc, 1)
                if done + cost + behind[n - k, m - l] == ahead[n, m]:
                    wanted.add(((i, j), arc))
    assert found == wanted


@settings(max_examples=200)
@given(annotated(), few)
@example((("a",), (Edit(0, 0, (("b",),)), Edit(1, 1, (("b",),)))), ("b", "a", "b"))
def test_the_search_is_the_definition(pair, output):
    source, edits = pair
    found = match(source, output, edits)
    assert (len(found.correct), -len(found.proposed)) == (brute(source, output, edits) if source != output else (0, 0))
    assert apply(source, found.proposed) == output
    assert set(found.correct) <= set(edits) and len(set(found.correct)) == len(found.correct)


def apply(source, edits):
    state = list(source)
    for edit in reversed(edits):
        state[edit.start : edit.stop] = edit.corrections[0]
    return tuple(state)


# Laws

fresh = st.lists(st.sampled_from("uvwxyz"), max_size=2, unique=True).map(tuple)
sentences = st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True).map(tuple)


@given(st.lists(annotated(sentences, fresh), min_size=1, max_size=4))
def test_gold_against_itself_is_100(many):
    """New words, so that no alignment can be another one."""
    score = MaxMatch()
    for source, edits in many:
        score.add(Annotated(source, (edits,)), apply(source, edits))
    assert score.total.f == 1 and score.total.correct == score.total.gold == sum(len(edits) for _, edits in many)


@given(st.lists(annotated(), min_size=1, max_size=4))
def test_unchanged_against_gold_has_recall_0(many):
    score = MaxMatch()
    for source, edits in many:
        score.add(Annotated(source, (edits,)), source)
    assert score.total.recall == (0 if score.total.gold else 1) and not score.total.proposed


@given(few, few)
def test_the_edits_between_two_texts_lead_from_one_to_the_other_and_match_themselves(source, target):
    edits = edits_between(source, target)
    assert apply(source, edits) == target
    assert scored_edits(source, target, [edits]).total == Counts(len(edits), len(edits), len(edits))


def scored_edits(source, output, annotators):
    score = MaxMatch()
    score.add(Annotated(source, tuple(annotators)), output)
    return score


@given(few, st.data(), few)
def test_the_order_of_annotators_changes_nothing(source, data, output):
    annotators = data.draw(st.lists(annotated(st.just(source)).map(lambda pair: pair[1]), min_size=1, max_size=3))
    shuffled = data.draw(st.permutations(annotators))
    assert scored_edits(source, output, annotators) == scored_edits(source, output, shuffled)


@given(few, few, st.data())
def test_another_annotator_never_harms(source, output, data):
    first, second = (data.draw(annotated(st.just(source)))[1] for _ in range(2))
    assert scored_edits(source, output, [first, second]).total.f >= scored_edits(source, output, [first]).total.f


# Files

TEXT = """\
S She dont like it .
A 1 2|||R:VERB|||does n't||did n't|||REQUIRED|||-NONE-|||0
A 1 2|||R:VERB|||does n't||did n't|||REQUIRED|||-NONE-|||0
A 3 4|||U:PRON||||||REQUIRED|||-NONE-|||1
A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||2

S
S Fine .\r
"""


def test_m2_files(tmp_path):
    (tmp_path / "a.m2").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    first, empty, last = read_m2(tmp_path / "a.m2")
    assert [len(edits) for edits in first.annotators] == [1, 1, 0]
    assert first.annotators[0][0].corrections == (("does", "n't"), ("did", "n't"))
    assert first.annotators[1][0].corrections == ((),)
    assert empty == Annotated(()) and last == Annotated(("Fine", "."))


@pytest.mark.parametrize(
    "text,problem",
    [
        ("A 1 2|||R|||x|||R|||-|||0", "a.m2:1: expected a line that begins with S or A"),
        ("S a\nA 1 x|||R|||x|||R|||-|||0", "a.m2:2: an edit that cannot be read"),
        ("S a\nA 0 1|||R|||x", "a.m2:2: an edit that cannot be read"),
        ("S a\nA 0 2|||R|||x|||R|||-|||0", "a.m2:2: an edit outside the sentence"),
        ("S a b\nA 2 1|||R|||x|||R|||-|||0", "a.m2:2: an edit that ends before it begins"),
        ("S a\nsome text", "a.m2:2: expected a line that begins with S or A"),
        ("S \udcff", "a.m2:1: not valid UTF-8"),
    ],
)
def test_m2_files_that_are_wrong(tmp_path, text, problem):
    (tmp_path / "a.m2").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BadData, match=problem):
        list(read_m2(tmp_path / "a.m2"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadData, match="No such file"):
        list(read_m2(tmp_path / "a.m2"))


@given(annotated())
def test_m2_is_read_back(pair):
    source, edits = pair
    (again,) = parse_m2(write_m2(source, edits).splitlines())
    assert again.source == source
    assert [(e.start, e.stop, e.corrections) for e in again.annotators[0]] == sorted(
        (e.start, e.stop, e.corrections) for e in edits
    )
