"""A trained agent: load it, edit texts with it, measure it.

>>> from trainer import fit
>>> run = fit("aes", model="planner", updates=200, out="runs/agent")
>>> game = Agent.from_pretrained("runs/agent").edit("61 + 6 - ( 81 - 73 ) = 59")
>>> game.text, [move.action for move in game.moves]
('61 + 6 - 8 = 59', [('POS_4', 'POS_8', '8'), ('DONE', 'DONE', 'DONE')])
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import torch

from trainer.core.device import Runtime, find_device
from trainer.core.errors import BadData, InvalidConfig, InvalidText
from trainer.core.files import digest
from trainer.core.format import SplitName, detokenize, tokenize
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset
from trainer.data.encode import Pairs, load_pairs
from trainer.game.marks import of_edit
from trainer.game.moves import Move, read_moves
from trainer.game.play import GameStep, Observer, ending, play, score
from trainer.game.rules import rules_of
from trainer.models.policy import Policy
from trainer.models.zoo import count_parameters, make_model
from trainer.training.checkpoint import load_checkpoint, load_weights, most_bytes
from trainer.training.run import BEST, CONFIG, PUBLISHED, Description, find_folder

WEIGHTS = (PUBLISHED, BEST)
CELLS = 1 << 22  # tokens of texts that are edited together, padding included


@dataclass(frozen=True)
class Game:
    """A text, and how it was edited."""

    source: str
    text: str
    moves: tuple[Move, ...]
    ended: str

    def __str__(self) -> str:
        return self.text


class Agent:
    """A policy with the rules it plays by."""

    def __init__(self, policy: Policy, description: Description, device: torch.device | str = "cpu") -> None:
        self.policy, self.description = policy.to(device).eval(), description
        self.contract: Contract = description.contract
        self.weights: str | None = None  # the SHA-256 of their file
        self.environment = rules_of(self.contract, device)

    @classmethod
    def from_pretrained(cls, where: str | Path, device: str = "cpu") -> Agent:
        """Load a run folder, a published folder, or a hub id (``org/name``, ``hf://org/name@revision``)."""
        folder = find_folder(str(where))
        description = Description.read(folder / CONFIG)
        found = [folder / name for name in WEIGHTS if (folder / name).exists()]
        if not found:
            raise BadData(f"{where}: no weights yet; the first validation writes them")
        place = find_device(device)
        config, contract = description.config, description.contract
        Runtime(place).check_memory(count_parameters(config, contract, description.knowledge), copies=2)
        policy = make_model(config, contract, description.knowledge)  # every weight comes from the file
        load_weights(policy, load_checkpoint(found[0], most_bytes(policy))[0], found[0])
        agent = cls(policy, description, place)
        agent.weights = digest(found[0])
        return agent

    @overload
    def edit(self, texts: str, edits_per_round: int = 1) -> Game: ...

    @overload
    def edit(self, texts: list[str] | tuple[str, ...], edits_per_round: int = 1) -> list[Game]: ...

    def edit(self, texts: str | list[str] | tuple[str, ...], edits_per_round: int = 1) -> Game | list[Game]:
        """Edit one text, or many at once: a game for each.

        With ``edits_per_round`` the agent plays so many edits of a state before it looks again, the most certain ones
        that do not touch each other: faster than the paper's game of one, for an agent that can (the editor).
        """
        if isinstance(texts, str):
            return self.play([texts], edits_per_round=edits_per_round)[0]
        return self.play(texts, edits_per_round=edits_per_round)

    def check_round(self, edits: int) -> None:
        """Refuse several edits a round for an agent that cannot play them, or decides itself how many."""
        if edits < 1:
            raise InvalidConfig(f"edits_per_round: expected int >= 1, got {edits}")
        if edits > 1 and not self.policy.several:
            name = self.description.config.model
            raise InvalidConfig(f"--edits-per-round is for the model editor, not for {name}")

    def play(self, texts: Sequence[str], moves: bool = True, edits_per_round: int = 1) -> list[Game]:
        """A game for each text; without ``moves`` nobody writes down how it went.

        Games of similar length are played together, so that one long text does not make all of them wide.
        """
        self.check_round(edits_per_round)
        self.contract.forget()
        states = [self.read(text) for text in texts]
        games: dict[int, Game] = {}
        for rows in by_size([len(state) for state in states]):
            some, read = [texts[row] for row in rows], [states[row] for row in rows]
            games |= dict(zip(rows, self._play_together(some, read, moves, edits_per_round), strict=True))
        return [games[row] for row in range(len(states))]

    def _play_together(
        self, texts: Sequence[str], states: Sequence[tuple[str, ...]], moves: bool, edits: int
    ) -> list[Game]:
        contract = self.contract
        lengths = torch.tensor([len(state) for state in states])
        width = max(int(lengths.max()), 1) if contract.open else contract.max_state
        ids = torch.zeros(len(states), width, dtype=torch.long)
        for row, state in enumerate(states):
            ids[row, : len(state)] = torch.tensor([contract.word_id(token) for token in state], dtype=torch.long)
        played: list[list[Move]] = [[] for _ in states]

        def watch(step: GameStep) -> None:
            for game, move in read_moves(step, contract):
                played[game].append(move)

        rollout = play(
            self.policy,
            self.environment,
            ids,
            lengths,
            max_steps=contract.most_steps(lengths),
            edits=edits,
            watch=watch if moves else None,
            circles=not contract.open,
        )
        results = zip(rollout.states.tolist(), rollout.lengths.tolist(), rollout.verdicts.tolist(), strict=True)
        names = contract.names
        return [
            Game(
                text,
                detokenize([names[token] for token in state[:length]], contract.tokens),
                tuple(steps),
                ending(verdict),
            )
            for text, steps, (state, length, verdict) in zip(texts, played, results, strict=True)
        ]

    def read(self, text: str) -> tuple[str, ...]:
        """A text as the tokens of a state; a text that the agent cannot read is refused."""
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidText("not valid Unicode: the text contains an unpaired surrogate")
        state = tokenize(text, self.contract.tokens)
        if self.contract.open:
            return state
        for token in state:
            if token not in self.contract.state_ids:
                raise InvalidText(f"unknown token {token[:40]!r}: not in the training data{self._how_to_write(text)}")
        if len(state) > self.contract.max_state:
            raise InvalidText(f"{len(state)} tokens: the agent reads at most {self.contract.max_state}")
        return state

    def _how_to_write(self, text: str) -> str:
        """For a text with unknown tokens: what may have been meant."""
        if self.contract.tokens != "words":
            return ""
        spaced = " ".join(re.findall(r"\d+|\S", text)) if self.contract.arithmetic else text
        if spaced != text and all(token in self.contract.state_ids for token in tokenize(spaced, "words")):
            return f'; write one space between tokens: "{spaced[:200]}"'
        return "; tokens are separated by one space"

    def marked(self, game: Game, number: int) -> str:
        """The state after a move that was applied, with the change in brackets."""
        move = game.moves[number]
        after = game.moves[number + 1].state if number + 1 < len(game.moves) else None
        state = after if after is not None else tokenize(game.text, self.contract.tokens)
        if self.contract.game != "edits":  # many places at once
            return detokenize(state, self.contract.tokens)
        changed = of_edit(self.contract.slots, move.action)
        start = (changed.written or changed.removed)[0]
        stop = start + len(changed.written)
        pieces = (state[:start], state[start:stop], state[stop:])
        before, new, rest = (detokenize(piece, self.contract.tokens) for piece in pieces)
        separator = " " if self.contract.tokens == "words" else ""
        return separator.join(piece for piece in (before, f"[{new}]", rest) if piece)

    def evaluate(
        self, data: str | Path | None = None, split: SplitName = "test", limit: int = 0, edits_per_round: int = 1
    ) -> dict[str, Any]:
        """Play the pairs of a split: the accuracies, how games ended, and games per second."""
        dataset = Dataset(data or self.description.dataset)
        return self.measure(dataset, split, load_pairs(dataset, split, self.contract), limit, None, edits_per_round)

    def measure(
        self,
        dataset: Dataset,
        split: SplitName,
        pairs: Pairs,
        limit: int = 0,
        observer: Observer | None = None,
        edits_per_round: int = 1,
    ) -> dict[str, Any]:
        """The same for pairs that are loaded already, with somebody to watch the games."""
        self.check_round(edits_per_round)
        since, busy = time.perf_counter(), time.process_time()
        part = slice(limit or None)
        scores = score(self.policy, self.environment, self.contract, pairs, part, observer, edits_per_round)
        seconds, used = time.perf_counter() - since, time.process_time() - busy
        return scores.to_json() | {
            "split": split,
            "data": dataset.where,
            "own": self.learned_from(dataset),
            "weights": self.weights,
            "edits_per_round": edits_per_round,
            "files": dataset.hashes("pairs", split),
            "seconds": round(seconds, 3),
            "cpu_seconds": round(used, 3),
            "pairs_per_second": round(scores.pairs / seconds, 1),
        }

    def learned_from(self, dataset: Dataset) -> bool:
        """Whether this is the dataset that it was trained on, wherever it lies now: the hashes of its files decide."""
        files = self.description.data.get("files")
        if not isinstance(files, dict) or not dataset.has("pairs", "validation"):
            return False
        return dataset.hashes("pairs", "validation").items() <= files.items()


def by_size(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of texts in groups that stay small when they are padded to their longest.

    >>> list(by_size([3, CELLS, 2])), list(by_size([]))
    ([[2, 0], [1]], [])
    """
    group: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) + 1) * lengths[row] > CELLS:
            yield group
            group = []
        group.append(row)
    if group:
        yield group
