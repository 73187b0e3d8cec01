import json

import pytest

from tests.trainer.reference import pairs_of, trajectory, write_dataset
from trainer.core.errors import BadData, InvalidConfig
from trainer.core.records import plain
from trainer.models.planner.knowledge import PlannerKnowledge
from trainer.models.planner.model import Planner

VIEWS = {"insert": "scripts", "edit": "opened", "span": "span", "span-2": "span", "span-3": "span"}


@pytest.mark.parametrize("design", VIEWS)
def test_the_view_follows_from_the_slots(datasets, bench, design):
    forced = {"view": "scripts"} if design == "insert" else {}  # a small dataset has too many scripts for its size
    assert bench(datasets[design], **forced).knowledge.view == VIEWS[design]


def test_scripts_need_ten_demonstrations_each(tmp_path, bench):
    pairs = [((str(number), "1"), (str(number), "+", "1")) for number in range(10)]
    assert bench(
        write_dataset(tmp_path / "a", "insert", {"train": pairs}, arithmetic=False), tokens="whole"
    ).knowledge == PlannerKnowledge("scripts", 2, 1, 1, (1,), (((1, 1),),), goals=10)
    assert (
        bench(write_dataset(tmp_path / "b", "insert", {"train": pairs[1:]}, arithmetic=False)).knowledge.view
        == "opened"
    )


@pytest.mark.parametrize(("length", "window"), [(24, 0), (25, 4)])
def test_long_states_are_also_read_around_the_place_that_is_asked_for(tmp_path, bench, length, window):
    words = tuple("abcdefghijklmnopqrstuvwxyz"[:length])
    pairs = [(words[:-1], words), (words[1:], words)]
    opened = bench(write_dataset(tmp_path, "edit", {"train": pairs}, arithmetic=False), updates=3)
    assert opened.knowledge.window == window
    updates = list(opened.sampler().updates(0))
    assert updates[0].batch.states.shape[1] == 2 * (length + window)
    assert opened.model.scores(opened.steps.states.long(), opened.steps.lengths.long()).isfinite().all()


def test_scripts_need_tokens_that_no_source_has(tmp_path, bench):
    pairs = [((str(number), "1"), (str(number), "+", "1")) for number in range(60)]
    pairs += [(("+", "1"), ("+", "+", "1"))] * 10
    knowledge = bench(write_dataset(tmp_path, "insert", {"train": pairs}, arithmetic=False)).knowledge
    # The pairs with an operator in the source cannot be told from states on the way: they teach no script.
    assert knowledge.scripts == (((1, 1),),)


def test_the_scripts_are_the_trajectories_in_the_positions_of_the_source(datasets, bench):
    opened = bench(datasets["insert"], view="scripts")
    names = ("", *opened.contract.state_tokens)
    found = {tuple((position, names[token]) for position, token in script) for script in opened.knowledge.scripts}
    expected = set()
    for source, target in pairs_of("insert", 40):
        actions = [action for _, action in trajectory("insert", source, target)[:-1]]
        expected.add(tuple((int(place[4:]) - moved, token) for moved, (place, token) in enumerate(actions)))
    assert found & expected and all(len(script) <= opened.contract.max_steps for script in found)


@pytest.mark.parametrize(
    ("design", "view"),
    [("edit", "scripts"), ("edit", "span"), ("insert", "span"), ("span", "opened"), ("span-2", "scripts")],
)
def test_a_view_that_the_slots_do_not_allow_is_refused(datasets, bench, design, view):
    with pytest.raises(InvalidConfig, match=f"field view: {view} does not fit these demonstrations"):
        bench(datasets[design], view=view)


def test_knowledge_survives_json(datasets, bench):
    for design in VIEWS:
        opened = bench(datasets[design])
        values = json.loads(json.dumps(plain(opened.knowledge)))
        assert Planner.read_knowledge(values, opened.contract, "config.json") == opened.knowledge


@pytest.mark.parametrize(
    "change",
    [
        {"view": "all"}, {"view": "span"}, {"reach": 0}, {"reach": 1 << 40}, {"plan_reach": "5"}, {"span": 1 << 30},
        {"written": [0]}, {"written": [10**12]}, {"written": 5}, {"scripts": "x"}, {"scripts": [[[1]]]},
        {"scripts": []}, {"scripts": [[[1, 1]]] * (1 << 15)}, {"scripts": [[[-1, 1]]]}, {"scripts": [[[1, 10**9]]]},
        {"scripts": [[[10**9, 1]]]}, {"scripts": [[[0, 1]] * 10_000]}, {"scripts": [[[True, 1]]]},
        {"tokens": "letters"}, {"own": [0]}, {"own": [10**12]}, {"own": "x"},
    ],
)  # fmt: skip
def test_hostile_knowledge_is_refused(datasets, bench, change):
    opened = bench(datasets["insert"], view="scripts")
    with pytest.raises(BadData, match=r"^config\.json"):
        Planner.read_knowledge(plain(opened.knowledge) | change, opened.contract, "config.json")
    with pytest.raises(BadData, match="knowledge: expected object, got null"):
        Planner.read_knowledge(None, opened.contract, "config.json")
