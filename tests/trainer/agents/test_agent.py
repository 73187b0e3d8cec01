"""Games as a person sees them."""

import pytest

from tests.trainer.reference import small_dataset
from trainer.agents.agent import Agent, Game
from trainer.core.progress import Reporter
from trainer.game.moves import Move
from trainer.training.fit import train_run
from trainer.training.presets import preset


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    """An unschooled agent for each kind of action."""
    found, root = {}, tmp_path_factory.mktemp("agents")
    for design, model in (("insert", "ar"), ("edit", "ar"), ("span", "ar"), ("edit", "tagging")):
        data = small_dataset(root / f"{design}-{model}-data", design, tags=True)
        config = preset("cpu", model=model, width=8, layers=1, updates=1)
        train_run(data, config, root / f"{design}-{model}", device="cpu", reporter=Reporter(quiet=True))
        found[design, model] = Agent.from_pretrained(root / f"{design}-{model}")
    return found


MARKED = [
    ("insert", "ar", "3 6", ("POS_1", "+"), "3 + 6", "3 [+] 6"),
    ("insert", "ar", "3 6", ("POS_2", "+"), "3 6 +", "3 6 [+]"),
    ("edit", "ar", "3 6", ("DELETE", "POS_0", "POS_0"), "6", "[] 6"),
    ("edit", "ar", "3 6", ("REPLACE", "POS_1", "7"), "3 7", "3 [7]"),
    ("edit", "ar", "3 6", ("INSERT", "POS_0", "7"), "7 3 6", "[7] 3 6"),
    ("span", "ar", "( 5 - 1 ) = 4", ("POS_0", "POS_4", "4"), "4 = 4", "[4] = 4"),
    ("edit", "tagging", "3 6", ("INSERT_7", "DELETE", "KEEP"), "7 6", "7 6"),  # many places at once
]


@pytest.mark.parametrize(("design", "model", "source", "action", "after", "shown"), MARKED)
def test_the_change_is_in_brackets(agents, design, model, source, action, after, shown):
    agent = agents[design, model]
    edit = Move(tuple(source.split()), action, (1.0,) * len(action), "applied")
    done = Move(tuple(after.split()), ("DONE",), (1.0,), "done")
    assert agent.marked(Game(source, after, (edit, done), "done"), 0) == shown
    assert agent.marked(Game(source, after, (edit,), "limit"), 0) == shown  # the last step of a game


def test_an_agent_knows_its_own_data_wherever_it_lies(agents, tmp_path):
    agent = agents["insert", "ar"]
    moved = small_dataset(tmp_path / "moved", "insert", tags=True)
    other = small_dataset(tmp_path / "other", "insert", held_out=8)
    assert agent.evaluate(moved)["own"] is True and agent.evaluate(other)["own"] is False
