import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from tests.trainer.reference import write_dataset
from trainer.models.planner.networks import Places, Reader, Shape
from trainer.models.planner.spelling import PLACES, Spelled, SpelledScores, Spelling, parts_of, share_characters

WORDS = st.lists(st.text("abc01", min_size=1, max_size=5), min_size=1, max_size=20, unique=True)


def by_hand(words, own):
    """The parts of every id as a set, from the strings alone."""
    parts = [{("special", 0)}]
    for identity, word in enumerate(words, start=1):
        parts.append({(len(word) - at, word[at]) for at in range(len(word))})
        parts[-1] |= {("own", identity)} if identity in own else set()
    return [*parts, {("special", 1)}, {("special", 2)}]


@given(WORDS, st.sets(st.integers(1, 20)))
def test_tokens_have_a_part_in_common_for_each_character_at_the_same_place_from_the_right(words, own):
    spelling, expected = Spelling(words, own), by_hand(words, own)
    rows = [{part for part in row if part < spelling.parts} for row in spelling.table.tolist()]
    assert spelling.parts == len(set.union(*expected))
    for one, first in zip(rows, expected, strict=True):
        for two, second in zip(rows, expected, strict=True):
            assert len(one & two) == len(first & second)
    assert len({frozenset(row) for row in rows}) == len(words) + 3  # no two tokens are the same to a network


@given(WORDS)
def test_a_row_is_the_sum_of_its_parts_and_so_is_a_score(words):
    torch.manual_seed(0)
    spelling = Spelling(words, {1})
    embed, scores = Spelled(spelling, 4), SpelledScores(4, spelling)
    hidden = torch.rand(3, 4)
    found = scores(hidden)
    worth = hidden @ scores.rows.parts.T  # (b, parts)
    for token, row in enumerate(spelling.table.tolist()):
        parts = [part for part in row if part < spelling.parts]
        assert torch.allclose(embed(torch.tensor([token]))[0], embed.parts[parts].sum(0), atol=1e-5)
        assert torch.allclose(found[:, token], worth[:, parts].sum(1) + scores.bias[token], atol=1e-5)


def test_characters_far_to_the_left_share_a_place():
    assert len({place for place, _ in parts_of("x" * 100)}) == PLACES


@pytest.mark.parametrize(("highest", "shared"), [(10, False), (20, False), (50, True), (100, True), (200, True)])
def test_numbers_share_their_digits_where_there_are_many(highest, shared):
    assert share_characters([*"+-*/=()", *map(str, range(highest + 1))]) == shared


def test_single_characters_share_nothing():
    assert not share_characters("abcdefghijklmnopqrstuvwxyz")


@pytest.mark.parametrize("kind", ["plain", "residual", "normed"])
def test_a_row_does_not_depend_on_the_others(kind):
    torch.manual_seed(0)
    spelling = Spelling(["1", "2", "12", "21", "11", "22"], {2})
    reader = Reader(spelling, 8, spelling, Shape(kind, layers=3, hidden=16, width=8)).eval()
    views = torch.randint(9, (40, 8))  # more rows than tokens: by the table
    assert torch.allclose(reader(views)[:3], reader(views[:3]), atol=1e-5)
    places = Places(spelling, 4, 3, Shape("residual", layers=2, hidden=16, embedding=4)).eval()
    lengths = torch.full((40,), 8)
    assert torch.allclose(places(views, lengths)[:3], places(views[:3], lengths[:3]), atol=1e-5)


@pytest.mark.parametrize("spelled", [True, False])
def test_a_number_that_was_never_seen_is_read_and_written_by_its_digits(spelled):
    numbers = [str(number) for number in range(10, 100)]
    vocabulary = Spelling(numbers) if spelled else len(numbers) + 3
    held_out = torch.arange(1, 91, 7)
    seen = torch.tensor([token for token in range(1, 91) if token not in held_out])
    torch.manual_seed(0)
    reader = Reader(vocabulary, 1, vocabulary, Shape("normed", layers=1, hidden=64, width=32))
    optimizer = torch.optim.AdamW(reader.parameters(), 1e-2)
    for _ in range(150):  # to copy the token
        loss = functional.cross_entropy(reader(seen[:, None]), seen)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    right = int((reader(held_out[:, None]).argmax(1) == held_out).sum())
    assert right == (len(held_out) if spelled else 0)


def data_of(folder, repeated):
    pairs = [((str(number), "+"), (str(number), "1")) for number in range(10, 100)]
    pairs += [(("50", "+", str(number)), ("50", "1")) for number in range(10, 10 + repeated)]
    return write_dataset(folder, "edit", {"train": pairs}, arithmetic=False)


def test_how_tokens_are_read_follows_from_the_data(tmp_path, bench):
    few, many = bench(data_of(tmp_path / "few", 20)), bench(data_of(tmp_path / "many", 60))
    assert few.knowledge.tokens == many.knowledge.tokens == "characters"
    for opened in (few, many):
        names, states = ("", *opened.contract.state_tokens), opened.texts(opened.steps.states)
        often = {name for name in names[1:] if sum(state.count(name) for state in states) >= 100}
        assert {names[token] for token in opened.knowledge.own} == often
    assert "50" not in {few.contract.state_tokens[token - 1] for token in few.knowledge.own}
    assert "50" in {many.contract.state_tokens[token - 1] for token in many.knowledge.own}


@pytest.mark.parametrize(("known", "tokens"), [(4, "whole"), (5, "characters")])
@pytest.mark.parametrize("train_on", ["expert", "augmented"])
def test_tokens_that_goals_have_often_stay_whole(tmp_path, bench, monkeypatch, known, tokens, train_on):
    monkeypatch.setattr("trainer.models.planner.knowledge.KNOWN", known)
    numbers = [str(number) for number in range(10, 100)]
    pairs = [((one, "+"), (one, two)) for shift in (1, 2) for one, two in zip(numbers, numbers[shift:], strict=False)]
    data = write_dataset(tmp_path, "edit", {"train": pairs}, arithmetic=False)
    assert bench(data, train_on=train_on).knowledge.tokens == tokens  # most numbers stand in four goals


def test_it_can_be_asked_for(tmp_path, bench, datasets):
    data = data_of(tmp_path, 0)
    assert bench(data, tokens="whole").knowledge.tokens == "whole"
    assert bench(datasets["edit"], tokens="characters").knowledge.tokens == "characters"
    assert "tokens through their characters" in bench(data).sampler().about


def test_the_recipe_follows_from_the_view_and_from_how_tokens_are_read(datasets, bench):
    whole, spelled = (bench(datasets["span"], tokens=name) for name in ("whole", "characters"))
    assert (whole.config.updates, spelled.config.updates) == (1486, 695)  # of fewer goals than a tenth of 7,000
    assert [stage.part for stage in spelled.model.recipe.stages] == ["plan", "token"]
    edits = [bench(datasets["edit"], tokens=name).model.recipe for name in ("whole", "characters")]
    assert edits[0] == edits[1]
