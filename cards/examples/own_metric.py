"""A metric of one's own: keep the common beginning and end, and rewrite what lies between, token by token.

aegen trajectories FOLDER --metric cards.examples.own_metric:rewrite
"""

from collections.abc import Iterator
from itertools import takewhile

from aegen import Splice

Tokens = tuple[str, ...]


def shared(one: Tokens, other: Tokens) -> int:
    """How many tokens both begin with."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))


def rewrite(state: Tokens, goal: Tokens) -> Iterator[Splice]:
    """The edits from left to right; each is applied to what the one before it left."""
    head = shared(state, goal)
    tail = shared(state[head:][::-1], goal[head:][::-1])
    old, new = state[head : len(state) - tail], goal[head : len(goal) - tail]
    for at in range(head, head + len(new)):
        removed = at - head < len(old)  # a token is replaced while there is one, then tokens are inserted
        if not removed or old[at - head] != goal[at]:
            yield Splice(at, at + removed, (goal[at],))
    for _ in old[len(new) :]:
        yield Splice(head + len(new), head + len(new) + 1, ())


if __name__ == "__main__":
    import aegen

    data = aegen.import_pairs(
        [("recieve", "receive"), ("adress", "address")],
        out="rewritten",
        tokens="chars",
        ratio="100/0/0",
        metric="cards.examples.own_metric:rewrite",
    )
    for game in data.trajectories("train"):
        for step in game.steps:
            print("".join(step.state), "->", *step.action)
