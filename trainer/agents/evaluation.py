"""Play a split or an M2 file with the agent of a run, and write the results of a split into the run folder."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from torch import Tensor

from trainer.agents.agent import Agent
from trainer.agents.lines import edit_all
from trainer.core.files import write, write_json
from trainer.core.format import SplitName
from trainer.data.dataset import Dataset
from trainer.data.encode import Pairs, load_pairs
from trainer.data.m2 import Annotated, read_m2
from trainer.game.outcomes import Outcomes, expert_actions
from trainer.game.play import GameStep, Rollout
from trainer.scoring.gold import GoldEdits
from trainer.scoring.maxmatch import MaxMatch
from trainer.training.run import RunFolder


def evaluate_run(
    run: str | Path,
    device: str = "auto",
    data: str | None = None,
    split: SplitName = "test",
    limit: int = 0,
    edits_per_round: int = 1,
) -> dict[str, Any]:
    """The accuracies; a whole split also writes ``evaluation-SPLIT.json`` and, game by game, ``outcomes-SPLIT.json``.

    The outcomes are written first: a run with an evaluation has both. Results on other data, and of another game than
    the paper's with one edit a round, are not written. Of text there is also MaxMatch against the edits of the
    annotators or, without them, those that lead to the targets.
    """
    agent, folder = Agent.from_pretrained(run, device), RunFolder(Path(run))
    dataset = Dataset(data or agent.description.dataset)
    pairs = load_pairs(dataset, split, agent.contract)
    outcomes = Outcomes(agent.contract, pairs, expert_actions(dataset, split, agent.contract, pairs))
    if agent.contract.arithmetic:
        result = agent.measure(dataset, split, pairs, limit, outcomes, edits_per_round)
    else:
        scored = _Scored(outcomes, pairs, GoldEdits(dataset, split, agent.contract.tokens))
        result = agent.measure(dataset, split, pairs, limit, scored, edits_per_round)
        result |= {"edits": scored.score.to_json()}
    if folder.path.is_dir() and not limit and result["own"] and edits_per_round == 1:
        write(folder.outcomes(split), outcomes.to_json())
        write_json(folder.evaluation(split), result)
    return result


class _Scored:
    """Watches games for their outcomes, and compares what was edited with what should have been."""

    def __init__(self, outcomes: Outcomes, pairs: Pairs, gold: GoldEdits) -> None:
        self.outcomes, self.pairs, self.gold, self.score = outcomes, pairs, gold, MaxMatch()

    def watch(self, step: GameStep) -> None:
        self.outcomes.watch(step)

    def ended(self, rows: range, played: Tensor, rollout: Rollout, results: dict[int, tuple[str, ...]]) -> None:
        self.outcomes.ended(rows, played, rollout, results)
        texts = ((self.pairs.sources[row], self.pairs.targets[row]) for row in rows)
        for row, annotated in zip(rows, self.gold.annotated(texts), strict=True):
            self.score.add(annotated, self.gold.units(results.get(row, self.pairs.sources[row])))


def evaluate_m2(
    run: str | Path, file: str | Path, device: str = "auto", limit: int = 0, edits_per_round: int = 1
) -> dict[str, Any]:
    """MaxMatch of the agent on the sentences of an M2 file, against all their annotators."""
    agent = Agent.from_pretrained(run, device)
    agent.check_round(edits_per_round)
    since, busy = time.perf_counter(), time.process_time()
    held: deque[Annotated] = deque()  # sentences that are being edited

    def texts() -> Iterator[str]:
        for sentence in islice(read_m2(file), limit or None):
            held.append(sentence)
            yield " ".join(sentence.source)

    score, unreadable = MaxMatch(), 0
    for edited in edit_all(agent, texts(), moves=False, edits_per_round=edits_per_round):
        score.add(held.popleft(), tuple(edited.text.split(" ")) if edited.text else ())
        unreadable += bool(edited.problem)
    seconds, used = time.perf_counter() - since, time.process_time() - busy
    return score.to_json() | {
        "data": str(file),
        "weights": agent.weights,
        "edits_per_round": edits_per_round,
        "unreadable": unreadable,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(used, 3),
        "sentences_per_second": round(score.sentences / max(seconds, 1e-9), 1),
    }
