"""How a planner chooses its next action: the first edit of the most probable whole script.

Every step of a game is greedy: one action, from the agent's own probabilities, through the environment, and a
new plan after it. It looks at no outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trainer.game.environment import splice
from trainer.game.play import Draw
from trainer.models.planner.edit_classes import END
from trainer.models.policy import perturbed

if TYPE_CHECKING:
    from trainer.models.planner.model import Planner


@dataclass(frozen=True)
class Search:
    """How many plans are followed."""

    cut: float  # log-probability behind the best plan of the game at which a plan is dropped
    branch: int  # next places to consider


WIDE = Search(cut=4.5, branch=8)
# Long states have many places, and each is a question to the token network. In spelling this halves them, from 912 to
# 487 a word (66 words a second instead of 41), and 219 of 650 words are right instead of 218.
NARROW = Search(cut=2.5, branch=4)
FILL_BRANCH, FILL_BEAM = 4, 16  # tokens to consider for a mask, and fillings to keep


@dataclass(frozen=True)
class NextEdits:
    """The next edit of each game."""

    classes: Tensor  # (b) place class
    tokens: Tensor  # (b) state token to write; 0 for none
    chances: Tensor  # (b, 2) log-probability of the place, and of the token


def best_of_each(game: Tensor, score: Tensor, count: int) -> Tensor:
    """The rows with the best scores of each game, at most ``count`` each, by game and then by score.

    >>> best_of_each(torch.tensor([0, 1, 0, 0]), torch.tensor([1.0, 5.0, 3.0, 2.0]), 2).tolist()
    [2, 3, 1]
    """
    order = score.argsort(descending=True, stable=True)
    order = order[game[order].argsort(stable=True)]
    sorted_game = game[order]
    place = torch.arange(len(order), device=order.device)
    new = torch.ones_like(sorted_game, dtype=torch.bool)
    new[1:] = sorted_game[1:] != sorted_game[:-1]
    first = torch.where(new, place, 0).cummax(0).values
    return order[place - first < count]


def compact(states: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Only the kept tokens of each state, moved to the left, and how many they are."""
    order = (~kept).long().argsort(dim=1, stable=True)
    lengths = kept.sum(1)
    place = torch.arange(states.shape[1], device=states.device)
    return states.gather(1, order).masked_fill(place >= lengths[:, None], 0), lengths


def decode_scripts(model: Planner, states: Tensor, lengths: Tensor, draw: Draw | None = None) -> NextEdits:
    """The best script, or with ``draw`` a sampled one, that agrees with the state; its leftmost edit that is missing.

    A state agrees with a script if it is a source with some of the script's edits made: then what the agent
    wrote stands where the script writes it.
    """
    valid = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
    own = model.written[states] & valid  # (b, m)
    source, source_lengths = compact(states, valid & ~own)
    chances = once_each(model.token_chances, source, source_lengths)  # (b, s)
    gap = (valid & ~own).long().cumsum(1)  # source tokens before or at a place
    rows = torch.arange(len(states), device=states.device)[:, None]
    made = torch.zeros_like(chances, dtype=torch.long)  # edits of a script that the state has
    agrees = torch.ones_like(chances, dtype=torch.bool)
    place = torch.full_like(made, -1)  # of the first edit that is missing
    token = torch.zeros_like(made)
    before = torch.zeros_like(made)  # edits to the left of it that the state has
    for edit in range(model.script_tokens.shape[1]):
        position, new = model.script_positions[:, edit], model.script_tokens[:, edit]  # (s)
        real = (new > 0).expand_as(made)
        at = position + made  # (b, s) where the state would have it
        looked = at.clamp(max=states.shape[1] - 1)
        there = real & (at < lengths[:, None]) & own[rows, looked] & (states[rows, looked] == new)
        there &= gap[rows, looked] == position
        missing = real & ~there & (place < 0)
        before = torch.where(missing, made, before)
        place, token = torch.where(missing, at, place), torch.where(missing, new, token)
        agrees &= ~real | (position <= source_lengths[:, None])
        made = made + there.long()
    agrees &= made == own.sum(1, keepdim=True)
    if draw is not None:  # edits go from left to right: then a game is a draw of one script, edit by edit
        agrees &= (place < 0) | (before == made)
    some = agrees.any(1)
    chances = torch.where(some[:, None], chances.masked_fill(~agrees, -torch.inf), chances).log_softmax(1)
    best = (chances if draw is None else perturbed(chances, draw)).argmax(1)
    chance = chances.gather(1, best[:, None])[:, 0]
    at, new = place.gather(1, best[:, None])[:, 0], token.gather(1, best[:, None])[:, 0]
    going_on = some & (at >= 0)
    classes = torch.where(going_on, 1 + at * model.edits.kinds, END)
    return NextEdits(classes, torch.where(going_on, new, 0), torch.stack((chance, chance), 1))


def once_each(chances: Callable[[Tensor, Tensor], Tensor], states: Tensor, lengths: Tensor) -> Tensor:
    """What a network says of states (b, m), asked once for each distinct one: games from one source share many."""
    if len(states) < 2:
        return chances(states, lengths)
    distinct, which = torch.unique(states, dim=0, return_inverse=True)
    if 2 * len(distinct) > len(states):
        return chances(states, lengths)
    sizes = torch.zeros(len(distinct), dtype=lengths.dtype, device=lengths.device).index_copy_(0, which, lengths)
    return chances(distinct, sizes)[which]


def tokens_to_write(model: Planner, states: Tensor, lengths: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The most probable tokens that may be written, (b, count) log-probabilities and state tokens."""
    chances = model.token_chances(states, lengths)[:, : model.mask]
    best = chances.masked_fill(~model.edits.writable, -torch.inf).topk(min(count, model.mask), 1)
    return best.values, best.indices


def decode_spans(model: Planner, states: Tensor, lengths: Tensor) -> NextEdits:
    """The most probable pair of a span and its value."""
    chances = model.plan_chances(states, lengths)  # (b, c)
    best = chances.topk(min(WIDE.branch if model.beam > 1 else 1, chances.shape[1]), 1)
    likely = best.values >= best.values[:, :1] - WIDE.cut
    games, _ = likely.nonzero(as_tuple=True)
    classes, place_chance = best.indices[likely], best.values[likely]
    token_chance, token = torch.zeros_like(place_chance), torch.zeros_like(classes)
    edits = classes != END
    if edits.any():
        spans, widths = model.spans(states[games[edits]], classes[edits])
        found, tokens = tokens_to_write(model, spans, widths, 1)
        token_chance[edits], token[edits] = found[:, 0], tokens[:, 0]
    kept = best_of_each(games, place_chance + token_chance, 1)
    return NextEdits(classes[kept], token[kept], torch.stack((place_chance[kept], token_chance[kept]), 1))


@dataclass(frozen=True)
class Sketches:
    """Scripts in the making: states with the planned edits opened, and the first edit of each."""

    game: Tensor
    score: Tensor  # log-probability so far
    states: Tensor
    lengths: Tensor
    cursor: Tensor  # edits go from left to right: where the next one may be
    first: Tensor  # place class of the first edit, END if there is none
    chance: Tensor  # its log-probability
    token: Tensor  # what it writes, when that is known
    token_chance: Tensor

    def pick(self, rows: Tensor) -> Sketches:
        """Some of them."""
        return Sketches(*(tensor[rows] for tensor in vars(self).values()))

    def change(self, **tensors: Tensor) -> Sketches:
        """With some tensors changed."""
        return Sketches(**(vars(self) | tensors))

    @classmethod
    def join(cls, parts: list[Sketches]) -> Sketches:
        """Several as one, padded to the widest."""
        width = max(part.states.shape[1] for part in parts)
        pad = torch.nn.functional.pad
        parts = [part.change(states=pad(part.states, (0, width - part.states.shape[1]))) for part in parts]
        return cls(*(torch.cat(tensors) for tensors in zip(*(vars(part).values() for part in parts), strict=True)))


def decode_opened(model: Planner, states: Tensor, lengths: Tensor) -> NextEdits:
    """The first edit of the most probable script: first where its edits are, then what they write."""
    zero = torch.zeros_like(lengths)
    nothing = torch.zeros(len(states), device=states.device)
    games = torch.arange(len(states), device=states.device)
    going = Sketches(games, nothing, states, lengths, zero, zero + END, nothing, zero, nothing)
    finished, top = [], torch.full_like(nothing, -torch.inf)
    for depth in range(model.max_steps):
        last = depth == model.max_steps - 1
        ended, going = extend(model, going, last)
        finished.append(ended)
        # A sketch only grows less probable: one that is far behind a finished plan will not catch up.
        top = top.scatter_reduce(0, ended.game, ended.score, "amax")
        going = going.pick(going.score >= top[going.game] - model.search.cut)
        if not len(going.game):
            break
    plans = Sketches.join(finished)
    best = fill(model, plans.pick(best_of_each(plans.game, plans.score, model.beam)))
    best = best.pick(best_of_each(best.game, best.score, 1))
    return NextEdits(best.first, best.token, torch.stack((best.chance, best.token_chance), 1))


def extend(model: Planner, going: Sketches, last: bool) -> tuple[Sketches, Sketches]:
    """Sketches that end here, and those with one more edit opened; with ``last`` all end here."""
    chances = model.plan_chances(going.states, going.lengths)  # (k, c)
    if last:
        chances[:, 1:] = -torch.inf
    count = min(model.search.branch if model.beam > 1 else 1, chances.shape[1])
    places = torch.arange(1, chances.shape[1], device=chances.device)
    start = model.edits.splices(places, places).start
    chances[:, 1:] = chances[:, 1:].masked_fill(start < going.cursor[:, None], -torch.inf)
    best = chances.topk(count, 1)
    score = going.score[:, None] + best.values  # (k, count)
    games = int(going.game.max()) + 1
    top = score.new_full((games,), -torch.inf).scatter_reduce(0, going.game, score[:, 0], "amax")
    row, column = ((score >= top[going.game][:, None] - model.search.cut) & (score > -torch.inf)).nonzero(as_tuple=True)
    sketches, classes = going.pick(row), best.indices[row, column]
    chance = best.values[row, column]
    begins = sketches.first == END
    sketches = sketches.change(
        score=score[row, column],
        first=torch.where(begins, classes, sketches.first),
        chance=torch.where(begins, chance, sketches.chance),
    )
    ends = classes == END
    ended, more, classes = sketches.pick(ends), sketches.pick(~ends), classes[~ends]
    kept = best_of_each(more.game, more.score, model.beam)
    more, classes = more.pick(kept), classes[kept]
    if len(classes):
        edits = model.edits.splices(classes, torch.full_like(classes, model.mask))
        opened, sizes = splice(more.states, more.lengths, edits, model.max_state)
        more = more.change(states=opened, lengths=sizes, cursor=edits.start + edits.writes.long())
    return ended, more


def fill(model: Planner, plans: Sketches) -> Sketches:
    """Fill the masks of sketches from left to right; the first one belongs to the first edit, if it writes."""
    full = []
    branch = FILL_BRANCH if model.beam > 1 else 1
    while len(plans.game):
        open_ = (plans.states == model.mask).any(1)
        full.append(plans.pick(~open_))
        plans = plans.pick(open_)
        if not len(plans.game):
            break
        place = (plans.states == model.mask).long().argmax(1, keepdim=True)
        asked = plans.states.scatter(1, place, model.query)
        chances, tokens = tokens_to_write(model, asked, plans.lengths, branch)
        row, column = (chances > -torch.inf).nonzero(as_tuple=True)
        chance, token, place = chances[row, column], tokens[row, column], place[row]
        plans = plans.pick(row)
        begins = (plans.token == 0) & model.edits.writes(plans.first)
        plans = plans.change(
            score=plans.score + chance,
            states=plans.states.scatter(1, place, token[:, None]),
            token=torch.where(begins, token, plans.token),
            token_chance=torch.where(begins, chance, plans.token_chance),
        )
        plans = plans.pick(best_of_each(plans.game, plans.score, FILL_BEAM if model.beam > 1 else 1))
    return Sketches.join(full)
