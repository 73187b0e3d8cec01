"""Tags: one for the beginning of a text, then one for each token. All of a text are executed at once.

A tag is an edit of the editor: it deletes its token, writes another in its place, or inserts one behind it.

Axes: b batch, m state, e edits that write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional

from trainer.core.errors import BadData
from trainer.data.contract import Contract, OpenContract
from trainer.models.editor.edits import Edit, EditClasses, EditorKnowledge
from trainer.models.editor.trajectories import Trajectories

KEEP, DELETE, OTHER = range(3)  # OTHER: an edit that no tag makes; those that write follow
FIRST = 3
MOST = 5000  # tags that write, as many as GECToR has: the most frequent ones


class TaggerKnowledge(EditorKnowledge, frozen=True):
    """What the tagger must know of its data."""

    # Of each tag that writes: twice the class of its word, and one more if it inserts it.
    tags: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(max_length=MOST)] = ()

    def check(self, contract: Contract, where: str) -> None:
        super().check(contract, where)
        if self.span:
            raise BadData(f"{where}: field span: tags have no spans")
        assert isinstance(contract, OpenContract)
        if self.tags != tuple(sorted({*self.tags})):
            raise BadData(f"{where}: field tags: expected ascending numbers")
        if self.tags and self.tags[-1] >= 2 * EditClasses(contract, self).word_classes:
            raise BadData(f"{where}: field tags: {self.tags[-1]} is beyond the words of the contract")


def most_frequent(shown: Trajectories) -> tuple[int, ...]:
    """The tags that write, of those that demonstrations show."""
    counts: Counter[int] = Counter()
    for step, edit in enumerate(shown.edits):
        if edit and edit.new is not None:
            counts[2 * shown.classes.answer(edit, shown.state(step)) + (edit.start == edit.stop)] += 1
    return tuple(sorted(sorted(counts, key=lambda tag: (-counts[tag], tag))[:MOST]))


class Tags(nn.Module):
    """The classes of tags, from and to edits."""

    number: Tensor  # (2 * words) the class of every tag that might write

    def __init__(self, classes: EditClasses, tags: Sequence[int]) -> None:
        super().__init__()
        self.classes, self.tags = classes, tags
        number = torch.full((2 * classes.word_classes,), OTHER)
        number[torch.tensor(tags, dtype=torch.long)] = torch.arange(FIRST, len(self))
        self.register_buffer("number", number, persistent=False)

    def __len__(self) -> int:
        return FIRST + len(self.tags)

    def gold(self, gaps: Tensor, tokens: Tensor, writes: Tensor, answers: Tensor) -> Tensor:
        """The tags (b, m + 1) of an editor's batch. What is inserted behind a token that is edited waits a round."""
        row, place, gap, _ = writes.unbind(1)
        written, gap = self.number[2 * answers + gap], gap.bool()
        inserted = torch.where(gaps > 0, OTHER, gaps)  # where no tag writes it
        inserted[row[gap], place[gap]] = written[gap]
        removed = torch.where(self.classes.writing(torch.zeros_like(tokens), tokens), OTHER, DELETE)
        edited = torch.where(tokens > 0, removed, tokens)
        edited[row[~gap], place[~gap]] = written[~gap]
        edited = functional.pad(edited, (1, 0))
        return torch.where(edited > 0, edited, inserted)

    def edit(self, slot: int, tag: int, state: Sequence[int]) -> Edit | None:
        """The edit of a tag, of the beginning (slot 0) or a token; None for what would change nothing."""
        answer, inserts = (0, 0) if tag == DELETE else divmod(self.tags[tag - FIRST], 2)
        edit = Edit(slot if inserts else slot - 1, slot, None)
        if edit.start < 0:
            return None
        if tag != DELETE:
            edit = edit._replace(new=self.classes.word(answer, edit, state))
            if edit.new is None:
                return None
        return edit if self.classes.kind(edit) else None
