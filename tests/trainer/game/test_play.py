import json

import pytest
import torch

from tests.trainer.game.test_environment import contract
from tests.trainer.reference import SLOTS, judge, pairs_of, write_dataset
from trainer.core.records import convert
from trainer.data.contract import POSITIONS, SPECIAL, OpenContract
from trainer.data.dataset import Dataset
from trainer.data.demonstrations import Demonstrations
from trainer.data.encode import load_pairs
from trainer.game.environment import Environment, Verdict
from trainer.game.outcomes import Outcomes, OutcomesRecord, expert_actions
from trainer.game.play import Decision, act, ending, pack, play, score, unpack
from trainer.game.rules import rules_of
from trainer.models.policy import Policy
from trainer.models.zoo import build_model, open_demonstrations
from trainer.training.presets import preset


def plain_loop(policy, contract, sources):
    """Recurrent inference as the paper has it: one row at a time, padded to the longest, all steps taken."""
    results = []
    for source in sources:
        state, steps = source, 0
        for _ in range(contract.max_steps):
            ids = torch.tensor([[contract.state_ids[token] for token in state]], dtype=torch.long)
            padded = torch.nn.functional.pad(ids, (0, contract.max_state - len(state)))
            best = policy(padded, torch.tensor([len(state)])).argmax(-1)[0].tolist()
            action = [(*contract.actions, "BOS")[token] for token in best]
            if "BOS" in action:
                verdict = "wrong-kind"
            else:
                state, verdict = judge(contract.slots, contract.writable, contract.max_state, state, action)
            steps += 1
            if verdict != "applied":
                break
        results.append((state, steps, "limit" if verdict == "applied" else verdict))
    return results


@pytest.mark.parametrize("design", SLOTS)
def test_the_batched_game_is_the_plain_game(datasets, design):
    dataset = Dataset(datasets[design])
    contract = open_demonstrations(dataset, preset("cpu")).contract
    pairs = load_pairs(dataset, "train", contract)
    names = ("", *contract.state_tokens)
    seen = set()
    for seed in range(3):  # three unschooled agents
        torch.manual_seed(seed)
        policy = build_model(preset("cpu", model="linear", width=8, layers=1), contract).eval()
        with torch.no_grad():
            policy.flatten.project.weight *= 40
        with torch.inference_mode():
            expected = plain_loop(policy, contract, pairs.sources)
        played = play(policy, Environment(contract), pairs.states, pairs.lengths, max_steps=contract.max_steps)
        found = [
            (tuple(names[token] for token in state[:length]), steps, ending(verdict))
            for state, length, steps, verdict in zip(
                played.states.tolist(),
                played.lengths.tolist(),
                played.steps.tolist(),
                played.verdicts.tolist(),
                strict=True,
            )
        ]
        assert found == expected
        seen |= {why for *_, why in found}
    assert len(seen) > 1


class Script(Policy):
    """An agent that plays the expert's demonstrations by heart."""

    def __init__(self, contract, steps):
        super().__init__()
        self.size = len(contract.actions)
        batch = steps.batch(torch.arange(len(steps)))
        self.book = {
            tuple(state[:length]): action
            for state, length, action in zip(
                batch.states.tolist(), batch.lengths.tolist(), batch.actions.tolist(), strict=True
            )
        }
        self.asked = []

    def forward(self, states, lengths):
        self.asked.append((states.shape[1], lengths.tolist()))
        actions = [self.book[tuple(s[:n])] for s, n in zip(states.tolist(), lengths.tolist(), strict=True)]
        return torch.nn.functional.one_hot(torch.tensor(actions), self.size).float()


def test_a_perfect_agent_scores_full_and_is_never_asked_in_vain(tmp_path):
    pairs = list({source: (source, target) for source, target in pairs_of("edit", 80)}.values())
    dataset = Dataset(write_dataset(tmp_path, "edit", {"train": pairs, "test": [*pairs, (("x",), ("7",))]}))
    demonstrations = open_demonstrations(dataset, preset("cpu", train_on="expert"))
    contract, steps = demonstrations.contract, demonstrations.steps
    script = Script(contract, steps)
    conflicts = len(steps) - len(script.book)
    scores = score(script, Environment(contract), contract, load_pairs(dataset, "test", contract), slice(None))
    assert conflicts == 0 and scores.sequence == len(pairs) == scores.ended["done"] and scores.unreadable == 1
    assert scores.steps == len(steps.taken) == sum(len(lengths) for _, lengths in script.asked)
    assert all(max(lengths) == width for width, lengths in script.asked)  # padded to the longest only
    again = unpack(pack(scores), contract.arithmetic)
    assert again.to_json() == scores.to_json()


def watched(folder, test, **sizes):
    """The outcomes of an agent that knows the training pairs by heart, on a test split."""
    pairs = list({source: (source, target) for source, target in pairs_of("edit", 20)}.values())
    dataset = Dataset(write_dataset(folder, "edit", {"train": pairs, "test": [*pairs, *test]}))
    demonstrations = open_demonstrations(dataset, preset("cpu", train_on="expert"))
    contract = demonstrations.contract
    loaded = load_pairs(dataset, "test", contract)
    outcomes = Outcomes(contract, loaded, expert_actions(dataset, "test", contract, loaded))
    part = slice(sizes.get("limit"))
    score(Script(contract, demonstrations.steps), Environment(contract), contract, loaded, part, outcomes)
    return len(pairs), outcomes


def test_every_row_has_an_outcome_whether_it_was_played_or_not(tmp_path):
    known, outcomes = watched(tmp_path / "a", [(("x",), ("7",)), (("y",), ("7",))])
    assert [row.failure for row in outcomes.rows] == [""] * known + ["unreadable"] * 2
    assert outcomes.rows[-1].source == "y" and outcomes.rows[-1].expert_steps == 2
    known, outcomes = watched(tmp_path / "b", [(("x",), ("7",))], limit=3)
    assert len(outcomes.rows) == 3


def test_outcomes_stay_small_enough_to_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.game.outcomes.MAX_ROWS", 500)
    monkeypatch.setattr("trainer.game.outcomes.MAX_GAME", 100)
    known, outcomes = watched(tmp_path, [])
    assert 0 < len(outcomes.rows) < known and not outcomes.games
    said = json.loads(outcomes.to_json())
    assert len(json.dumps(said["rows"], separators=(",", ":"))) <= 502
    assert convert(said, OutcomesRecord, "outcomes").rows == outcomes.rows


def test_rows_come_back_in_their_order():
    class Echo(Policy):
        def forward(self, states, lengths):
            return torch.nn.functional.one_hot(states[:, :1] * 10 + lengths[:, None], 60).float()

    lengths = torch.tensor([3, 1, 2, 3, 1, 2])
    states = torch.arange(6)[:, None].expand(6, 3)
    assert act(Echo(), states, lengths).actions[:, 0, 0].tolist() == [3, 11, 22, 33, 41, 52]


def test_refusals_are_endings():
    assert [ending(v) for v in (Verdict.APPLIED, Verdict.DONE, Verdict.TOO_LONG)] == [
        "limit",
        "done",
        "too-long",
    ]


class Several(Policy):
    """Deletes every token but the first two, as many a round as it may, then says DONE."""

    group = 2  # games of different lengths are decided apart, and some have more edits than others

    def decide(self, states, lengths, edits=1):
        count = (lengths - 2).clamp(0, edits)
        places = POSITIONS + (lengths - 1)[:, None] - torch.arange(max(int(count.max()), 1))  # from right to left
        delete = torch.full_like(places, SPECIAL.index("DELETE"))
        actions = torch.stack((delete, places, places), -1)  # (b, k, 3)
        actions[count == 0] = SPECIAL.index("DONE")
        return Decision(actions, torch.ones(actions.shape), count.clamp(min=1))


@pytest.mark.parametrize("edits", [1, 3, 50])
def test_a_round_of_several_edits_is_as_many_single_ones(tmp_path, edits):
    dataset = Dataset(write_dataset(tmp_path, "edit", {"train": pairs_of("edit", 20)}))
    contract = Demonstrations.open(dataset, "expert", contract_type=OpenContract).contract
    sizes = [0, 2, 3, 9, 40]  # longer than any state of the data
    states = torch.zeros(len(sizes), max(sizes), dtype=torch.long)
    for row, size in enumerate(sizes):
        states[row, :size] = torch.arange(1, size + 1)
    seen = []
    rounds = 1 + -(-38 // edits)
    played = play(
        Several(), rules_of(contract), states, torch.tensor(sizes), max_steps=rounds, edits=edits, watch=seen.append
    )
    assert played.lengths.tolist() == [min(size, 2) for size in sizes]
    assert played.steps.tolist() == [max(size - 2, 0) + 1 for size in sizes]
    assert {ending(verdict) for verdict in played.verdicts.tolist()} == {"done"}
    assert all((step.lengths > 0).tolist() == step.states[:, 0].bool().tolist() for step in seen)
    assert [int(step.lengths[-1]) for step in seen] == [*range(40, 1, -1)]  # each move shows the state it was played on


@pytest.mark.parametrize("period", [1, 2, 3])
def test_a_game_that_goes_in_circles_is_over(period):
    """Texts of any length have no other limit that one would wait for; the paper's game takes all of its steps."""
    words = contract("edit", OpenContract)

    class Turning(Policy):
        """Writes words in turn: after some states it is back at the first one."""

        def decide(self, states, lengths, edits=1):
            after = states[:, 0] % period + 1
            action = torch.stack((torch.full_like(after, SPECIAL.index("REPLACE")), torch.full_like(after, POSITIONS)))
            return Decision.drawn(torch.stack((*action, len(SPECIAL) - 1 + after), 1))

    states, lengths = torch.tensor([[1, 2, 3], [4, 4, 0]]), torch.tensor([3, 2])  # the second joins a circle later
    rules = rules_of(words)
    found = play(Turning(), rules, states, lengths, max_steps=1000, circles=False)
    met = period + 1 if 4 % period + 1 != 4 else period
    assert found.steps.tolist() == [period, met]
    assert {ending(verdict) for verdict in found.verdicts.tolist()} == {"limit"}
    assert found.states[0, :3].tolist() == [1, 2, 3]
    assert play(Turning(), rules, states, lengths, max_steps=50).steps.tolist() == [50, 50]
