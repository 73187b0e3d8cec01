"""How each game of an evaluation went: what a report counts, and some games to step through.

A wrong game is classified by its first action that differs from the expert's. Where a text has more than one right
result this is a convention; the action itself need not be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc
from torch import Tensor

from trainer.core.errors import BadData
from trainer.core.format import DONE, KEEP, POSITION, REPLACE, STEP_COLUMNS, SplitName
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset, Shard
from trainer.data.demonstrations import HELD_OUT
from trainer.data.encode import Pairs, check_size, one_chunk
from trainer.game.accuracy import equation_holds, token_accuracy
from trainer.game.environment import Verdict
from trainer.game.moves import Move, read_moves
from trainer.game.play import GameStep, Rollout, ending

FORMAT = 1
DETAILED = 20_000  # games recorded one by one; the accuracies count all
TOKEN_BYTES = 64  # of the expert's actions, in memory
SHOWN = 6  # right games, and as many wrong ones, that are kept step by step
FAILURES = ("wrong position", "wrong token", "stopped early", "never stopped", "refused", "not read")

Actions = list[tuple[str, ...]]


def expert_actions(dataset: Dataset, split: SplitName, contract: Contract, pairs: Pairs) -> list[Actions] | None:
    """The expert's actions for each pair, in their order; None if the dataset has none."""
    if contract.game == "text":
        return [[(*target, DONE)] for target in pairs.targets]
    kind = HELD_OUT[contract.game]
    if not dataset.has(kind, split):
        return None
    found: list[Actions] = []
    games = 0
    for footer in dataset.footers(kind, split):
        games = add_games(found, games, dataset, footer.shard)
    return found if games == len(pairs) else None


def add_games(found: list[Actions], games: int, dataset: Dataset, shard: Shard) -> int:
    """Add the expert's actions of a shard for the games that are recorded; returns the number of games so far."""
    where, table = f"{dataset.where}/{shard.name}", dataset.read(shard, STEP_COLUMNS)
    actions = one_chunk(table["action"])
    if any(table[name].null_count for name in STEP_COLUMNS) or actions.flatten().null_count:
        raise BadData(f"{where}: null value in a row")
    sizes = pc.list_value_length(actions).to_numpy(zero_copy_only=False)
    begins = table["step"].to_numpy() == 0
    number = games + begins.cumsum()
    if not (number > 0).all() or not (sizes > 0).all():
        raise BadData(f"{where}: a row precedes the first step of its game, or has no action")
    rows = int((number <= DETAILED).sum())
    check_size(int(sizes[:rows].sum()), TOKEN_BYTES, where)
    for begin, action in zip(begins[:rows].tolist(), actions[:rows].to_pylist(), strict=True):
        if begin:
            found.append([])
        found[-1].append(tuple(action))
    return int(number[-1]) if len(number) else games


def failure(played: Sequence[tuple[tuple[str, ...], str]], expert: Actions | None, ended: str, game: str) -> str:
    """The class of a wrong game's first mistake; ``played`` holds its actions with their verdicts.

    >>> failure([(("POS_0", "-"), "applied"), (("DONE", "DONE"), "done")],
    ...         [("POS_0", "-"), ("POS_2", "+"), ("DONE", "DONE")], "done", "edits")
    'stopped early'
    >>> failure([(("POS_1", "-"), "applied")], [("POS_0", "-"), ("DONE", "DONE")], "limit", "edits")
    'wrong position'
    """
    if not played:
        return "not read"
    for (action, verdict), wanted in zip(played, expert or [], strict=False):
        if action == wanted:
            continue
        if verdict not in (Verdict.APPLIED.reason, Verdict.DONE.reason):
            return "refused"
        if game == "text":
            return (
                "stopped early"
                if len(action) < len(wanted)
                else "never stopped"
                if DONE not in action
                else "wrong token"
            )
        if verdict == "done":
            return "stopped early"
        if _ends(wanted):
            return "never stopped"
        return "wrong position" if _places(action, game) != _places(wanted, game) else "wrong token"
    return {"limit": "never stopped", "done": "stopped early"}.get(ended, "refused")


def _ends(action: tuple[str, ...]) -> bool:
    return set(action) in ({DONE}, {KEEP})


def _places(action: tuple[str, ...], game: str) -> list[Any]:
    """Where an action edits."""
    if game == "tags":
        return [place for place, tag in enumerate(action) if tag != KEEP]
    return [token for token in action if POSITION.fullmatch(token)]


@dataclass
class Outcomes:
    """Records the games of an evaluation."""

    contract: Contract
    pairs: Pairs
    expert: list[Actions] | None
    moves: dict[int, list[Move]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    games: list[dict[str, Any]] = field(default_factory=list)

    def watch(self, step: GameStep) -> None:
        """Record one step of the games that have not ended."""
        for game, move in read_moves(step, self.contract, DETAILED):
            self.moves.setdefault(game, []).append(move)

    def ended(self, rows: Tensor, rollout: Rollout, results: dict[int, tuple[str, ...]]) -> None:
        """Record how the games ended; ``rows`` says which pair each game was."""
        contract = self.contract
        number = {row: game for game, row in enumerate(rows.tolist())}
        last = max(number, default=-1)
        left = {True: SHOWN, False: SHOWN}
        for row in range(min(last + 1, DETAILED)):
            source, target = self.pairs.sources[row], self.pairs.targets[row]
            game = number.get(row)
            predicted = results.get(row, source)
            moves = self.moves.get(game, []) if game is not None else []
            how = ending(int(rollout.verdicts[game])) if game is not None else "unreadable"
            equation = contract.arithmetic and equation_holds(predicted, target)
            right = equation if contract.arithmetic else predicted == target
            expert = self.expert[row] if self.expert else None
            said = [(move.action, move.verdict) for move in moves]
            note: dict[str, Any] = {
                "source": " ".join(source),
                "target": " ".join(target),
                "predicted": " ".join(predicted),
                "token": round(token_accuracy(predicted, target), 4),
                "sequence": predicted == target,
                "equation": equation,
                "right": right,
                "steps": len(moves),
                "ended": how,
                "failure": "" if right else failure(said, expert, how, contract.game),
            }
            if expert:
                note["expert_steps"] = len(expert)
                note["replaces"] = any(action[0] == REPLACE for action in expert)
            self.rows.append(note)
            if left[right] and moves:
                left[right] -= 1
                self.games.append(self._shown(note, moves))

    def _shown(self, note: dict[str, Any], moves: list[Move]) -> dict[str, Any]:
        steps = [
            {
                "state": " ".join(move.state),
                "action": list(move.action),
                "chances": [round(chance, 4) for chance in move.probabilities],
                "verdict": move.verdict,
            }
            for move in moves
        ]
        keys = ("source", "target", "predicted", "right", "ended", "failure")
        return {key: note[key] for key in keys} | {"moves": steps}

    def to_json(self) -> dict[str, Any]:
        """The content of ``outcomes-SPLIT.json``."""
        return {"format": FORMAT, "rows": self.rows, "games": self.games}
