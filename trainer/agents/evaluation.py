"""Play a split with the agent of a run, and write the results into the run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.agents.agent import Agent
from trainer.core.files import write, write_json
from trainer.core.format import SplitName
from trainer.data.dataset import Dataset
from trainer.data.encode import load_pairs
from trainer.game.outcomes import Outcomes, expert_actions
from trainer.training.run import RunFolder


def evaluate_run(
    run: str | Path, device: str = "auto", data: str | None = None, split: SplitName = "test", limit: int = 0
) -> dict[str, Any]:
    """The accuracies; a whole split also writes ``evaluation-SPLIT.json`` and, game by game, ``outcomes-SPLIT.json``.

    The outcomes are written first: a run with an evaluation has both. Results on other data are not written.
    """
    agent, folder = Agent.from_pretrained(run, device), RunFolder(Path(run))
    dataset = Dataset(data or agent.description.dataset)
    pairs = load_pairs(dataset, split, agent.contract)
    outcomes = Outcomes(agent.contract, pairs, expert_actions(dataset, split, agent.contract, pairs))
    result = agent.measure(dataset, split, pairs, limit, outcomes)
    if folder.path.is_dir() and not limit and result["own"]:
        write(folder.outcomes(split), outcomes.to_json())
        write_json(folder.evaluation(split), result)
    return result
