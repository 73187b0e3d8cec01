"""Play a split with the agent of a run, and write the results into the run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.agent import Agent
from trainer.core.format import SplitName
from trainer.data.dataset import Dataset
from trainer.data.encode import Pairs
from trainer.game.outcomes import Outcomes, expert_actions
from trainer.training.checkpoint import write_json


def evaluate_run(
    run: str | Path, device: str = "auto", data: str | None = None, split: SplitName = "test", limit: int = 0
) -> dict[str, Any]:
    """The accuracies; a whole split also writes ``evaluation-SPLIT.json`` and, game by game, ``outcomes-SPLIT.json``.

    The outcomes are written first: a run with an evaluation has both. Results on other data are not written.
    """
    agent, kept = Agent.from_pretrained(run, device), []

    def observe(dataset: Dataset, pairs: Pairs) -> Outcomes:
        trained_on = agent.description.data.get("files")
        own = isinstance(trained_on, dict) and dataset.hashes("pairs", "validation").items() <= trained_on.items()
        kept.append((own, Outcomes(agent.contract, pairs, expert_actions(dataset, split, agent.contract, pairs))))
        return kept[0][1]

    result = agent.evaluate(data, split, limit, observe)
    folder, (own, outcomes) = Path(run), kept[0]
    if folder.is_dir() and not limit and own:
        write_json(folder / f"outcomes-{split}.json", outcomes.to_json(), indent=None)
        write_json(folder / f"evaluation-{split}.json", result)
    return result
