"""The tagger, the baseline beside the editor: the same encoder, then a softmax over tags for every token (GECToR).

Axes: b batch, m state, s slots (the beginning, then the tokens), r slots of all rows, d width, v tags.
"""

from __future__ import annotations

from math import log
from typing import ClassVar

import torch
from msgspec.structs import asdict
from torch import Tensor, nn
from torch.nn import functional

from trainer.core.config import Config
from trainer.core.device import many_shapes
from trainer.core.errors import InvalidConfig
from trainer.data.contract import OpenContract
from trainer.data.demonstrations import Demonstrations
from trainer.data.encode import Batch
from trainer.game.play import Decision
from trainer.models.editor.corrector import Corrector
from trainer.models.editor.edits import Edit, EditClasses, EditorKnowledge
from trainer.models.editor.tags import DELETE, FIRST, KEEP, TaggerKnowledge, Tags, most_frequent
from trainer.models.editor.trajectories import EditorBatch, Trajectories, decode_edits
from trainer.models.policy import Knowledge

KEPT = 20  # "keep" starts so many times as probable as all other tags together: else training first learns just that
AT_ONCE = 4096  # slots whose chances of all tags are in memory


class Tagger(Corrector):
    """Tags every token of a text at once, and again until nothing changes.

    As in GECToR a second head says which tokens are wrong. Encoder, examples and edits are the editor's.
    """

    about: ClassVar[str] = "tags all tokens of any text at once, in rounds; the baseline beside the editor (GECToR)"
    knowledge_type: ClassVar[type[EditorKnowledge]] = TaggerKnowledge

    def __init__(self, config: Config, contract: OpenContract, knowledge: TaggerKnowledge) -> None:
        super().__init__(config, contract, knowledge)
        self.tags = Tags(self.classes, knowledge.tags)
        width = self.encoder.width
        self.tag, self.wrong = nn.Linear(width, len(self.tags)), nn.Linear(width, 2)
        with torch.no_grad():
            self.tag.bias[KEEP] = log(KEPT * len(self.tags))

    @classmethod
    def study(
        cls, data: Demonstrations, config: Config, known: Knowledge | None = None
    ) -> tuple[Config, TaggerKnowledge]:
        if "left" in data.contract.slots:
            raise InvalidConfig(f"{config.model} edits single tokens, the dataset has spans")
        config, knowledge = super().study(data, config, known)
        assert isinstance(data.contract, OpenContract)
        shown = Trajectories(EditClasses(data.contract, knowledge), data.steps)
        return config, TaggerKnowledge(**asdict(knowledge), tags=most_frequent(shown))

    # What the loop asks

    @property
    def targets(self) -> int:
        return 2  # the tags, and which tokens are wrong

    def slots(self, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """What is known of each slot (r, d), its token and the gap behind it, and which of (b, s) they are."""
        lengths = lengths.to(states.device)
        _, gaps, tokens = self.read(states, lengths)
        real = torch.arange(gaps.shape[1], device=states.device) <= lengths[:, None]
        return (gaps + functional.pad(tokens, (0, 0, 1, 0)))[real], real

    def forward(
        self,
        states: Tensor,
        lengths: Tensor,
        gaps: Tensor,
        tokens: Tensor,
        writes: Tensor,
        answers: Tensor,
    ) -> Tensor:
        """In training, for each row: the losses of its tags and of what is wrong, and whether each is right (b, 2, 2).

        They are sums, as the editor's are.
        """
        found, real = self.slots(states, lengths)
        gold = self.tags.gold(gaps, tokens, writes, answers)[real]  # (r)
        losses, mistakes = [], []
        for head, label in ((self.tag, gold), (self.wrong, (gold != KEEP).long())):
            scores = head(found).float()
            losses.append(functional.cross_entropy(scores, label, reduction="none"))
            mistakes.append((scores.argmax(-1) != label).float())
        row = real.nonzero()[:, 0]
        empty = torch.zeros(len(states), 2, device=states.device)
        loss = empty.index_add(0, row, torch.stack(losses, 1))
        right = empty.index_add(0, row, torch.stack(mistakes, 1)) == 0
        return torch.stack((loss, right.float()), -1)

    def assess(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """As it would play: an expert's action is right if it is one of the tags that the tagger would give."""
        edits = decode_edits(batch.actions, batch.lengths, self.contract)
        states, lengths = batch.states.tolist(), batch.lengths.tolist()
        examples = [(states[row][: lengths[row]], [edit] if edit else []) for row, edit in enumerate(edits)]
        asked = EditorBatch.of(self.classes, examples).to(batch.states.device)
        found, real = self.slots(asked.states, asked.lengths)
        sure, least, tags, keep = self.certainty(found, real)
        gold = self.tags.gold(*asked.inputs[2:])
        losses, right = -keep.sum(1), (sure <= least).all(1)
        row, slot = (gold > KEEP).nonzero().unbind(1)
        there = self.tag(found[(gold > KEEP)[real]]).float()
        losses[row] = functional.cross_entropy(there, gold[row, slot], reduction="none")
        right[row] = ((sure > least) & (tags == gold))[row, slot]
        unknown = [edit is not None and not self.classes.kind(edit) for edit in edits]
        return losses, right & ~torch.tensor(unknown, device=right.device)

    # What a game asks

    def certainty(self, found: Tensor, real: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of each slot (b, s): how certain its edit is and must be, its tag, and the log-probability that it is kept.

        With a bar, an edit is as certain as its tag and as that anything is wrong in the text; GECToR asks the same of
        both. Without, its tag must be more probable than to keep the token.
        """
        parts = []
        for some in torch.split(found, AT_ONCE):
            chances = self.tag(some).float().log_softmax(-1)  # (r, v)
            edits = torch.cat((chances[:, DELETE : DELETE + 1], chances[:, FIRST:]), 1).max(1)
            wrong = self.wrong(some).float().softmax(-1)[:, 1]
            parts.append(torch.stack((edits.values.exp(), edits.indices, chances[:, KEEP], wrong)))
        table = torch.zeros(4, *real.shape, device=real.device)
        table[:, real] = torch.cat(parts, 1)
        sure, which, keep, wrong = table.unbind()
        tags = torch.where(which > 0, which + FIRST - 1, DELETE).long()
        if not self.tunes:
            return sure, keep.exp(), tags, keep
        return sure.minimum(wrong.amax(1, keepdim=True)), self.bar.expand_as(sure), tags, keep

    def proposed(self, batch: EditorBatch) -> tuple[Tensor, Tensor]:
        sure, least, tags, _ = self.certainty(*self.slots(batch.states, batch.lengths))
        right = tags == self.tags.gold(*batch.inputs[2:])
        return sure[sure > least], right[sure > least]

    @torch.inference_mode()
    def decide(self, states: Tensor, lengths: Tensor, edits: int = 1) -> Decision:
        """The edits of all tags that are certain enough, however many, or DONE where there are none."""
        with many_shapes():
            sure, least, tags, keep = self.certainty(*self.slots(states, lengths))
            rows, slots = (sure > least).nonzero().unbind(1)
        texts = [text[:size] for text, size in zip(states.tolist(), lengths.tolist(), strict=True)]
        chosen: list[list[tuple[Edit, float, float]]] = [[] for _ in texts]
        columns = (rows, slots, tags[rows, slots], sure[rows, slots])
        for row, slot, tag, chance in zip(*(column.tolist() for column in columns), strict=True):
            if edit := self.tags.edit(slot, tag, texts[row]):
                chosen[row].append((edit, chance, chance))
        return self.decision(chosen, keep.sum(1).exp().tolist(), states.device)
