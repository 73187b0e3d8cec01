"""The game as Gymnasium environments: ``import aegen.gym``, then ``gymnasium.make("aegen/Aor-v0", n=10, l=5)``.

An observation is the state as token numbers, padded with 0; an action is one action token for each slot. The reward
is 1 when the agent says DONE in a state that wins, else 0; a refused action costs nothing but the step. What wins is
the dataset's goal (``reward="goal"``: any true equation with the right integers, in texts the target), or the listed
target alone (``reward="target"``); texts can pay a share for what is near it (``reward="share"``). ``aegen/Text-v0``
plays the pairs of a folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aegen.arithmetic.goals import goal_of, reward, share
from aegen.arithmetic.tasks import TASKS, writable_tokens
from aegen.arithmetic.vocabulary import FIRST_INTEGER_ID, OPEN_ID, SYMBOLS, arithmetic_vocabulary
from aegen.core.actions import Design, load_design, position
from aegen.core.description import Goal
from aegen.core.environment import Environment
from aegen.core.errors import InvalidSpec, MissingExtra
from aegen.core.format import DONE, OPERATIONS, split_state
from aegen.core.types import Tokens
from aegen.dataset.contract import Contract, read_contract
from aegen.dataset.dataset import Dataset
from aegen.dataset.folder import Folder
from aegen.dataset.names import check_split
from aegen.engines.local import Local
from aegen.experts.expert import Expert
from aegen.pairs.generate import batches, plan
from aegen.pairs.spec import Spec

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise MissingExtra.of("gymnasium", "gym") from None

Observation = npt.NDArray[np.int64]


class EditGame(gymnasium.Env[Observation, npt.NDArray[np.int64]]):  # type: ignore[misc]
    """One pair is one episode: from its source to its goal.

    >>> game = EditGame(task="aor", n=10, l=5)
    >>> observation, info = game.reset(seed=1)
    >>> observation.shape, sorted(info)
    ((10,), ['goal', 'state'])
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's name and form

    def __init__(
        self,
        task: str | None = None,
        n: int = 10,
        l: int = 5,
        d: int = 1000,
        seed: int = 0,
        folder: str | Path | None = None,
        split: str = "train",
        max_steps: int | None = None,
        render_mode: str | None = None,
        reward: str = "goal",
    ) -> None:
        if reward not in ("goal", "target", "share"):
            raise InvalidSpec(f"reward={str(reward)[:60]}: expected goal, target or share")
        check_split(split)
        if folder is None:
            task = task or "aor"
            if task == "text":
                raise InvalidSpec("task=text: expected the folder of a dataset of texts")
            spec = Spec(task, n, l, d, seed)
            goal: Goal | None = goal_of(task, spec.errors, spec.l)
            self.pairs = list(_generated(spec, split))
            design, known, longest = _rules(spec)
            self.game = Environment(design, writable_tokens(task, design, known), longest)
            self.max_steps = max_steps or (spec.errors if task == "aec" else spec.l) + 1
        else:
            self.pairs, contract = _loaded(Folder(folder), split)
            if task and contract.task != task:
                raise InvalidSpec(f"{folder}: a dataset of {contract.task}, not of {task}")
            goal = contract.goal
            if goal is None and reward == "goal":
                advice = 'build it again, or use reward="target"'
                raise InvalidSpec(f"{folder}: its shards define no goal; {advice}")
            self.game = Environment(contract.design, contract.writable, contract.max_state)
            known = contract.state_tokens
            self.max_steps = max_steps or contract.max_steps
        if not self.pairs:
            raise InvalidSpec(f"split={split}: no pairs to play")
        self.wins = goal if goal and reward == "goal" else Goal("target")
        if reward == "share" and goal and goal.wins != "target":
            raise InvalidSpec("reward=share is for text; an equation holds or it does not")
        self.pays_share = reward == "share"
        slots = self.game.design.slots
        places = [position(index) for index in range(self.game.max_state + 1)]
        operations = sorted(OPERATIONS) if "operation" in slots else []
        self.tokens = ["", *sorted(known)]
        self.action_tokens = [DONE, *operations, *places, *sorted(self.game.writable)]
        self._numbers = {token: number for number, token in enumerate(self.tokens)}
        self.observation_space = spaces.MultiDiscrete([len(self.tokens)] * self.game.max_state)
        self.action_space = spaces.MultiDiscrete([len(self.action_tokens)] * len(slots))
        self.render_mode = render_mode
        self.source: Tokens = ()
        self.state: Tokens = ()
        self.goal: Tokens = ()
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin with a random pair, or with ``options={"pair": k}``."""
        super().reset(seed=seed)
        asked = (options or {}).get("pair")
        index = int(self.np_random.integers(len(self.pairs))) if asked is None else int(asked)
        self.source, self.goal = self.pairs[index]
        self.state = self.source
        self._steps = 0
        return self._observe(), self._info()

    def step(self, action: npt.NDArray[np.int64]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Execute or refuse one action."""
        outcome = self.game.step(self.state, tuple(self.action_tokens[int(number)] for number in action))
        self.state = outcome.state
        self._steps += 1
        paid = self._pay() if outcome.done else 0.0
        info = self._info() | ({"refusal": str(outcome.refusal)} if outcome.refusal else {})
        truncated = not outcome.done and self._steps >= self.max_steps
        return self._observe(), paid, outcome.done, truncated, info

    def _pay(self) -> float:
        """What DONE pays in the present state."""
        if self.pays_share:
            return share(self.state, self.goal)
        return reward(self.wins, self.source, self.state, self.goal) or 0.0

    def render(self) -> str | None:
        """The state as text."""
        return " ".join(self.state) if self.render_mode == "ansi" else None

    def encode(self, action: Tokens) -> npt.NDArray[np.int64]:
        """An action in words as the numbers that :meth:`step` takes."""
        return np.array([self.action_tokens.index(token) for token in action])

    def _observe(self) -> Observation:
        observation = np.zeros(self.game.max_state, dtype=np.int64)
        observation[: len(self.state)] = [self._numbers[token] for token in self.state]
        return observation

    def _info(self) -> dict[str, Any]:
        return {"state": " ".join(self.state), "goal": " ".join(self.goal)}


def _generated(spec: Spec, split: str) -> Iterator[tuple[Tokens, Tokens]]:
    layout = plan(spec, Local())
    for batch in batches(spec, layout, "pairs", split):
        for source, target in zip(*(batch.column(side).to_pylist() for side in ("source", "target")), strict=True):
            yield split_state(source), split_state(target)


def _rules(spec: Spec) -> tuple[Design, frozenset[str], int]:
    """Design, vocabulary and the longest state of a task."""
    symbols = SYMBOLS if spec.task == "aes" else SYMBOLS[:OPEN_ID]  # no parentheses elsewhere
    known = frozenset((*symbols, *arithmetic_vocabulary(spec.n).to_pylist()[FIRST_INTEGER_ID:]))
    longest = {"aor": 2 * spec.l, "aes": 7 * spec.l, "aec": 2 * spec.l + spec.errors}[spec.task]
    return load_design(Expert.of(spec.task).design), known, longest


def _loaded(folder: Folder, split: str) -> tuple[list[tuple[Tokens, Tokens]], Contract]:
    dataset = Dataset.open(folder)
    return list(dataset.pairs(split)), read_contract(folder, dataset.manifest, "expert")


for _task in (*TASKS, "text"):
    _name = f"aegen/{_task.capitalize()}-v0"
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point="aegen.gym:EditGame", kwargs={"task": _task})
