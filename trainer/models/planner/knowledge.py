"""What the planner knows of its data besides the contract: found in the demonstrations, stored with the weights."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

import torch
from msgspec import Meta
from msgspec.structs import replace
from torch import Tensor

from trainer.core.config import Config
from trainer.core.errors import BadData, InvalidConfig
from trainer.core.format import MAX_STATE
from trainer.data.contract import Contract
from trainer.data.encode import Steps
from trainer.models.planner.spelling import FREQUENT, KNOWN, share_characters
from trainer.models.policy import Knowledge

View = Literal["scripts", "span", "opened"]
Tokens = Literal["whole", "characters"]

REACH = 48  # tokens that a network reads from each end of a state, at most
WINDOW = 4  # tokens on each side of the place that is asked for,
# Where states are longer than that: else the two ends show it better (AEC, validation: with 13 tokens 64.2 without and
# 62.7 with, with 17 tokens 51.3 and 39.6).
NEAR = 24
SPAN = 64  # tokens that one action replaces, at most
# Whole scripts are classes where each has as many demonstrations on average. AOR with 1,000 pairs has just that:
# 33.3 in validation, 19.3 without.
PAIRS_PER_SCRIPT = 10
MAX_SCRIPTS = 1 << 14

Edit = tuple[Annotated[int, Meta(ge=0, le=MAX_STATE)], Annotated[int, Meta(ge=1)]]
Script = tuple[Edit, ...]  # (position in the source, id of the state token to write there)


class PlannerKnowledge(Knowledge, frozen=True):
    """Sizes of the networks, and for the view ``scripts`` the scripts themselves."""

    view: View
    reach: Annotated[int, Meta(ge=1, le=REACH)]  # tokens that the token network reads from each end
    plan_reach: Annotated[int, Meta(ge=1, le=REACH)]  # tokens that the plan network reads from each end
    span: Annotated[int, Meta(ge=1, le=SPAN)] = 1  # widest span that an action replaces
    written: tuple[Annotated[int, Meta(ge=1)], ...] = ()  # tokens that no source has: the agent's own
    scripts: Annotated[tuple[Script, ...], Meta(max_length=MAX_SCRIPTS)] = ()
    window: Annotated[int, Meta(ge=0, le=WINDOW)] = 0  # tokens on each side of the place that is asked for
    tokens: Tokens = "whole"  # how tokens are read and written
    own: tuple[Annotated[int, Meta(ge=1)], ...] = ()  # spelled tokens that are read and written as wholes, too
    goals: Annotated[int, Meta(ge=0)] = 0  # distinct ones of the demonstrations; 0: found before they counted

    def check(self, contract: Contract, where: str) -> None:
        """Refuse ids, positions and views that the contract does not have."""
        tokens = len(contract.state_tokens)
        if max(self.written, default=0) > tokens:
            raise BadData(f"{where}: field written: expected token ids <= {tokens}")
        if max(self.own, default=0) > tokens:
            raise BadData(f"{where}: field own: expected token ids <= {tokens}")
        for script in self.scripts:
            if len(script) > contract.max_steps:
                raise BadData(f"{where}: field scripts: expected at most {contract.max_steps} edits in a script")
            if any(position > contract.max_state or token > tokens for position, token in script):
                raise BadData(f"{where}: field scripts: a position or token is not in the contract")
        if self.view == "scripts" and (contract.slots != ("position", "token") or not self.scripts):
            raise BadData(f"{where}: field view: scripts requires the slots (position, token) and at least one script")
        if (self.view == "span") != ("left" in contract.slots):
            raise BadData(f"{where}: field view: expected span if and only if the slots are left, right, token")


def study(steps: Steps, contract: Contract, config: Config) -> PlannerKnowledge:
    """Choose the view, and how tokens are read and written.

    Tokens are read and written through their characters where the vocabulary has at least two for each distinct
    character and place, and half of them stand fewer than 250 times in the distinct goals. Those that stand 100 times
    in the distinct training states have a row of their own besides. Elsewhere tokens are whole.
    """
    found = replace(choose_view(steps, contract, config), goals=len(goals_of(steps)))
    if config.tokens == "whole" or (config.tokens == "auto" and not worth_spelling(steps, contract)):
        return found
    frequent = (times_seen(steps.states, contract) >= FREQUENT).nonzero()[:, 0]
    return replace(found, tokens="characters", own=tuple(frequent.tolist()))


def worth_spelling(steps: Steps, contract: Contract) -> bool:
    """Whether tokens share their characters and are too rare in goals to be learned as wholes.

    Goals are counted, for shifted states lead to the same ones: the answer does not depend on augmentation.
    """
    typical = int(times_seen(steps.states[goals_of(steps)], contract)[1:].median())
    return share_characters(contract.state_tokens) and typical < KNOWN


def goals_of(steps: Steps) -> Tensor:
    """The distinct states in which trajectories end."""
    goals: Tensor = torch.unique(steps.state_of[steps.taken[steps.starts[1:] - 1]])
    return goals


def times_seen(states: Tensor, contract: Contract) -> Tensor:
    """How often each token stands in some states, by its id; the padding counts as 0."""
    seen = torch.bincount(states.flatten().long(), minlength=len(contract.state_tokens) + 1)
    return seen.index_fill(0, torch.tensor([0]), 0)


def choose_view(steps: Steps, contract: Contract, config: Config) -> PlannerKnowledge:
    """Choose the view by a rule that looks at nothing but the slots and the demonstrations.

    - ``span``: the slots are left, right, token. The token network sees only the span, which the new token
      replaces.
    - ``scripts``: the slots are position, token; what is written never occurs in a source; and each of the
      distinct whole scripts has at least 10 demonstrations on average. One softmax over them.
    - ``opened``: all else. The token network sees the state with every planned edit opened by a mask.
    """
    longest = int(steps.lengths.max())
    spans = "left" in contract.slots
    if config.view != "auto" and (config.view == "span") != spans:
        raise InvalidConfig(f"field view: {config.view} does not fit these demonstrations; use auto")
    if spans:
        left, right = (read_positions(steps.actions, contract, name) for name in ("left", "right"))
        widest = int((right - left).max()) + 1 if len(steps) else 1
        if widest > SPAN:
            raise InvalidConfig(f"the widest action replaces {widest} tokens, the planner learns at most {SPAN}")
        widest = max(widest, 1)
        return PlannerKnowledge("span", widest, min(longest, REACH), widest)
    if contract.slots == ("position", "token") and config.view in ("auto", "scripts"):
        written, scripts, count, reach = find_scripts(steps, contract)
        if scripts and (config.view == "scripts" or len(scripts) * PAIRS_PER_SCRIPT <= count):
            return PlannerKnowledge("scripts", reach, 1, 1, written, scripts)
    if config.view == "scripts":
        raise InvalidConfig(f"field view: {config.view} does not fit these demonstrations; use auto")
    reach = min(max(longest, 1), REACH)
    return PlannerKnowledge("opened", reach, reach, window=WINDOW if longest > NEAR else 0)


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
