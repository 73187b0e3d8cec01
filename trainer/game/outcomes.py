"""How each game of an evaluation went: what a report counts, and some games to step through.

A wrong game is classified by its first action that differs from the expert's. Where a text has more than one right
result this is a convention; the action itself need not be wrong. What is recorded is bounded, so that whoever reads the
file accepts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import pyarrow.compute as pc
from msgspec import Meta, Struct
from torch import Tensor

from trainer.core.errors import BadData
from trainer.core.format import DONE, KEEP, MAX_STATE, POSITION, REPLACE, STEP_COLUMNS, SplitName
from trainer.core.records import MAX_BYTES
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset, Shard
from trainer.data.demonstrations import HELD_OUT
from trainer.data.encode import Pairs, check_size, one_chunk
from trainer.game.accuracy import equation_holds
from trainer.game.environment import Verdict
from trainer.game.moves import Move, read_moves
from trainer.game.play import GameStep, Rollout, ending

OUTCOMES_FORMAT = 1
DETAILED = 20_000  # games recorded one by one; the accuracies count all
TOKEN_BYTES = 64  # of the expert's actions, in memory
SHOWN = 6  # right games, and as many wrong ones, that are kept step by step
MAX_ROWS = MAX_BYTES // 2  # bytes of all rows,
MAX_GAME = MAX_BYTES // 64  # and of a game that is kept
UNREADABLE = "unreadable"
FAILURES = ("wrong position", "wrong token", "stopped early", "never stopped", "refused", UNREADABLE)

Actions = list[tuple[str, ...]]
Place = Annotated[int, Meta(ge=0, lt=MAX_STATE)]


class Outcome(Struct, frozen=True, omit_defaults=True):
    """How one game of an evaluation ended."""

    source: str
    target: str
    right: bool
    failure: str  # empty, or one of FAILURES
    expert_steps: Annotated[int, Meta(ge=0)] | None = None
    replaces: bool = False  # whether the expert does


class MoveRecord(Struct, frozen=True):
    """One step of a game; ``removed`` are places in its state, ``written`` places in the next one."""

    state: str
    action: list[str]
    chances: list[float]
    verdict: str
    removed: list[Place] = []
    written: list[Place] = []

    def __post_init__(self) -> None:
        if len(self.action) != len(self.chances):
            raise ValueError(f"{len(self.chances)} chances for {len(self.action)} action tokens")


class GameRecord(Struct, frozen=True):
    """A game to step through."""

    source: str
    target: str
    predicted: str
    right: bool
    failure: str
    moves: list[MoveRecord]
    tokens: Literal["words", "chars"] = "words"


class OutcomesRecord(Struct, frozen=True):
    """The content of ``outcomes-SPLIT.json``."""

    rows: list[Outcome] = []
    games: list[GameRecord] = []


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
        return UNREADABLE
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
    rows: list[Outcome] = field(default_factory=list)
    games: list[GameRecord] = field(default_factory=list)

    def watch(self, step: GameStep) -> None:
        """Record one step of the games that have not ended."""
        for game, move in read_moves(step, self.contract, DETAILED):
            self.moves.setdefault(game, []).append(move)

    def ended(self, rows: range, played: Tensor, rollout: Rollout, results: dict[int, tuple[str, ...]]) -> None:
        """Record how the rows ended, those that could not be played included."""
        number = {row: game for game, row in enumerate(played.tolist())}
        left, size = {True: SHOWN, False: SHOWN}, 0
        for row in rows[:DETAILED]:
            game = number.get(row)
            moves = self.moves.get(game, []) if game is not None else []
            how = ending(int(rollout.verdicts[game])) if game is not None else UNREADABLE
            predicted = results.get(row, self.pairs.sources[row])
            outcome = self._judged(row, predicted, moves, how)
            size += len(msgspec.json.encode(outcome)) + 1
            if size > MAX_ROWS:
                break
            self.rows.append(outcome)
            if left[outcome.right] and moves:
                shown = self._shown(outcome, predicted, moves)
                if len(msgspec.json.encode(shown)) <= MAX_GAME:
                    left[outcome.right] -= 1
                    self.games.append(shown)

    def _judged(self, row: int, predicted: tuple[str, ...], moves: list[Move], how: str) -> Outcome:
        source, target = self.pairs.sources[row], self.pairs.targets[row]
        right = equation_holds(predicted, target) if self.contract.arithmetic else predicted == target
        expert = self.expert[row] if self.expert else None
        said = [(move.action, move.verdict) for move in moves]
        return Outcome(
            " ".join(source),
            " ".join(target),
            right,
            "" if right else failure(said, expert, how, self.contract.game),
            len(expert) if expert else None,
            any(action[0] == REPLACE for action in expert or ()),
        )

    def _shown(self, outcome: Outcome, predicted: tuple[str, ...], moves: list[Move]) -> GameRecord:
        steps = [
            MoveRecord(
                " ".join(move.state),
                list(move.action),
                [round(chance, 4) for chance in move.probabilities],
                move.verdict,
                [*move.removed],
                [*move.written],
            )
            for move in moves
        ]
        said, tokens = " ".join(predicted), self.contract.tokens
        return GameRecord(outcome.source, outcome.target, said, outcome.right, outcome.failure, steps, tokens)

    def to_json(self) -> bytes:
        """The content of ``outcomes-SPLIT.json``."""
        return msgspec.json.encode({"format": OUTCOMES_FORMAT, "rows": self.rows, "games": self.games}) + b"\n"
