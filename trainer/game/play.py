"""The imitation game: an agent edits states step by step until it says DONE (recurrent inference).

Axes: b batch, m state, n action, v action vocabulary. All games of a batch are played on the device at once. A
finished game leaves the batch, and games of similar length are decided together, padded to the longest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from trainer.data.contract import Contract
from trainer.data.encode import Pairs
from trainer.game.accuracy import Scores
from trainer.game.environment import Verdict
from trainer.game.rules import Rules

CHUNK = 1024  # games played at once


@dataclass(frozen=True)
class Decision:
    """What an agent does next: k actions for each state, to be played in this order.

    They belong to one state, so each is to the left of those before it, which leaves its positions as they were.
    """

    actions: Tensor  # (b, k, n)
    chances: Tensor  # (b, k, n) of each action token
    counts: Tensor | None = None  # (b) how many of the k are played, at least 1; None: all

    @classmethod
    def best(cls, scores: Tensor) -> Decision:
        """One action: of scores (b, n, v) the best token of each slot."""
        actions = scores.argmax(-1)
        return cls(actions[:, None], scores.softmax(-1).gather(-1, actions[..., None])[..., 0][:, None])

    @classmethod
    def drawn(cls, actions: Tensor) -> Decision:
        """One action (b, n) that was sampled; what it was chosen by is not told."""
        return cls(actions[:, None], torch.ones(actions.shape)[:, None])

    @classmethod
    def joined(cls, parts: Sequence[Decision], order: Tensor) -> Decision:
        """The decisions for some rows each, put where ``order`` says."""

        most = max(part.actions.shape[1] for part in parts)  # of a round; ``counts`` says how many are played

        def join(tensors: Sequence[Tensor]) -> Tensor:
            fill = [(0, 0, 0, most - tensor.shape[1]) if tensor.dim() == 3 else (0, 0) for tensor in tensors]
            whole = torch.cat([functional.pad(tensor, more) for tensor, more in zip(tensors, fill, strict=True)])
            return torch.empty_like(whole).index_copy_(0, order.to(whole.device), whole)

        counts = [part.counts for part in parts if part.counts is not None]
        return cls(
            join([part.actions for part in parts]),
            join([part.chances for part in parts]),
            join(counts) if counts else None,
        )


@dataclass(frozen=True)
class Draw:
    """How actions are sampled."""

    generator: torch.Generator
    curiosity: float = 0.0  # the chance of each choice to be any that is possible, not the agent's own


class Player(Protocol):
    """What a game asks of an agent."""

    @property
    def group(self) -> int:
        """Games of similar length that are decided at once."""

    def decide(self, states: Tensor, lengths: Tensor, edits: int = 1) -> Decision:
        """The actions of the next round for states (b, m), at most ``edits`` of each; lengths (b) are on the CPU."""

    def sample(self, states: Tensor, lengths: Tensor, draw: Draw) -> Decision:
        """One action for each state, drawn from the agent's own probabilities."""

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
    after: tuple[Tensor, Tensor]  # states and lengths of all games of the round, on the device


@dataclass(frozen=True)
class Rollout:
    """How the games ended; all on the CPU."""

    states: Tensor  # (b, m)
    lengths: Tensor  # (b)
    steps: Tensor  # (b) actions played
    verdicts: Tensor  # (b) of the last action; APPLIED means that the steps ran out


def act(policy: Player, states: Tensor, lengths: Tensor, edits: int = 1, draw: Draw | None = None) -> Decision:
    """The decisions of an agent, with states of similar length decided together; lengths on the CPU.

    With ``draw`` they are sampled from the agent's own probabilities, one action each.
    """

    def decide(states: Tensor, lengths: Tensor) -> Decision:
        return policy.decide(states, lengths, edits) if draw is None else policy.sample(states, lengths, draw)

    if int(lengths.min()) == int(lengths.max()):
        return decide(states[:, : max(int(lengths[0]), 1)], lengths)
    order = lengths.argsort(stable=True)
    parts = [
        decide(states[rows.to(states.device), : max(int(lengths[rows[-1]]), 1)], lengths[rows])
        for rows in torch.split(order, policy.group)
    ]
    return Decision.joined(parts, order)


@torch.inference_mode()
def play(
    policy: Player,
    environment: Rules,
    states: Tensor,
    lengths: Tensor,
    *,
    max_steps: int | Tensor,
    edits: int = 1,
    watch: Callable[[GameStep], None] | None = None,
    draw: Draw | None = None,
    circles: bool = True,
) -> Rollout:
    """Play games from these states for at most ``max_steps`` rounds each, of one action or up to ``edits``.

    A tensor of steps (b) has a limit for each game, so that none depends on the games that it is played with.

    With ``draw`` the actions are sampled; without, they are the agent's best. Without ``circles`` a game that comes
    back to a state that it had is over: it would go round until the steps run out, which a long text has many of.

    An agent is a function of the state. After a refused action, which keeps the state, it would be refused again until
    the steps run out, so such a game ends at once with the same result.
    """
    policy.train(False)
    device = environment.device
    count = len(states)
    final, sizes = states.long().clone(), lengths.long().clone()
    limits = torch.as_tensor(max_steps).expand(count)
    steps, verdicts = torch.zeros(count, dtype=torch.long), torch.full((count,), int(Verdict.APPLIED))
    for first in range(0, count, CHUNK):
        games = torch.arange(first, min(first + CHUNK, count))
        live_states, live_lengths = final[games].to(device), sizes[games]
        seen = [] if circles else [{mark} for mark in fingerprints(live_states, live_lengths)]
        for turn in range(int(limits[games].max())):
            live_states = live_states[:, : max(int(live_lengths.max()), 1)]
            decision = act(policy, live_states, live_lengths, edits, draw)
            for step in play_round(environment, live_states, live_lengths, decision):
                rows = step.games
                if watch:
                    watch(replace(step, games=games[rows]))
                steps[games[rows]] += 1
                verdicts[games[rows]] = step.verdicts
                live_states, live_lengths = step.after
            sizes[games] = live_lengths
            width = live_states.shape[1]
            final = functional.pad(final, (0, max(width - final.shape[1], 0)))
            final[games] = 0
            final[games, :width] = live_states.cpu()
            live = (verdicts[games] == int(Verdict.APPLIED)) & (limits[games] > turn + 1)
            if not circles:
                for row, mark in enumerate(fingerprints(live_states, live_lengths)):
                    before = seen[int(games[row]) - first]
                    live[row] &= mark not in before
                    before.add(mark)
            if not live.any():
                break
            games, live_lengths = games[live], live_lengths[live]
            live_states = live_states[live.to(device)]
    return Rollout(final, sizes, steps, verdicts)


def fingerprints(states: Tensor, lengths: Tensor) -> list[int]:
    """A number for each state (b, m), whatever its padding; others have, as good as certainly, others.

    >>> one, same, other = fingerprints(torch.tensor([[1, 2, 0], [1, 2, 3], [2, 1, 0]]), torch.tensor([2, 2, 2]))
    >>> one == same, one == other
    (True, False)
    """
    place = torch.arange(1, states.shape[1] + 1, device=states.device)
    mixed = place * 0x1E3779B97F4A7C15
    mixed = (mixed ^ (mixed >> 31)) * 0x3F58476D1CE4E5B9
    words = torch.where(place <= lengths[:, None].to(states.device), states.long() + 1, 0)
    marks: list[int] = (words * (mixed ^ (mixed >> 29))).sum(1).tolist()
    return marks


def play_round(environment: Rules, states: Tensor, lengths: Tensor, decision: Decision) -> Iterator[GameStep]:
    """Play the actions of one round; a game whose action is refused, or that is done, plays no more of them."""
    device = states.device
    rows = torch.arange(len(states))
    playing = torch.ones(len(states), dtype=torch.bool)
    for turn in range(decision.actions.shape[1]):
        if turn and decision.counts is not None:
            playing &= decision.counts.cpu() > turn
        if not playing.any():
            return
        actions = decision.actions[:, turn]
        new_states, new_lengths, verdicts = environment.step(states, lengths.to(device), actions)
        new_lengths, verdicts = new_lengths.cpu(), verdicts.cpu()
        if not playing.all():
            kept = functional.pad(states, (0, max(new_states.shape[1] - states.shape[1], 0)))[:, : new_states.shape[1]]
            new_states = torch.where(playing[:, None].to(device), new_states, kept)
            new_lengths = torch.where(playing, new_lengths, lengths)
        chances = decision.chances[:, turn].cpu()
        before = (states.cpu()[playing], lengths[playing], actions.cpu()[playing], chances[playing])
        yield GameStep(rows[playing], *before, verdicts[playing], (new_states, new_lengths))
        states, lengths = new_states, new_lengths
        playing &= verdicts == int(Verdict.APPLIED)


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
    edits: int = 1,
) -> Scores:
    """Play the sources of some pairs and compare the results with their targets.

    A source that the agent cannot read (too long, or with unknown tokens) is not played and counts unchanged.
    """
    scores = Scores(arithmetic=contract.arithmetic)
    rows = range(len(pairs))[part]
    played = torch.arange(len(pairs))[part]
    played = played[pairs.playable[played]]
    rollout = play(
        policy,
        environment,
        pairs.states[played],
        pairs.lengths[played],
        max_steps=contract.most_steps(pairs.lengths[played]),
        edits=edits,
        watch=observer.watch if observer else None,
        circles=not contract.open,
    )
    names = contract.names
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
