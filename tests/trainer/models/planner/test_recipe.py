import math

import pytest

from trainer.models.planner.knowledge import PlannerKnowledge
from trainer.models.planner.recipe import LEAST, RECIPES, STRONGEST, TUNED, practised_decay, recipe_for


def knowledge(goals, view):
    return PlannerKnowledge(view, 5, 5, goals=goals)


def knowing(goals, view="opened"):
    return recipe_for(knowledge(goals, view))


@pytest.mark.parametrize("view", list(RECIPES))
@pytest.mark.parametrize("goals", [0, TUNED])  # 0: not counted
def test_the_recipe_is_as_found_for_as_much_data(goals, view):
    assert knowing(goals, view) == RECIPES[view]


@pytest.mark.parametrize("view", list(RECIPES))
@pytest.mark.parametrize("times", [9, 1 / 4])
def test_more_goals_take_more_updates_and_less_decay(view, times):
    usual, other = RECIPES[view], knowing(round(times * TUNED), view)
    for one, two in zip(usual.stages, other.stages, strict=True):
        assert two.updates == round(one.updates * math.sqrt(times))
        assert two.weight_decay == pytest.approx(one.weight_decay / times)
        assert (two.part, two.learning_rate, two.batch) == (one.part, one.learning_rate, one.batch)


def test_data_smaller_than_was_measured_is_treated_as_the_least_that_was():
    assert knowing(10) == knowing(round(LEAST * TUNED))


def test_decay_has_a_limit():
    decays = {view: [stage.weight_decay for stage in knowing(10, view).stages] for view in RECIPES}
    assert decays["scripts"] == [STRONGEST] and max(decays["opened"]) == pytest.approx(10 * 1.0) == STRONGEST


@pytest.mark.parametrize(
    ("view", "goals", "share"),
    [
        ("scripts", TUNED // 4, 0.5),
        ("scripts", TUNED // 10, 2 * math.sqrt(10) / STRONGEST),  # 6.3 instead of 10, where 20 is too much
        ("scripts", 4 * TUNED, 1),
        ("scripts", 0, 1),
        ("opened", TUNED // 4, 1),
    ],
)
def test_scripts_of_little_data_practise_with_less_decay(view, goals, share):
    assert practised_decay(knowledge(goals, view)) == pytest.approx(share)
