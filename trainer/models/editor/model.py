"""The editor as a policy: an encoder, a head for every place, and a head for what is written there.

Axes: b batch, m state, d width, n action, k edits of a round, e edits that write.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.core.config import Config
from trainer.core.device import many_shapes
from trainer.data.contract import OpenContract
from trainer.data.encode import Batch
from trainer.game.play import Decision
from trainer.models.editor.certainty import pick
from trainer.models.editor.corrector import Corrector
from trainer.models.editor.edits import Edit, EditorKnowledge
from trainer.models.editor.reading.relatives import Relatives
from trainer.models.editor.trajectories import IGNORED, EditorBatch, decode_edits

KEPT = 3.0  # log-odds, at first, of leaving a place alone against each edit of it: most are left
SURE = 0.5  # an edit that is not the most probable one must be more probable than this
CHOICES = 16  # words that are tried in turn: some would change nothing
SHARES = (1.0, 1.0, 0.5)  # of the losses of places, words and DONE


class Seen(NamedTuple):
    """What is known of some states."""

    states: Tensor  # (b, m)
    gaps: Tensor  # (b, m + 1, d)
    tokens: Tensor  # (b, m, d)
    done: Tensor  # (b, 2) log-chances of work and DONE


class Editor(Corrector):
    """Points at places to edit, in text of any words and any length."""

    about: ClassVar[str] = "points at places of any text and rewrites them; the agent for sentences"
    several: ClassVar[bool] = True

    def __init__(self, config: Config, contract: OpenContract, knowledge: EditorKnowledge) -> None:
        super().__init__(config, contract, knowledge)
        width = self.encoder.width
        self.look, self.done = nn.Linear(width, width), nn.Linear(width, 2)
        self.gap_kind = nn.Linear(width, 2)
        self.token_kind = nn.Linear(width, self.classes.token_classes)
        self.kind_of_write = nn.Embedding(1 + self.classes.token_classes, width)
        self.ask = nn.Linear(width, width)
        self.normed = nn.LayerNorm(width)
        self.word = nn.Linear(width, self.classes.word_classes)
        with torch.no_grad():
            for kinds in (self.gap_kind, self.token_kind):
                kinds.bias[0] = KEPT
        self.relatives = Relatives(contract, self.classes.words, len(knowledge.variants), width)

    # What the loop asks

    @property
    def targets(self) -> int:
        return 3  # the places, the words, and whether anything is left to edit

    def see(self, states: Tensor, lengths: Tensor) -> Seen:
        """Read some states.

        The places are judged one by one, so that long texts can be; whether there is work at all needs all of them.
        Where that is certain and the place is not, as for a misspelt word, the most probable place is edited.
        """
        lengths = lengths.to(states.device)
        found, gaps, tokens = self.read(states, lengths)
        tokens = tokens + gaps[:, :-1] + gaps[:, 1:]  # how a token fits its neighbours is said at the gaps
        real = torch.arange(found.shape[1], device=states.device) <= lengths[:, None] + 1
        most = self.look(found).masked_fill(~real[..., None], -torch.inf).amax(1)
        return Seen(states, gaps, tokens, self.done(functional.gelu(most)).float().log_softmax(-1))

    def words(self, seen: Seen, writes: Tensor) -> Tensor:
        """Log-probabilities (e, words) of what edits write: of each its row, place, whether it is a gap, its class."""
        row, place, gap, kind = writes.unbind(1)
        token, new = place.clamp(max=seen.tokens.shape[1] - 1), gap.bool()
        there = torch.where(new[:, None], seen.gaps[row, place], seen.tokens[row, token])
        asked = self.normed(functional.gelu(self.ask(there + self.kind_of_write(torch.where(new, 0, kind)))))
        asked = self.dropout(asked)
        alone = ~new & (kind == 1) if self.classes.span else ~new  # a single token is replaced
        found: Tensor = self.relatives(self.word(asked), asked, torch.where(alone, seen.states[row, token], 0))
        return found.float().log_softmax(-1)

    def forward(
        self,
        states: Tensor,
        lengths: Tensor,
        gaps: Tensor,
        tokens: Tensor,
        writes: Tensor,
        answers: Tensor,
    ) -> Tensor:
        """In training, for each row: the losses of its places, its words and DONE, and whether each is right (b, 3, 2).

        They are sums: minus the log-probability of all that is to be done. As means over the many places that are left
        alone they would hardly teach where to edit.
        """
        seen = self.see(states, lengths)
        loss = torch.zeros(len(states), device=states.device)
        right = torch.ones(len(states), dtype=torch.bool, device=states.device)
        for scores, gold in ((self.gap_kind(seen.gaps), gaps), (self.token_kind(seen.tokens), tokens)):
            chances = scores.float().log_softmax(-1)
            each = functional.nll_loss(chances.transpose(1, 2), gold, ignore_index=IGNORED, reduction="none")
            loss = loss + each.sum(1)
            right &= ((chances.argmax(-1) == gold) | (gold == IGNORED)).all(1)
        chances = self.words(seen, writes)
        each = functional.nll_loss(chances, answers, reduction="none")
        word_loss = torch.zeros_like(loss).index_add(0, writes[:, 0], each)
        wrong = torch.zeros_like(loss).index_add(0, writes[:, 0], (chances.argmax(-1) != answers).float())
        finished = ((gaps <= 0).all(1) & (tokens <= 0).all(1)).long()
        work_loss = functional.nll_loss(seen.done, finished, reduction="none")
        losses = torch.stack([share * one for share, one in zip(SHARES, (loss, word_loss, work_loss), strict=True)])
        all_right = torch.stack((right, wrong == 0, seen.done.argmax(1) == finished)).float()
        return torch.stack((losses.T, all_right.T), -1)

    def assess(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """As it would play: an expert's action is right if it is one of the edits that the editor would make."""
        chances, seen = self.places(batch.states, batch.lengths)
        sure, kinds, first, other = self.certainty(chances, seen)
        losses = -seen.done[:, 1]
        right = sure.amax(1) <= first
        edits = decode_edits(batch.actions, batch.lengths, self.contract)
        found = [(row, edit, self.classes.kind(edit)) for row, edit in enumerate(edits) if edit]
        if not found:
            return losses, right
        table = torch.tensor(
            [(row, edit.start, edit.start == edit.stop, kind or 0) for row, edit, kind in found], device=losses.device
        )
        row, place, gap, kind = table.unbind(1)
        at = 2 * place + 1 - gap
        losses[row] = -seen.done[row, 0] - torch.where(kind > 0, chances[row, at, kind], chances[row, at].amin(1))
        best = sure[row, at] == sure[row].amax(1)
        least = torch.where(best, first[row], other[row])
        right[row] = (sure[row, at] > least) & (kinds[row, at] == kind)
        writing = torch.tensor([edit.new is not None for _, edit, _ in found], device=losses.device) & (kind > 0)
        states, lengths = batch.states.tolist(), batch.lengths.tolist()
        answers = [
            self.classes.answer(edit, states[row][: lengths[row]]) if edit.new is not None else -1
            for row, edit, _ in found
        ]
        gold = torch.tensor(answers, device=losses.device)[writing]
        words = self.words(seen, table[writing])
        said = torch.where(gold < 0, words.amin(1), words.gather(1, gold.clamp(min=0)[:, None])[:, 0])
        losses[row[writing]] -= said
        right[row[writing]] &= words.argmax(1) == gold
        return losses, right

    # What a game asks

    def places(self, states: Tensor, lengths: Tensor) -> tuple[Tensor, Seen]:
        """Log-probabilities (b, 2 m + 1, classes) of gap 0, token 0, gap 1 …, and what they are read from."""
        seen = self.see(states, lengths)
        gaps = self.gap_kind(seen.gaps).float().log_softmax(-1)  # (b, m + 1, 2)
        tokens = self.token_kind(seen.tokens).float().log_softmax(-1)  # (b, m, classes)
        result = gaps.new_full((len(states), 2 * states.shape[1] + 1, max(2, tokens.shape[2])), -torch.inf)
        result[:, 0::2, :2], result[:, 1::2, : tokens.shape[2]] = gaps, tokens
        place = torch.arange(result.shape[1], device=states.device)
        removed = torch.arange(result.shape[2], device=states.device)[:, None] if self.classes.span else 1
        stop = place // 2 + place % 2 * removed  # (p), or for spans (classes, p)
        fits = (stop <= lengths.to(states.device)[:, None, None]).transpose(1, 2)  # (b, p, 1 or classes)
        if not self.classes.inserts:
            fits = fits & (place % 2 == 1)[:, None]
        never = torch.zeros_like(result[..., 1:])
        result[..., 0] = torch.where(fits.any(2), result[..., 0], 0.0)
        kept = fits[..., 1:] if self.classes.span else fits
        result[..., 1:] = torch.where(kept, result[..., 1:], never - torch.inf)
        return result, seen

    def certainty(self, chances: Tensor, seen: Seen) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """How certain the edit of each place is (b, p), its class, and how certain the first must be, and others (b).

        With a bar, that all of the edit is right; without, that something is edited there.
        """
        kinds = chances[..., 1:].argmax(-1) + 1
        if not self.tunes:
            sure = torch.where(chances[..., 1:].amax(-1) > -torch.inf, 1 - chances[..., 0].exp(), 0.0)
            calm = seen.done[:, 1].exp()
            return sure, kinds, calm, calm.clamp(min=SURE)
        edits, certain, _ = self.propose(chances, seen)
        row, place, gap, _ = edits.unbind(1)
        bar = self.bar.expand(len(chances))
        return torch.zeros_like(chances[..., 0]).index_put((row, 2 * place + 1 - gap), certain), kinds, bar, bar

    def propose(self, chances: Tensor, seen: Seen) -> tuple[Tensor, Tensor, Tensor]:
        """The edits (e, 4) of places that may exceed the bar, how certain all of each is, and the word it writes."""
        there, kinds = chances[..., 1:].max(-1)
        rows, places = (there.exp() > self.bar).nonzero().unbind(1)
        edits = torch.stack((rows, places // 2, (places + 1) % 2, kinds[rows, places] + 1), 1)
        said, answers = self.words(seen, edits).max(1)
        writing = self.classes.writing(edits[:, 2], edits[:, 3])
        return edits, (there[rows, places] + torch.where(writing, said, 0.0)).exp(), answers

    def proposed(self, batch: EditorBatch) -> tuple[Tensor, Tensor]:
        edits, certain, answers = self.propose(*self.places(batch.states, batch.lengths))
        return certain, batch.right(edits, self.classes.writing(edits[:, 2], edits[:, 3]), answers)

    @torch.inference_mode()
    def decide(self, states: Tensor, lengths: Tensor, edits: int = 1) -> Decision:
        """The most certain edits that do not touch each other, from right to left, or DONE where no place needs one."""
        with many_shapes():
            chances, seen = self.places(states, lengths)
            found = self.certainty(chances, seen)
            rows, places, kinds, sure = pick(*found, edits, bool(self.classes.span))
            gap = places % 2 == 0
            table = torch.stack((rows, places // 2, gap.long(), kinds), 1)
            best, answers = self.words(seen, table).topk(min(CHOICES, self.classes.word_classes))
        texts, sizes = states.tolist(), lengths.tolist()
        chosen: list[list[tuple[Edit, float, float]]] = [[] for _ in texts]
        columns = (table.tolist(), sure.tolist(), best.exp().tolist(), answers.tolist())
        for (row, place, is_gap, kind), chance, said, tried in zip(*columns, strict=True):
            state = texts[row][: sizes[row]]
            edit = self.classes.edit(place, bool(is_gap), kind, None)
            if not self.classes.writes(bool(is_gap), kind):
                chosen[row].append((edit, chance, chance))
                continue
            for answer, sayable in zip(tried, said, strict=True):
                if (new := self.classes.word(answer, edit, state)) is not None:
                    chosen[row].append((edit._replace(new=new), chance, sayable))
                    break
        return self.decision(chosen, seen.done[:, 1].exp().tolist(), states.device)
