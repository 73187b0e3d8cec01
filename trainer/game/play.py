"""The imitation game: an agent edits states step by step until it says DONE (recurrent inference).

Axes: b batch, m state, n action, v action vocabulary. All games of a batch are played on the device at once. A
finished game leaves the batch, and games of similar length are decided together, padded to the longest of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from trainer.data.contract import Contract
from trainer.data.encode import Pairs
from trainer.game.accuracy import Scores
from trainer.game.environment import Verdict
from trainer.game.rules import Rules

CHUNK = 1024  # games played at once


class Player(Protocol):
    """What a game asks of an agent."""

    @property
    def group(self) -> int:
        """Games of similar length that are decided at once."""

    def decide(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Scores (b, n, v) of the action tokens for states (b, m); lengths (b) are on the CPU."""

    def train(self, mode: bool = True) -> object:
        """Switch between training and inference."""


@dataclass(frozen=True)
class GameStep:
    """One step of the games that have not ended."""

    games: Tensor  # (b) their numbers
    states: Tensor  # (b, m) before the action
    lengths: Tensor  # (b)
    actions: Tensor  # (b, n)
    probabilities: Tensor  # (b, n) of each action token
    verdicts: Tensor  # (b)


@dataclass(frozen=True)
class Rollout:
    """How the games ended; all on the CPU."""

    states: Tensor  # (b, m)
    lengths: Tensor  # (b)
    steps: Tensor  # (b) actions played
    verdicts: Tensor  # (b) of the last action; APPLIED means that the steps ran out


def act(policy: Player, states: Tensor, lengths: Tensor) -> Tensor:
    """The scores (b, n, v) of an agent, with states of similar length decided together; lengths on the CPU."""
    if int(lengths.min()) == int(lengths.max()):
        return policy.decide(states[:, : max(int(lengths[0]), 1)], lengths)
    order = lengths.argsort(stable=True)
    parts = [
        policy.decide(states[rows.to(states.device), : max(int(lengths[rows[-1]]), 1)], lengths[rows])
        for rows in torch.split(order, policy.group)
    ]
    joined = torch.cat(parts)
    return torch.empty_like(joined).index_copy_(0, order.to(states.device), joined)


@torch.inference_mode()
def play(
    policy: Player,
    environment: Rules,
    states: Tensor,
    lengths: Tensor,
    *,
    max_steps: int,
    watch: Callable[[GameStep], None] | None = None,
) -> Rollout:
    """Play games from these states for at most ``max_steps`` actions each.

    An agent is a function of the state. After a refused action, which keeps the state, it would be refused again until
    the steps run out, so such a game ends at once with the same result.
    """
    policy.train(False)
    device = environment.device
    count = len(states)
    result = Rollout(
        states.long().clone(),
        lengths.long().clone(),
        torch.zeros(count, dtype=torch.long),
        torch.full((count,), int(Verdict.APPLIED)),
    )
    for first in range(0, count, CHUNK):
        games = torch.arange(first, min(first + CHUNK, count))
        live_states, live_lengths = result.states[games].to(device), result.lengths[games]
        for _ in range(max_steps):
            live_states = live_states[:, : max(int(live_lengths.max()), 1)]
            scores = act(policy, live_states, live_lengths)
            actions = scores.argmax(-1)  # (b, n)
            new_states, new_lengths, verdicts = environment.step(live_states, live_lengths.to(device), actions)
            new_lengths, verdicts = new_lengths.cpu(), verdicts.cpu()
            if watch:
                chances = scores.softmax(-1).gather(-1, actions[..., None])[..., 0]
                watch(GameStep(games, live_states.cpu(), live_lengths, actions.cpu(), chances.cpu(), verdicts))
            result.steps[games] += 1
            result.verdicts[games] = verdicts
            result.lengths[games] = new_lengths
            width = new_states.shape[1]
            result.states[games] = 0
            result.states[games, :width] = new_states.cpu()
            live = verdicts == int(Verdict.APPLIED)
            if not live.any():
                break
            games, live_lengths = games[live], new_lengths[live]
            live_states = new_states[live.to(device)]
    return result


def ending(verdict: int) -> str:
    """Why a game ended: ``done``, ``limit``, or the reason of a refusal."""
    return "limit" if verdict == Verdict.APPLIED else Verdict(verdict).reason


ENDINGS = tuple(ending(verdict) for verdict in Verdict)


def pack(scores: Scores) -> Tensor:
    """The counts as one vector, so that the parts of several ranks can be added."""
    counts = [scores.pairs, scores.token, scores.sequence, scores.equation, scores.unreadable, scores.steps]
    return torch.tensor([*counts, *(scores.ended.get(name, 0) for name in ENDINGS)], dtype=torch.float64)


def unpack(vector: Tensor, arithmetic: bool) -> Scores:
    """The inverse of :func:`pack`."""
    pairs, token, sequence, equation, unreadable, steps, *ended = vector.tolist()
    return Scores(
        pairs=int(pairs),
        token=token,
        sequence=int(sequence),
        equation=int(equation),
        arithmetic=arithmetic,
        unreadable=int(unreadable),
        steps=int(steps),
        ended={name: int(count) for name, count in zip(ENDINGS, ended, strict=True) if count},
    )


class Observer(Protocol):
    """Records games: every step, then how each row ended."""

    def watch(self, step: GameStep) -> None: ...

    def ended(self, rows: range, played: Tensor, rollout: Rollout, results: dict[int, tuple[str, ...]]) -> None:
        """``rows`` are all pairs that were asked for; ``played`` says which pair each game was."""


def score(
    policy: Player,
    environment: Rules,
    contract: Contract,
    pairs: Pairs,
    part: slice,
    observer: Observer | None = None,
) -> Scores:
    """Play the sources of some pairs and compare the results with their targets.

    A source that the agent cannot read (too long, or with unknown tokens) is not played and counts unchanged.
    """
    scores = Scores(arithmetic=contract.arithmetic)
    rows = range(len(pairs))[part]
    played = torch.arange(len(pairs))[part]
    played = played[pairs.playable[played]]
    watch = observer.watch if observer else None
    rollout = play(
        policy, environment, pairs.states[played], pairs.lengths[played], max_steps=contract.max_steps, watch=watch
    )
    names = ("", *contract.state_tokens)
    results = {}
    for row, state, length in zip(played.tolist(), rollout.states.tolist(), rollout.lengths.tolist(), strict=True):
        results[row] = tuple(names[token] for token in state[:length])
    if observer:
        observer.ended(rows, played, rollout, results)
    for row in rows:
        scores.add(results.get(row, pairs.sources[row]), pairs.targets[row])
    scores.unreadable = scores.pairs - len(played)
    scores.steps = int(rollout.steps.sum())
    for verdict in rollout.verdicts.tolist():
        scores.ended[ending(verdict)] = scores.ended.get(ending(verdict), 0) + 1
    return scores
