import pytest
import torch

from tests.trainer.reference import SLOTS
from trainer.game.environment import Environment, Verdict, splice
from trainer.models.planner.edit_classes import END


@pytest.mark.parametrize("design", SLOTS)
def test_every_demonstrated_action_has_its_class_and_comes_back(datasets, bench, design):
    opened = bench(datasets[design])
    actions = opened.steps.actions.long()
    classes, tokens = opened.model.edits.classes(actions)
    assert torch.equal(opened.model.edits.actions(classes, tokens), actions)
    done = (actions == opened.contract.action_ids["DONE"]).all(1)
    assert torch.equal(classes == END, done) and done.any()


@pytest.mark.parametrize("design", SLOTS)
def test_allowed_classes_are_those_that_the_environment_executes(datasets, bench, design):
    opened = bench(datasets[design])
    moves, contract = opened.model.edits, opened.contract
    environment = Environment(contract)
    token = int(moves.writable.nonzero()[0])
    for length in {0, 1, 2, contract.max_state - 1, contract.max_state}:
        states = torch.zeros(1, contract.max_state, dtype=torch.long)
        states[0, :length] = token
        allowed = moves.allowed(torch.tensor([length]), contract.max_state + 1, contract.max_state)[0]
        classes = torch.arange(1, len(allowed))
        places = (classes - 1) // moves.kinds + ((classes - 1) % moves.kinds if moves.spans else 0)
        sayable = places <= contract.max_state  # others have no position token at all
        assert not allowed[1:][~sayable].any()
        classes = classes[sayable]
        actions = moves.actions(classes, torch.full_like(classes, token))
        count = len(classes)
        after, sizes, verdicts = environment.step(states.expand(count, -1), torch.full((count,), length), actions)
        executed = verdicts == int(Verdict.APPLIED)
        assert torch.equal(allowed[classes], executed), length
        edits = moves.splices(classes[executed], torch.full_like(classes[executed], token))
        same, same_sizes = splice(
            states.expand(len(edits.start), -1), torch.full_like(edits.start, length), edits, contract.max_state
        )
        assert torch.equal(same, after[executed]) and torch.equal(same_sizes, sizes[executed])
