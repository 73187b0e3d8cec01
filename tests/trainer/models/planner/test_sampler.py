import itertools
from dataclasses import replace

import pytest
import torch

from tests.trainer.reference import levenshtein, write_dataset
from trainer.core.device import Runtime
from trainer.data.batches import InvalidPosition
from trainer.game.accuracy import value
from trainer.models.planner.edit_classes import END


def opened_by_hand(source, target):
    """Every plan and filling of a pair by brute force: which edits are made, and how many of the rest are opened."""
    edits = levenshtein(source, target)
    plans, fillings = set(), set()
    for made in itertools.product((False, True), repeat=len(edits)):
        left = [index for index, done in enumerate(made) if not done]
        for count in range(len(left) + 1):
            state, shift, place, answer = list(source), 0, "END", None
            for index, (start, stop, new) in enumerate(edits):
                opened = index in left[:count]
                if count < len(left) and index == left[count]:
                    kind = "INSERT" if start == stop else "REPLACE" if new else "DELETE"
                    place = (kind, start + shift)
                if made[index] or opened:
                    state[start + shift : stop + shift] = ("MASK",) * len(new) if opened else new
                    shift += len(new) - (stop - start)
                    answer = new[0] if opened and new and answer is None else answer
            plans.add((tuple(state), place))
            if place == "END" and answer is not None:
                fillings.add((tuple(state), answer))
    return plans, fillings


def test_openings_are_what_the_edits_say(tmp_path, bench):
    pairs = [(("a", "b"), ("b", "c", "d")), (("x", "y", "z"), ("x", "q")), (("k",), ("k",))]
    opened = bench(write_dataset(tmp_path, "edit", {"train": pairs}, arithmetic=False))
    openings, moves, names = opened.sampler().openings, opened.model.edits, ("", *opened.contract.state_tokens)
    plans, fillings = set(), set()
    for source, target in pairs:
        both = opened_by_hand(source, target)
        plans |= both[0]
        fillings |= both[1]
    found = set()
    for state, answer in zip(opened.texts(openings.plans.states), openings.plans.answers.tolist(), strict=True):
        kind = moves.operations[(answer - 1) % moves.kinds]
        found.add((state, "END" if answer == END else (kind, (answer - 1) // moves.kinds)))
    assert found == plans
    answers = [names[token] for token in openings.fillings.answers.tolist()]
    assert set(zip(opened.texts(openings.fillings.states), answers, strict=True)) == fillings
    assert set(opened.texts(openings.goals.states)) == {target for _, target in pairs}


def test_masked_goals_ask_for_what_they_hide(datasets, bench):
    opened = bench(datasets["edit"], auxiliary=1.0)
    sampler = opened.sampler()
    goals = set(opened.texts(sampler.openings.goals.states))
    states, lengths, answers = sampler.masked_rows(64, torch.Generator().manual_seed(1))
    names = ("", *opened.contract.state_tokens)
    hidden = 0
    for state, length, answer in zip(opened.texts(states), lengths.tolist(), answers[:, 0].tolist(), strict=True):
        assert state.count("QUERY") == 1 and len(state) == length
        hidden += state.count("MASK")
        asked = [names[answer] if token == "QUERY" else token for token in state]
        assert any(
            len(goal) == length and all(one in (two, "MASK") for one, two in zip(asked, goal, strict=True))
            for goal in goals
        )
    assert hidden  # some rows hide several


def test_a_span_is_all_that_its_value_is_learned_from(datasets, bench):
    opened = bench(datasets["span"])
    rows = opened.sampler().tokens
    names = ("", *opened.contract.state_tokens)
    for span, answer in zip(opened.texts(rows.states), rows.answers.tolist(), strict=True):
        assert span[0] == "(" and span[-1] == ")"
        assert value(span) == int(names[answer])
    assert len({tuple(row) for row in rows.states.tolist()}) == len(rows)


@pytest.mark.parametrize("design", ["insert", "edit", "span"])
def test_ranks_share_a_lesson_without_overlap(datasets, bench, design):
    opened = bench(datasets[design], updates=40)
    alone = next(iter(opened.sampler().updates(0)))
    parts = [next(iter(opened.sampler(Runtime(torch.device("cpu"), rank, 2)).updates(0))) for rank in range(2)]
    for name in ("states", "actions"):
        whole = getattr(alone.batch, name)
        assert torch.equal(whole[0::2], getattr(parts[0].batch, name))
        assert torch.equal(whole[1::2], getattr(parts[1].batch, name))
    assert alone.share == 1 and sum(part.share for part in parts) == 2


def test_stages_share_the_updates(datasets, bench):
    opened = bench(datasets["edit"], updates=100)
    sampler = opened.sampler()
    assert sampler.shares == (80, 20) and sampler.total == 100
    parts = [update.batch.part for update in sampler.updates(0)]
    assert parts == ["token"] * 80 + ["plan"] * 20
    assert not sampler.ready(80) and sampler.ready(81)


@pytest.mark.parametrize(("window", "index"), [(0, 41), (1, 0)])
def test_a_position_that_the_epoch_does_not_have_is_refused(datasets, bench, window, index):
    sampler = bench(datasets["edit"], updates=40).sampler()
    assert list(sampler.updates(0, 0, 40)) == []  # after the last update
    with pytest.raises(InvalidPosition, match=f"epoch 0 has no update {index} in window {window}"):
        next(sampler.updates(0, window, index))
    with pytest.raises(InvalidPosition, match="epoch 1 has no update 0"):
        next(sampler.updates(1))


@pytest.mark.parametrize("design, view", [("insert", "scripts"), ("insert", "opened"), ("edit", "opened")])
def test_where_games_win_all_right_answers_to_a_state_are_learned_at_once(tmp_path, bench, design, view):
    pairs = [(("x",), ("x", "a")), (("x",), ("x", "b")), (("y",), ("y", "b")), (("z",), ("z",))]
    opened = bench(write_dataset(tmp_path, design, {"train": pairs}, arithmetic=False), view=view, auxiliary=0.0)
    before = opened.sampler()
    opened.data.__dict__["steps"] = replace(opened.steps, games=1)
    sampler = opened.sampler()
    name = {"scripts": "tokens", "opened": "fillings"}[view]
    one, all_of = (getattr(getattr(each, "openings", each), name) for each in (before, sampler))
    told = dict(zip(opened.texts(all_of.states), all_of.answers.tolist(), strict=True))
    for state, right in told.items():
        each = zip(opened.texts(one.states), one.answers.tolist(), strict=True)
        assert [answer for answer in right if answer >= 0] == sorted({answer for same, answer in each if same == state})
    assert sorted(map(len, told.values())) == [2] * len(told) and sum(right[1] >= 0 for right in told.values()) == 1
    batch = sampler.token_rows(sampler.stages[0], torch.Generator().manual_seed(0))
    scores = opened.model(*batch.inputs).detach()
    losses, right = opened.model.judge(scores, batch)
    for row, answers in enumerate(batch.actions.tolist()):
        alone = [
            replace(batch, actions=torch.full_like(batch.actions[:, :1], answer)) for answer in answers if answer >= 0
        ]
        each = [opened.model.judge(scores, only) for only in alone]
        assert losses[row] == pytest.approx(torch.stack([one[row] for one, _ in each]).mean().item(), rel=1e-5)
        assert right[row] == any(hit[row] for _, hit in each)
