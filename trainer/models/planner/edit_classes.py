"""Actions of a contract as classes of a softmax, and back: what the plan network chooses from.

Class 0 is END (the action DONE); after it every place has one class for each kind of edit: its operations, or
for spans their widths. The numbering does not depend on the longest state, so batches may be of any width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainer.core.format import DELETE, DONE, INSERT
from trainer.data.contract import Contract
from trainer.game.environment import Splices

END = 0


class EditClasses(nn.Module):
    """The edits that a contract allows, as look-up tables that follow a model to its device."""

    operation_ids: Tensor
    inserts: Tensor
    deletes: Tensor
    token_of: Tensor
    action_of: Tensor
    writable: Tensor

    def __init__(self, contract: Contract, span: int) -> None:
        super().__init__()
        self.slots, self.span = contract.slots, span
        self.spans = "left" in contract.slots
        self.operations = contract.operations if "operation" in contract.slots else (INSERT,)
        self.kinds = span if self.spans else len(self.operations)
        self.position = contract.action_ids["POS_0"]
        self.done = contract.action_ids[DONE]
        ids = contract.state_ids
        action_of = [0] * (len(ids) + 1)
        writable = [False] * (len(ids) + 1)
        for action, name in enumerate(contract.actions):
            if name in ids and name in contract.writable:
                action_of[ids[name]], writable[ids[name]] = action, True
        tables = {
            "operation_ids": [contract.action_ids.get(name, 0) for name in self.operations],
            "inserts": [name == INSERT for name in self.operations],
            "deletes": [name == DELETE for name in self.operations],
            "token_of": [ids.get(name, 0) for name in contract.actions],  # action token → state token
            "action_of": action_of,  # and back, for what demonstrations write
            "writable": writable,
        }
        for name, table in tables.items():
            self.register_buffer(name, torch.tensor(table), persistent=False)

    def slot(self, actions: Tensor, name: str) -> Tensor:
        """One slot of some actions."""
        return actions[:, self.slots.index(name)]

    def classes(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """The place classes of demonstrated actions, and the state tokens that they write (0 for none)."""
        if self.spans:
            left, right = (self.slot(actions, name) - self.position for name in ("left", "right"))
            found = 1 + left * self.span + (right - left)
        else:
            found = 1 + (self.slot(actions, "position") - self.position) * self.kinds
            if "operation" in self.slots:
                found = found + (self.slot(actions, "operation")[:, None] == self.operation_ids).long().argmax(1)
        done = self.slot(actions, "token") == self.done
        return found.masked_fill(done, END), self.token_of[self.slot(actions, "token")]

    def splices(self, classes: Tensor, new: Tensor) -> Splices:
        """What classes other than END do to a state, writing ``new``."""
        start, kind = (classes - 1) // self.kinds, (classes - 1) % self.kinds
        if self.spans:
            return Splices(start, start + kind + 1, new, torch.ones_like(start, dtype=torch.bool))
        inserts, deletes = self.inserts[kind], self.deletes[kind]
        return Splices(start, start + (~inserts).long(), new, ~deletes)

    def writes(self, classes: Tensor) -> Tensor:
        """Whether an edit writes a token."""
        return self.splices(classes.clamp(min=1), classes).writes & (classes != END)

    def allowed(self, lengths: Tensor, places: int, max_state: int) -> Tensor:
        """The classes that the environment would not refuse, whatever they write: (b, 1 + places · kinds)."""
        classes = torch.arange(1, 1 + places * self.kinds, device=lengths.device)
        edits = self.splices(classes, classes)
        removed = edits.stop - edits.start
        fits = edits.stop <= lengths[:, None]
        fits &= (lengths[:, None] - removed + edits.writes.long()) <= max_state
        return torch.cat((torch.ones_like(fits[:, :1]), fits), 1)

    def actions(self, classes: Tensor, tokens: Tensor) -> Tensor:
        """The actions (b, n) for classes and the state tokens to write."""
        edit = classes.clamp(min=1)
        start, kind = (edit - 1) // self.kinds, (edit - 1) % self.kinds
        parts = {"position": self.position + start, "left": self.position + start}
        parts["right"] = self.position + start + kind
        parts["token"] = self.action_of[tokens]
        if "operation" in self.slots:
            parts["operation"] = self.operation_ids[kind]
            deletes = self.deletes[kind]
            parts["token"] = torch.where(deletes, parts["position"], parts["token"])
        found = torch.stack([parts[name] for name in self.slots], 1)
        return torch.where((classes == END)[:, None], self.done, found)
