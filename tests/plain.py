"""Algorithms 1 and 2 of the paper once more, in the plainest Python: what the fast code is measured against.

Edits come from the textbook's dynamic programme with a backtrace, next states from the environment; nothing is shared
with ``aegen`` but the environment that both play in.
"""

from __future__ import annotations

from aegen.core.environment import Environment

State = tuple[str, ...]
Operation = tuple[str, int, str]  # kind, place in the running state, token


def operations(source: State, goal: State) -> list[Operation]:
    """The fewest insertions, deletions and replacements, left to right."""
    cost = [[max(i, j) if not i or not j else 0 for j in range(len(goal) + 1)] for i in range(len(source) + 1)]
    for i in range(1, len(source) + 1):
        for j in range(1, len(goal) + 1):
            change = cost[i - 1][j - 1] + (source[i - 1] != goal[j - 1])
            cost[i][j] = min(change, cost[i - 1][j] + 1, cost[i][j - 1] + 1)
    i, j, found = len(source), len(goal), []
    while i or j:
        if i and j and source[i - 1] == goal[j - 1] and cost[i][j] == cost[i - 1][j - 1]:
            i, j = i - 1, j - 1
        elif j and cost[i][j] == cost[i][j - 1] + 1:
            j -= 1
            found.append(("INSERT", j, goal[j]))
        elif i and cost[i][j] == cost[i - 1][j] + 1:
            i -= 1
            found.append(("DELETE", j, f"POS_{j}"))
        else:
            i, j = i - 1, j - 1
            found.append(("REPLACE", j, goal[j]))
    return found[::-1]


def action(game: Environment, operation: Operation) -> State:
    kind, place, token = operation
    return (f"POS_{place}", token) if len(game.design.slots) == 2 else (kind, f"POS_{place}", token)


def generate(state: State, goal: State, game: Environment) -> list[tuple[State, State]]:
    """Algorithm 1 (TG)."""
    steps = []
    for operation in operations(state, goal):
        steps.append((state, action(game, operation)))
        state = game.step(*steps[-1]).state
    return [*steps, (state, game.design.done)]


def augment(state: State, goal: State, game: Environment) -> list[State]:
    """Algorithm 2 (TA)."""
    expert = [step[0] for step in generate(state, goal, game)]
    found: list[State] = []

    def branch(current: State, rest: list[Operation]) -> None:
        if rest:
            branch(game.step(current, action(game, rest[0])).state, rest[1:])
            back = {"INSERT": 1, "DELETE": -1, "REPLACE": 0}[rest[0][0]]
            branch(current, [(k, p - back, t if k != "DELETE" else f"POS_{p - back}") for k, p, t in rest[1:]])
        elif current not in expert and current not in found:
            found.append(current)

    branch(state, operations(state, goal))
    return found
