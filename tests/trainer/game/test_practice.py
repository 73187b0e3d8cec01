from __future__ import annotations

import torch

from trainer.game.practice import Games, distinct


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
