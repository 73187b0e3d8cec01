import pytest

from trainer.models.planner.knowledge import PlannerKnowledge
from trainer.models.planner.recipe import RECIPES, TUNED, recipe_for


def knowing(goals, view="opened"):
    return recipe_for(PlannerKnowledge(view, 5, 5, goals=goals))


@pytest.mark.parametrize("view", list(RECIPES))
@pytest.mark.parametrize("goals", [0, 700, TUNED])
def test_the_recipe_is_as_found_for_as_much_data_or_less(goals, view):
    assert knowing(goals, view) == RECIPES[view]


@pytest.mark.parametrize("view", list(RECIPES))
def test_more_goals_take_more_updates_and_less_decay(view):
    usual, more = RECIPES[view], knowing(9 * TUNED, view)
    assert more.updates == 3 * usual.updates
    for one, two in zip(usual.stages, more.stages, strict=True):
        assert two.weight_decay == pytest.approx(one.weight_decay / 9)
        assert (two.part, two.learning_rate, two.batch) == (one.part, one.learning_rate, one.batch)
