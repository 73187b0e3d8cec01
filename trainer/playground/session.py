"""What the playground answers: what its agent is, and how it edits a text. Knows nothing of HTTP."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from trainer.agents.agent import Agent
from trainer.core.errors import BadData
from trainer.core.format import SplitName, detokenize, tokenize
from trainer.data.dataset import Dataset
from trainer.data.encode import load_pairs
from trainer.game.accuracy import equation_holds
from trainer.pages.games import ShownGame, ShownMove, holds, shown

EXAMPLES = 200
LONGEST = 2000  # characters of an example; longer ones are left out
PREFERRED: tuple[SplitName, ...] = ("test", "validation", "train")  # texts that the agent has not learned from first


class Example(Struct, frozen=True):
    """A text of the data, and what was wanted."""

    text: str
    target: str


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /edit``; with a target the answer says whether the result is right."""

    text: str
    target: str | None = None


class About(Struct, frozen=True):
    """The answer of ``GET /agent``."""

    model: str
    task: str
    tokens: str
    arithmetic: bool
    slots: tuple[str, ...]
    max_state: int | None  # tokens of a text; None: any number, and words that it has never seen
    max_steps: int | None  # of a game; None: as many as the length of the text allows
    examples: list[Example]


def find_examples(agent: Agent, data: str | None = None) -> list[Example]:
    """Texts from the dataset of the agent, or from ``data``, that it can read."""
    dataset, contract = Dataset(data or agent.description.dataset), agent.contract
    split = next((split for split in PREFERRED if dataset.has("pairs", split)), None)
    if split is None:
        raise BadData(f"{dataset.where}: no pairs")
    pairs = load_pairs(dataset, split, contract, EXAMPLES)
    readable = [row for row in range(len(pairs)) if pairs.playable[row]]
    found = [
        Example(*(detokenize(side[row], contract.tokens) for side in (pairs.sources, pairs.targets)))
        for row in readable[:EXAMPLES]
    ]
    return [one for one in found if len(one.text) <= LONGEST and len(one.target) <= LONGEST]


@dataclass(frozen=True)
class Session:
    """An agent, and texts to try it on."""

    agent: Agent
    examples: list[Example]

    @property
    def about(self) -> About:
        """What the page and programs need to know before they ask."""
        contract = self.agent.contract
        return About(
            model=self.agent.description.config.model,
            task=contract.task,
            tokens=contract.tokens,
            arithmetic=contract.arithmetic,
            slots=contract.slots,
            max_state=None if contract.open else contract.max_state,
            max_steps=None if contract.open else contract.max_steps,
            examples=self.examples,
        )

    def edit(self, question: Question) -> ShownGame:
        """Play one game; a text that the agent cannot read is an :class:`InvalidText`."""
        contract = self.agent.contract
        game = self.agent.edit(question.text)
        result = tokenize(game.text, contract.tokens)
        right = None
        if question.target is not None:
            target = tokenize(question.target, contract.tokens)
            right = equation_holds(result, target) if contract.arithmetic else result == target

        return ShownGame(
            source=game.source,
            text=game.text,
            tokens=contract.tokens,
            moves=[
                ShownMove(
                    shown(move.state),
                    shown(move.action),
                    move.verdict,
                    [round(chance, 4) for chance in move.probabilities],
                    move.removed,
                    move.written,
                    holds(move.state, contract.arithmetic),
                )
                for move in game.moves
            ],
            result=shown(result),
            ended=game.ended,
            holds=holds(result, contract.arithmetic),
            right=right,
            target=question.target,
        )
