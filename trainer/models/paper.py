"""The agents of the paper, as small classes over one kit.

Axes: b batch, m state, n action, d width, v action vocabulary. An agent maps states (b, m) and lengths (b) to
scores (b, n, v): the loss is minus the score of the gold token, the choice is the best score. Given the gold
actions in training, agents with a decoder input see some of them (teacher forcing). Ids below
``len(contract.actions)`` are action tokens; a model with a decoder input has one more, BOS.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from trainer.core.config import Config
from trainer.data.contract import Contract
from trainer.game.play import Decision, Draw
from trainer.models.encoded import Encoded
from trainer.models.layers import (
    AdditiveAttention,
    Align,
    Combine,
    Decoder,
    Flatten,
    Hidden,
    PlaceAttention,
    padding_mask,
)
from trainer.models.policy import perturbed


class Autoregressive(Encoded):
    """One token after the other: a decoder reads the last one, and what it looks at for the next."""

    embed: nn.Embedding
    combine: Combine
    decoder: Decoder
    dropout: nn.Dropout
    drawing: Draw | None = None  # while actions are sampled: each token is drawn before the next is scored

    def sample(self, states: Tensor, lengths: Tensor, draw: Draw) -> Decision:
        self.drawing = draw
        try:
            return Decision.drawn(self.scores(states, lengths).argmax(-1))
        finally:
            self.drawing = None

    def say(
        self, look: Callable[[int, Hidden], Tensor], hidden: Hidden, states: Tensor, actions: Tensor | None, slots: int
    ) -> Tensor:
        """The scores of ``slots`` tokens; ``look`` gives the context (b, 1, d) of each."""
        seen, scores = self.first(states), []  # (b, 1)
        for slot in range(slots):
            x = self.combine(self.dropout(self.embed(seen)), look(slot, hidden))
            score, hidden = self.decoder(x, hidden)  # (b, 1, v)
            if self.drawing is not None:
                score = perturbed(score, self.drawing)
            scores.append(score)
            # The released code draws once for the whole batch; a draw for every row measured better (32.2, 29.8).
            gold = None if actions is None else actions[:, slot : slot + 1]
            seen = self.teach(score.argmax(-1), gold, whole_batch=self.draw == "batch")
        return torch.cat(scores, dim=1)  # (b, slots, v)


class Ar(Autoregressive):
    """Autoregressive, with additive attention."""

    about = "autoregressive decoder, 1 encoder layer"
    depth = 1

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.embed = self.embedding()
        self.attention = AdditiveAttention(self.width)
        self.combine = Combine(self.width)
        self.decoder = Decoder(self.width, self.vocabulary, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        memory, hidden = self.encoder(states, lengths)  # (b, m, d)
        mask, keys = padding_mask(lengths, memory), self.attention.keys(memory)

        def look(slot: int, hidden: Hidden) -> Tensor:
            return self.attention(hidden, keys, memory, mask)  # type: ignore[no-any-return]

        return self.say(look, hidden, states, actions, self.slots)  # (b, n, v)


class ArStar(Ar):
    """AR with a deeper encoder."""

    about = "autoregressive decoder, 4 encoder layers"
    depth = 4


class Linear(Encoded):
    """No decoder: one linear layer over the flattened memory.

    The encoder is the same kit as everywhere, so its projections of the final state exist, unused.
    """

    about = "linear layer for a decoder, 4 encoder layers"
    unread = Encoded.unread | {"teacher_forcing", "teacher_draw"}
    has_input = False
    uses_final_state = False

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.flatten = Flatten(self.places, self.width, self.slots, self.vocabulary)

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        memory, _ = self.encoder(states, lengths)  # (b, m, d)
        scores: Tensor = self.flatten(memory)
        return scores.float().log_softmax(-1)  # (b, n, v)


class Nar(Linear):
    """Linear with a deeper encoder: the paper's non-autoregressive baseline."""

    about = "linear layer for a decoder, 6 encoder layers"
    depth = 6


class Decoder0(Encoded):
    """The first decoder of D2 alone: its inputs are the memory, aligned to the length of the action."""

    about = "the first decoder of D2 alone, 4 encoder layers"
    unread = Encoded.unread | {"teacher_forcing", "teacher_draw"}
    has_input = False

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.align = Align(self.places, self.slots)
        self.attention = PlaceAttention(self.width, self.places)
        self.combine = Combine(self.width)
        self.decoder0 = Decoder(self.width, self.vocabulary, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def decode(
        self, decoder: nn.Module, inputs: Tensor, memory: Tensor, mask: Tensor, hidden: Hidden
    ) -> tuple[Tensor, Hidden]:
        """One decoder over all inputs (b, n, d) at once; the attention and the combining layer are shared by all."""
        context = self.attention(inputs, hidden, memory, mask)  # (b, n, d)
        scores, hidden = decoder(self.combine(inputs, context), hidden)
        return scores, hidden  # (b, n, v)

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        memory, hidden = self.encoder(states, lengths)  # (b, m, d)
        mask = padding_mask(lengths, memory)
        return self.decode(self.decoder0, self.dropout(self.align(memory)), memory, mask, hidden)[0]


class SharedD2(Decoder0):
    """Dual decoders with the same parameters: the second one reads the draft of the first, shifted right."""

    about = "dual decoders that share their parameters, 4 encoder layers"
    unread = Encoded.unread | {"teacher_draw"}  # gold tokens are drawn one by one
    has_input = True

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.embed = self.embedding()

    @property
    def second(self) -> nn.Module:
        """The decoder that revises the draft."""
        return self.decoder0

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        memory, hidden = self.encoder(states, lengths)  # (b, m, d)
        mask = padding_mask(lengths, memory)
        aligned = self.dropout(self.align(memory))  # (b, n, d)
        draft, hidden = self.decode(self.decoder0, aligned, memory, mask, hidden)  # (b, n, v)
        seen = self.teach(draft.argmax(-1), actions)  # (b, n)
        shifted = torch.cat((self.first(states), seen[:, :-1]), dim=1)
        embedded = self.dropout(self.embed(shifted))  # (b, n, d)
        final, _ = self.decode(self.second, embedded, memory, mask, hidden)
        return draft + final  # (b, n, v): the loss is the sum of both losses


class NarStar(SharedD2):
    """D2, the paper's agent: dual decoders with their own LSTM and output layer each."""

    about = "dual decoders (D2), 4 encoder layers"

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.decoder1 = Decoder(self.width, self.vocabulary, config.dropout)

    @property
    def second(self) -> nn.Module:
        return self.decoder1
