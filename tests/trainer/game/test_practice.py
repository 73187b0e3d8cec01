from __future__ import annotations

import torch

from tests.trainer.game.test_environment import contract
from trainer.core.description import Goal
from trainer.data.sources import Sources
from trainer.game.environment import Environment
from trainer.game.play import Decision
from trainer.game.practice import Games, distinct, practise
from trainer.models.policy import Policy


def games_of(*told):
    """Games as lists of states of one token; the last state is said twice, by the game and by DONE."""
    rows = [state for game in told for state in game]
    starts = torch.tensor([0, *(len(game) for game in told)]).cumsum(0)
    states = torch.tensor(rows, dtype=torch.int32)[:, None]
    return Games(starts, states, torch.ones(len(rows), dtype=torch.long), states)


def told(games):
    return [games.states[a:b, 0].tolist() for a, b in zip(games.starts[:-1], games.starts[1:], strict=True)]


def test_each_distinct_end_is_kept_once_by_its_shortest_game():
    games = games_of([1, 2, 3], [1, 3], [1, 4], [2, 3], [1, 5, 3])
    assert sorted(told(distinct(games))) == [[1, 3], [1, 4], [2, 3]]


def test_agreed_ends_are_those_of_most_games():
    games = games_of([1, 2, 3], [1, 4], [1, 3], [2, 3], [2, 4], [2, 4])
    assert sorted(told(distinct(games, agreed=True))) == [[1, 3], [2, 4]]


def test_games_can_be_picked_and_joined():
    games = games_of([1, 2, 3], [4], [5, 6])
    assert told(games.pick(torch.tensor([2, 0]))) == [[5, 6], [1, 2, 3]]
    assert told(Games.join([games.pick(torch.tensor([1])), games])) == [[4], [1, 2, 3], [4], [5, 6]]


class Told(Policy):
    """An agent that plays what it was told: the next action of each game that is live."""

    def __init__(self, rules, games):
        super().__init__()
        self.ids, self.games, self.round = rules.action_ids, games, 0

    def sample(self, states, lengths, draw):
        live = [game[self.round].split() for game in self.games if self.round < len(game)]
        self.round += 1
        return Decision.drawn(torch.tensor([[self.ids[token] for token in action] for action in live]))


def test_a_game_with_an_action_that_changes_nothing_does_not_win():
    rules, done = contract("edit"), "DONE DONE DONE"
    start = torch.tensor([[rules.state_ids["2"], rules.state_ids["+"]]])
    sources = Sources([("2", "+")], start, torch.tensor([2]), Goal("target"), [("3", "+")])
    idle, right = "REPLACE POS_0 2", "REPLACE POS_0 3"
    player = Told(rules, [[idle, right, done], [right, done], [right, idle.replace("2", "3"), done], [done]])
    found = practise(player, Environment(rules), rules, sources, 4, torch.Generator())
    assert (found.played, found.won, len(found.games), len(found.games.states)) == (4, 1, 1, 2)
