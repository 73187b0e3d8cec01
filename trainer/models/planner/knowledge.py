"""What the planner knows of its data besides the contract: found in the demonstrations, kept with the weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from trainer.core.config import Config
from trainer.core.errors import BadData, InvalidConfig
from trainer.core.format import MAX_STATE
from trainer.data.contract import Contract, Fields
from trainer.data.encode import Steps

View = Literal["scripts", "span", "opened"]
VIEWS: tuple[View, ...] = ("scripts", "span", "opened")

REACH = 48  # tokens that a network reads from each end of a state, at most
WINDOW = 4  # tokens on each side of the place that is asked for,
NEAR = 16  # where states are longer than that: else the two ends show it well enough (AEC: 64.2 without, 62.7 with)
SPAN = 64  # tokens that one action replaces, at most
PAIRS_PER_SCRIPT = 50  # whole scripts are classes where each has as many demonstrations on average
MAX_SCRIPTS = 1 << 14

Script = tuple[tuple[int, int], ...]  # (position in the source, id of the state token to write there)


@dataclass(frozen=True)
class Knowledge:
    """Sizes of the networks, and for the view ``scripts`` the scripts themselves."""

    view: View
    reach: int  # tokens that the token network reads from each end
    plan_reach: int  # tokens that the plan network reads from each end
    span: int = 1  # widest span that an action replaces
    written: tuple[int, ...] = ()  # tokens that no source has: what the agent wrote itself
    scripts: tuple[Script, ...] = ()
    window: int = 0  # tokens on each side of the place that is asked for

    @classmethod
    def parse(cls, values: object, contract: Contract, where: str) -> Knowledge:
        """Check every field of knowledge that came from outside."""
        if not isinstance(values, dict):
            raise BadData(f"{where}: field 'knowledge': an object is needed")
        read = Fields(values, f"{where}: knowledge")
        tokens = len(contract.state_tokens)
        written, scripts = values.get("written"), values.get("scripts")
        if not isinstance(written, list) or not all(is_whole(token, 1, tokens) for token in written):
            raise read.wrong("written", "a list of token ids")
        if not isinstance(scripts, list) or len(scripts) > MAX_SCRIPTS:
            raise read.wrong("scripts", f"a list of at most {MAX_SCRIPTS} scripts")
        for script in scripts:
            if not isinstance(script, list) or len(script) > contract.max_steps or not all(map(is_edit, script)):
                raise read.wrong("scripts", "lists of [position, token]")
            if not all(position <= contract.max_state and token <= tokens for position, token in script):
                raise read.wrong("scripts", "positions and tokens of the contract")
        view = read.choice("view", VIEWS)
        if view == "scripts" and (contract.slots != ("position", "token") or not scripts):
            raise read.wrong("view", "scripts need the slots (position, token) and scripts to choose from")
        if (view == "span") != ("left" in contract.slots):
            raise read.wrong("view", "span goes with the slots left and right, and only with them")
        return cls(
            view,  # type: ignore[arg-type]
            read.number("reach", 1, min(REACH, MAX_STATE)),
            read.number("plan_reach", 1, min(REACH, MAX_STATE)),
            read.number("span", 1, SPAN),
            tuple(written),
            tuple(tuple((position, token) for position, token in script) for script in scripts),
            read.number("window", 0, WINDOW),
        )

    def to_json(self) -> dict[str, Any]:
        """The same fields as a plain object that :meth:`parse` reads."""
        scripts = [[list(edit) for edit in script] for script in self.scripts]
        return asdict(self) | {"written": list(self.written), "scripts": scripts}


def is_whole(value: object, least: int, most: int) -> bool:
    """Whether a value is a whole number within limits."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_edit(value: object) -> bool:
    """Whether a JSON value has the form [position, token]."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    return is_whole(value[0], 0, MAX_STATE) and is_whole(value[1], 1, 1 << 30)


def survey(steps: Steps, contract: Contract, config: Config) -> Knowledge:
    """Choose the view, by a rule that looks at the slots and at the demonstrations alone.

    - ``span``: the slots are left, right, token. The token network sees the span only, for that is what the new
      token replaces.
    - ``scripts``: the slots are position, token; what is written never occurs in a source; and each of the
      distinct whole scripts has 50 demonstrations on average. One softmax over them.
    - ``opened``: all else. The token network sees the state with every planned edit opened by a mask.
    """
    longest = int(steps.lengths.max())
    if "left" in contract.slots:
        left, right = (read_positions(steps.actions, contract, name) for name in ("left", "right"))
        widest = int((right - left).max()) + 1 if len(steps) else 1
        if widest > SPAN:
            raise InvalidConfig(f"an action replaces {widest} tokens at once, the planner learns at most {SPAN}")
        widest = max(widest, 1)
        return Knowledge("span", widest, min(longest, REACH), widest)
    if contract.slots == ("position", "token") and config.view in ("auto", "scripts"):
        written, scripts, count, reach = find_scripts(steps, contract)
        if scripts and (config.view == "scripts" or len(scripts) * PAIRS_PER_SCRIPT <= count):
            return Knowledge("scripts", reach, 1, 1, written, scripts)
    if config.view in ("scripts", "span"):
        raise InvalidConfig(f"view {config.view}: these demonstrations do not allow it")
    reach = min(max(longest, 1), REACH)
    return Knowledge("opened", reach, reach, window=WINDOW if longest > NEAR else 0)


def read_positions(actions: Tensor, contract: Contract, slot: str) -> Tensor:
    """The positions in a slot of all actions (DONE counts as 0)."""
    base = contract.action_ids["POS_0"]
    return (actions[:, contract.slots.index(slot)].long() - base).clamp(min=0)


def whole_scripts(steps: Steps, contract: Contract) -> tuple[Tensor, list[Script], tuple[int, ...]]:
    """The trajectories that begin at a source, their scripts in the source's positions, and what only they write.

    A shifted state has some of the script written already; since no source has such tokens, it can be told.
    """
    first = steps.taken[steps.starts[:-1]]
    token_of = torch.tensor([contract.state_ids.get(name, 0) for name in contract.actions])
    tokens = token_of[steps.actions[:, 1].long()]
    count = len(contract.state_tokens) + 1
    written = torch.zeros(count, dtype=torch.bool)
    written[tokens] = True
    written[0] = False
    starts = steps.states[steps.state_of[first]].long()
    fresh = ~written[starts].any(1)
    positions = read_positions(steps.actions, contract, "position")
    scripts = []
    for trajectory in fresh.nonzero()[:, 0].tolist():
        rows = steps.taken[steps.starts[trajectory] : steps.starts[trajectory + 1]]
        edits = zip(positions[rows].tolist(), tokens[rows].tolist(), strict=True)
        # Each edit before has moved the rest by one; edits go from left to right.
        scripts.append(tuple((position - moved, token) for moved, (position, token) in enumerate(edits) if token))
    return starts[fresh], scripts, tuple(written.nonzero()[:, 0].tolist())


def find_scripts(steps: Steps, contract: Contract) -> tuple[tuple[int, ...], tuple[Script, ...], int, int]:
    """What only scripts write, the distinct scripts, how many sources there are, and the longest source."""
    sources, scripts, written = whole_scripts(steps, contract)
    ordered = all(one[0] <= two[0] for script in set(scripts) for one, two in pairwise(script))
    distinct = tuple(sorted(set(scripts)))
    if not ordered or not scripts or len(distinct) > MAX_SCRIPTS:
        return (), (), 0, 0
    return written, distinct, len(scripts), min(int((sources > 0).sum(1).max()), REACH) or 1
