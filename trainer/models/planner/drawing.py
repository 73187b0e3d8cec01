"""How a planner samples its next action when it practises: places and tokens drawn from its own probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trainer.game.environment import splice
from trainer.game.play import Draw
from trainer.models.planner.decoding import NextEdits, once_each
from trainer.models.planner.edit_classes import END
from trainer.models.policy import perturbed

if TYPE_CHECKING:
    from trainer.models.planner.model import Planner


def draw_tokens(model: Planner, states: Tensor, lengths: Tensor, draw: Draw) -> Tensor:
    """A token (b) that may be written, for each state that asks for one."""
    chances = once_each(model.token_chances, states, lengths)[:, : model.mask]
    return perturbed(chances.masked_fill(~model.edits.writable, -torch.inf), draw).argmax(1)


def draw_spans(model: Planner, states: Tensor, lengths: Tensor, draw: Draw) -> NextEdits:
    """A span, then its value."""
    classes = perturbed(once_each(model.plan_chances, states, lengths), draw).argmax(1)
    tokens = torch.zeros_like(classes)
    edits = classes != END
    if edits.any():
        tokens[edits] = draw_tokens(model, *model.spans(states[edits], classes[edits]), draw)
    return NextEdits(classes, tokens, torch.zeros(len(classes), 2))


def draw_opened(model: Planner, states: Tensor, lengths: Tensor, draw: Draw) -> NextEdits:
    """The places of a whole script from left to right, then its tokens; the first edit is played."""
    states, first, token = states.clone(), torch.full_like(lengths, END), torch.zeros_like(lengths)
    cursor, live = torch.zeros_like(lengths), torch.arange(len(states), device=states.device)
    for depth in range(model.max_steps - 1):
        chances = once_each(model.plan_chances, states[live], lengths[live])
        places = torch.arange(1, chances.shape[1], device=chances.device)
        behind = model.edits.splices(places, places).start < cursor[live, None]
        chances[:, 1:] = chances[:, 1:].masked_fill(behind, -torch.inf)
        classes = perturbed(chances, draw).argmax(1)
        if not depth:
            first = classes.clone()
        going = classes != END
        live, classes = live[going], classes[going]
        if not len(live):
            break
        edits = model.edits.splices(classes, torch.full_like(classes, model.mask))
        opened, sizes = splice(states[live], lengths[live], edits, model.max_state)
        states = torch.nn.functional.pad(states, (0, opened.shape[1] - states.shape[1]))
        states[live], lengths = opened, lengths.index_put((live,), sizes)
        cursor[live] = edits.start + edits.writes.long()
    while len(waiting := (states == model.mask).any(1).nonzero()[:, 0]):
        place = (states[waiting] == model.mask).long().argmax(1, keepdim=True)
        asked = states[waiting].scatter(1, place, model.query)
        drawn = draw_tokens(model, asked, lengths[waiting], draw)
        states = states.index_put((waiting, place[:, 0]), drawn)
        fresh = (token[waiting] == 0) & model.edits.writes(first[waiting])
        token[waiting] = torch.where(fresh, drawn, token[waiting])
    return NextEdits(first, token, torch.zeros(len(first), 2))
