"""Rounds of practice as a sampler: what a run learns from is played by the agent itself when a round begins.

A round is: play the training sources and the free ones, each action sampled; add the games that win to those of earlier
rounds; learn from them together with the demonstrations. The games of a round are a file of the run folder, so that an
interrupted run resumes with them instead of playing again with other weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct
from msgspec.structs import replace as with_settings

from trainer.core.config import Config, Times, Updates
from trainer.core.device import Runtime
from trainer.core.errors import BadData
from trainer.core.progress import Reporter
from trainer.core.seeding import derive, generator
from trainer.data.batches import InvalidPosition, SeekableSampler, Update
from trainer.data.demonstrations import Demonstrations
from trainer.data.sources import Sources
from trainer.game.correction import corrections
from trainer.game.practice import Games, new_games, numbered, practise, with_games
from trainer.game.rules import rules_of
from trainer.models.policy import Policy
from trainer.training.checkpoint import load_checkpoint, save_checkpoint
from trainer.training.loop import learning_rate

EPOCH = 500  # updates between two validations, at most


class Practice(Struct, frozen=True, kw_only=True):
    """What decides the practice of a run besides its config; kept in ``config.json``."""

    rounds: Times
    samples: Times  # games from each source in a round
    updates: Updates  # of each round
    corrections: bool  # whether it also learns from the expert's answers to states that it came to (DAgger)
    start: str  # SHA-256 of the weights that it began with
    sources: dict[str, str] = {}  # SHA-256 of the shards of free sources


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "round"), counted(1000, "game")
    ('1 round', '1,000 games')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def share_of_pairs(pairs: Sources, games: Games) -> float:
    """The share of the distinct sources of the training pairs in those of pairs and games together."""
    number, counts = numbered(torch.cat((pairs.states.int(), games.sources)))
    return len(torch.unique(number[: len(pairs)])) / max(len(counts), 1)


class PracticeSampler:
    """The updates of all rounds; every one a pure function of (seed, its number) and of the weights so far."""

    def __init__(
        self,
        model: Policy,
        data: Demonstrations,
        config: Config,
        practice: Practice,
        played: list[tuple[str, Sources]],
        folder: Path,
        runtime: Runtime,
        reporter: Reporter,
    ) -> None:
        self.model, self.data, self.config, self.practice = model, data, config, practice
        self.played, self.folder, self.runtime, self.reporter = played, folder, runtime, reporter
        self.round = -1
        self.inner: SeekableSampler | None = None
        self.facts: dict[str, Any] = {}  # of the round, for the log
        self.shown = 1.0  # share of the training sources in all sources that are learned from

    @property
    def about(self) -> str:
        sources = " and ".join(f"{len(sources):,} {name}" for name, sources in self.played)
        rounds, games = counted(self.practice.rounds, "round"), counted(self.practice.samples, "game")
        return f"{rounds} of {games} from {sources} sources"

    @property
    def epochs(self) -> int:
        """Epochs of a round."""
        return -(-self.practice.updates // EPOCH)

    def ready(self, updates: int) -> bool:
        return True

    def updates(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Update]:
        """The updates of an epoch from a position on; an epoch is one window."""
        number, part = divmod(epoch, self.epochs)
        count = min(EPOCH, self.practice.updates - part * EPOCH)
        if window or number >= self.practice.rounds or index > count:
            raise InvalidPosition(epoch, window, index)
        if number != self.round:
            self.begin(number)
        assert self.inner
        rest = self.inner.from_update(part * EPOCH + index)
        once = {"updates": self.practice.updates, "restart": 0, "schedule": "cosine", "rate_every": "update"}
        annealed = with_settings(self.config, **once)
        for at in range(index, count):
            update = next(rest)
            rate = learning_rate(annealed, 0, part * EPOCH + at) if update.rate is None else update.rate
            yield replace(update, window=0, index=at, progress=at / count, rate=rate)

    def begin(self, number: int) -> None:
        """Play the games of a round, or read them if they have been played, and prepare to learn from all so far."""
        contract, games = self.data.contract, [Games.none(self.data.contract)]
        for earlier in range(number + 1):
            path = self.folder / f"games-{earlier}.safetensors"
            if earlier == number and not path.exists():
                self._play(number, path)
            found, self.facts = self._read(path)
            games.append(found)
        joined = Games.join(games)
        self.shown = share_of_pairs(self.played[0][1], joined)
        steps = with_games(self.data.steps, joined, contract)
        data = copy(self.data)
        data.__dict__["steps"] = steps  # in place of those that the shards alone have
        seed = derive(self.config.seed, "round", number)
        config = with_settings(self.config, updates=self.practice.updates, seed=seed)
        inner = self.model.sampler(data, config, self.runtime)
        assert isinstance(inner, SeekableSampler)  # of every agent that practises
        self.inner, self.round = inner, number
        self.reporter.line(self._line())

    def _play(self, number: int, path: Path) -> None:
        contract, rules = self.data.contract, rules_of(self.data.contract, self.runtime.device)
        facts: dict[str, Any] = {"round": number + 1}
        before = [self._read(self.folder / f"games-{earlier}.safetensors")[0] for earlier in range(number)]
        known = with_games(self.data.steps, Games.join([Games.none(contract), *before]), contract)
        found = [Games.none(contract)]
        for name, sources in self.played:
            draw = generator(self.config.seed, "practice", number, name)
            won = practise(self.model, rules, contract, sources, self.practice.samples, draw)
            facts |= {f"{name}_games": won.played, f"{name}_won": won.won, f"{name}_sources_won": won.sources}
            facts |= {} if won.share is None else {f"{name}_share": won.share}
            fresh = new_games(won.games, known)
            facts[f"{name}_new_ends"] = len(fresh)
            found.append(fresh)
        if self.practice.corrections:
            (_, pairs), *_ = self.played
            corrected = corrections(self.model, rules, contract, pairs, known)
            facts["corrections"] = len(corrected)
            found.append(corrected)
        self.model.train()
        save_checkpoint(path, vars(Games.join(found)), facts)

    def _read(self, path: Path) -> tuple[Games, dict[str, Any]]:
        """The games of a round."""
        tensors, facts = load_checkpoint(path)
        empty = vars(Games.none(self.data.contract))
        if set(tensors) != set(empty) or any(
            tensors[name].dtype != one.dtype or tensors[name].shape[1:] != one.shape[1:] for name, one in empty.items()
        ):
            raise BadData(f"{path}: not the games of this run")
        return Games(**tensors), facts

    def _line(self) -> str:
        """The round in words."""
        facts, parts = self.facts, []
        for name, sources in self.played:
            share = 100 * facts[f"{name}_won"] / max(facts[f"{name}_games"], 1)
            ways = f"{facts[f'{name}_sources_won']:,} of {len(sources):,} {name} sources won"
            parts.append(f"{ways} ({share:.1f} % of the games), {facts[f'{name}_new_ends']:,} new ends")
        if "corrections" in facts:
            parts.append(f"{facts['corrections']:,} corrections")
        return f"round {facts['round']} of {self.practice.rounds}: " + "; ".join(parts)
