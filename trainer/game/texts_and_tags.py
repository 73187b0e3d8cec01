"""The rules of the baselines' games on batches of id tensors: a whole text at once, or a round of tags.

Axes: b batch, m state, n action. The interface is :class:`trainer.game.rules.Rules`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trainer.core.format import DELETE, DONE, INSERT_AFTER, KEEP, SUBSTITUTE
from trainer.data.contract import Contract
from trainer.game.environment import Verdict


class TextRules:
    """An action is the new text, ended by DONE; without DONE the steps run out, and the text counts as it is."""

    def __init__(self, contract: Contract, device: torch.device | str = "cpu") -> None:
        self.done, self.max_state = contract.action_ids[DONE], contract.max_state
        ids = [contract.state_ids.get(token, 0) for token in contract.actions]
        self.values = torch.tensor([*ids, 0], device=device)  # the last: a model's BOS

    @property
    def device(self) -> torch.device:
        return self.values.device

    def step(self, states: Tensor, lengths: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Replace every state by its action."""
        ends = actions == self.done  # (b, n)
        after = torch.where(ends.any(1), ends.int().argmax(1), actions.shape[1]).clamp(max=self.max_state)
        place = torch.arange(min(actions.shape[1], self.max_state), device=actions.device)
        inside = place < after[:, None]
        tokens = self.values[actions[:, : len(place)]]
        wrong = (inside & (tokens == 0)).any(1)
        width = max(states.shape[1], len(place))
        kept = torch.nn.functional.pad(states, (0, width - states.shape[1]))
        written = torch.nn.functional.pad(torch.where(inside, tokens, 0), (0, width - len(place)))
        verdicts = torch.where(ends.any(1), int(Verdict.DONE), int(Verdict.APPLIED))
        return (
            torch.where(wrong[:, None], kept, written),
            torch.where(wrong, lengths, after),
            torch.where(wrong, int(Verdict.WRONG_KIND), verdicts),
        )


class TagRules:
    """An action is one tag for the beginning and one for each token; all are executed at once."""

    def __init__(self, contract: Contract, device: torch.device | str = "cpu") -> None:
        self.max_state = contract.max_state
        self.keep = contract.action_ids[KEEP]
        writes, inserts, drops, allowed = [], [], [], []
        self.bos = len(contract.actions)  # what a model with a decoder input may say besides tags
        for tag in contract.actions:
            new = next((tag.removeprefix(kind) for kind in (SUBSTITUTE, INSERT_AFTER) if tag.startswith(kind)), None)
            writes.append(contract.state_ids[new] if new is not None else 0)
            inserts.append(tag.startswith(INSERT_AFTER))
            drops.append(tag == DELETE or tag.startswith(SUBSTITUTE))
            allowed.append(new is None or new in contract.writable)
        self.writes = torch.tensor([*writes, 0], device=device)  # the last of each: BOS
        self.inserts = torch.tensor([*inserts, False], device=device)
        self.drops = torch.tensor([*drops, False], device=device)
        self.allowed = torch.tensor([*allowed, True], device=device)

    @property
    def device(self) -> torch.device:
        return self.writes.device

    def step(self, states: Tensor, lengths: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Execute one round; tags after the last token are ignored."""
        tags = actions[:, : states.shape[1] + 1]  # (b, m + 1)
        slot = torch.arange(tags.shape[1], device=tags.device)
        real = slot <= lengths[:, None]
        tokens = torch.nn.functional.pad(states, (1, 0))  # (b, m + 1): nothing, then the tokens
        # Each slot may leave two tokens: its own or the one in its place, then the inserted one.
        own = torch.where(self.drops[tags], self.writes[tags], tokens)
        new = torch.where(self.inserts[tags], self.writes[tags], 0)
        cells = torch.stack((own, new), dim=2) * real[..., None]  # (b, m + 1, 2)
        cells = cells.flatten(1)
        present = cells != 0
        after = present.sum(1)
        keeps = ((tags == self.keep) | ~real).all(1)
        checks = (
            (Verdict.DONE, keeps),
            (Verdict.WRONG_KIND, self.drops[tags[:, 0]] | ((tags == self.bos) & real).any(1)),
            (Verdict.NOT_WRITABLE, (~self.allowed[tags] & real).any(1)),
            (Verdict.TOO_LONG, after > self.max_state),
        )
        verdicts = torch.full_like(lengths, int(Verdict.APPLIED))
        for verdict, applies in reversed(checks):
            verdicts = torch.where(applies, int(verdict), verdicts)
        applied = verdicts == int(Verdict.APPLIED)
        # Absent cells all go to one spare place after the rest.
        goal = torch.where(present, present.cumsum(1) - 1, cells.shape[1])
        moved = torch.zeros(len(cells), cells.shape[1] + 1, dtype=cells.dtype, device=cells.device)
        moved = moved.scatter(1, goal, cells)[:, :-1]
        width = min(moved.shape[1], self.max_state)
        kept = torch.nn.functional.pad(states, (0, max(width - states.shape[1], 0)))[:, :width]
        return (
            torch.where(applied[:, None], moved[:, :width], kept),
            torch.where(applied, after, lengths),
            verdicts,
        )
