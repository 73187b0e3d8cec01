import itertools

import pytest
import torch

from tests.trainer.reference import SLOTS, write_dataset
from trainer.game.environment import Environment, Verdict
from trainer.models.planner.decoding import NARROW, WIDE, Search, best_of_each, compact, decode_opened
from trainer.models.planner.edit_classes import END


def test_the_best_of_each_game():
    torch.manual_seed(0)
    games, scores = torch.randint(5, (60,)), torch.rand(60)
    kept = best_of_each(games, scores, 3).tolist()
    expected = []
    for game in range(5):
        rows = (games == game).nonzero()[:, 0].tolist()
        expected += sorted(rows, key=lambda row: -scores[row])[:3]
    assert kept == expected


def test_compacting_keeps_the_order():
    states, lengths = compact(torch.tensor([[5, 1, 6, 2, 0]]), torch.tensor([[True, False, True, False, False]]))
    assert states.tolist() == [[5, 6, 0, 0, 0]] and lengths.tolist() == [2]


def test_scripts_that_disagree_with_the_state_are_out(tmp_path, bench):
    plus = [((str(number), "1"), (str(number), "+", "1")) for number in range(30)]
    both = [((str(number), "1"), ("-", str(number), "-", "1")) for number in range(30, 60)]
    opened = bench(write_dataset(tmp_path, "insert", {"train": plus + both}, arithmetic=False), view="scripts")
    ids, model = opened.contract.state_ids, opened.model
    states = [("3", "1"), ("3", "+", "1"), ("-", "3", "1"), ("3", "-", "1"), ("-", "3", "-", "1"), ("+", "3", "1")]
    rows = torch.zeros(len(states), 4, dtype=torch.long)
    for row, state in enumerate(states):
        rows[row, : len(state)] = torch.tensor([ids[token] for token in state])
    actions = model.scores(rows, torch.tensor([len(state) for state in states])).argmax(-1)
    said = [tuple(opened.contract.actions[token] for token in action) for action in actions.tolist()]
    assert said[0] in {("POS_1", "+"), ("POS_0", "-")}
    assert said[1:] == [
        ("DONE", "DONE"),
        ("POS_2", "-"),  # the second script alone agrees, and this is what is left of it
        ("POS_0", "-"),
        ("DONE", "DONE"),
        ("DONE", "DONE"),  # no script leads here: nothing is left to do
    ]


def best_script(model, state, length):
    """The most probable script by trying all of them, with one row at a time."""
    best = (-torch.inf, END, 0)

    def grow(states, lengths, cursor, score, first, depth):
        nonlocal best
        chances = model.plan_chances(states, lengths)[0]
        finish(states, lengths, score + float(chances[END]), first)
        if depth == model.max_steps - 1:
            return
        for place in range(1, len(chances)):
            edits = model.edits.splices(torch.tensor([place]), torch.tensor([model.mask]))
            if chances[place] > -torch.inf and int(edits.start) >= cursor:
                tokens = states[0, : int(lengths)].tolist()
                writes = bool(edits.writes)
                tokens[int(edits.start) : int(edits.stop)] = [model.mask] * writes
                row = torch.tensor([tokens + [0] * (model.max_state - len(tokens))])
                grow(
                    row, torch.tensor([len(tokens)]), int(edits.start) + writes, score + float(chances[place]),
                    first or place, depth + 1,
                )  # fmt: skip

    def finish(states, lengths, score, first):
        nonlocal best
        masks = (states[0] == model.mask).nonzero()[:, 0].tolist()
        allowed = model.edits.writable.nonzero()[:, 0].tolist()
        for tokens in itertools.product(allowed, repeat=len(masks)):
            row, total = states.clone(), score
            for place, token in zip(masks, tokens, strict=True):
                row[0, place] = model.query
                total += float(model.token_chances(row, lengths)[0, token])
                row[0, place] = token
            written = tokens[0] if tokens and bool(model.edits.writes(torch.tensor([first]))) else 0
            best = max(best, (total, first, written))

    grow(state[None], torch.tensor([length]), 0, 0.0, END, 0)
    return best[1:]


def test_a_wide_beam_finds_the_most_probable_script(tmp_path, bench, monkeypatch):
    for name in ("FILL_BRANCH", "FILL_BEAM"):
        monkeypatch.setattr(f"trainer.models.planner.decoding.{name}", 10_000)
    pairs = [(("a",), ("b", "a")), (("a", "b"), ("b",)), (("b",), ("a",))]
    opened = bench(write_dataset(tmp_path, "edit", {"train": pairs}, arithmetic=False), beam=64)
    model = opened.model
    model.max_steps, model.beam, model.search = 3, 10_000, Search(cut=1e9, branch=10_000)
    for parameter in model.parameters():
        parameter.data *= 3  # sharper than fresh weights, so that scripts differ
    states, lengths = opened.steps.states.long(), opened.steps.lengths.long()
    with torch.inference_mode():
        plan = decode_opened(model, states, lengths)
        for row in range(len(states)):
            expected = best_script(model, states[row], int(lengths[row]))
            assert (int(plan.classes[row]), int(plan.tokens[row])) == expected


def test_long_states_get_a_narrow_search(tmp_path, datasets, bench):
    assert bench(datasets["edit"]).model.search == WIDE
    text = tuple("abcdefghijklmnopqrstuvwxy")
    long = write_dataset(tmp_path, "edit", {"train": [(text, text[1:])]}, arithmetic=False)
    assert bench(long).model.search == NARROW


@pytest.mark.parametrize("beam", [1, 8])
@pytest.mark.parametrize("design", SLOTS)
def test_decisions_do_not_depend_on_padding_or_on_the_other_games(datasets, bench, design, beam):
    opened = bench(datasets[design], beam=beam)
    states, lengths = opened.steps.states[:40].long(), opened.steps.lengths[:40].long()
    together = opened.model.scores(states, lengths)
    assert together.shape == (40, opened.contract.action_length, len(opened.contract.actions))
    assert torch.allclose(together.exp().sum(-1), torch.ones(40, together.shape[1]), atol=1e-5)
    for row in (0, 7, 39):
        length = int(lengths[row])
        alone = opened.model.scores(states[row : row + 1, : max(length, 1)], lengths[row : row + 1])
        assert torch.allclose(alone[0], together[row], atol=1e-4)


@pytest.mark.parametrize("design", SLOTS)
def test_no_decision_is_refused(datasets, bench, design):
    opened = bench(datasets[design])
    environment = Environment(opened.contract)
    states, lengths = opened.steps.states.long(), opened.steps.lengths.long()
    verdicts = environment.step(states, lengths, opened.model.scores(states, lengths).argmax(-1))[2]
    assert set(verdicts.tolist()) <= {int(Verdict.APPLIED), int(Verdict.DONE)}


def test_an_empty_state_can_be_edited(tmp_path, bench):
    pairs = {"train": [((), ("a",)), (("a",), ())]}
    opened = bench(write_dataset(tmp_path, "edit", pairs, arithmetic=False))
    assert torch.isfinite(opened.model.scores(torch.zeros(1, 1, dtype=torch.long), torch.tensor([0]))).all()
