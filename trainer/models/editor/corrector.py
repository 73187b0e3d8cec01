"""What the agents for text share: an encoder, the edits that they may make, and how certain these must be.

Axes: b batch, m state, d width, e edits.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from msgspec.structs import replace
from torch import Tensor, nn
from torch.nn import functional

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.errors import InvalidConfig
from trainer.data.batches import TrainingBatch
from trainer.data.contract import Contract, OpenContract
from trainer.data.demonstrations import Demonstrations
from trainer.data.encode import Steps
from trainer.game.play import Decision
from trainer.game.replay import check_trajectories
from trainer.models.editor.certainty import best_bar
from trainer.models.editor.edits import Edit, EditClasses, EditorKnowledge, check_spans
from trainer.models.editor.reading.encoder import SmallEncoder
from trainer.models.editor.reading.phrases import Phrases
from trainer.models.editor.reading.pretrained import RATE, PretrainedEncoder, describe
from trainer.models.editor.sampler import EditorSampler
from trainer.models.editor.trajectories import EditorBatch, Trajectories, read_edits, written_words
from trainer.models.editor.variants import worth_having
from trainer.models.policy import PLANNING, Knowledge, Policy

PASSES, LEAST_UPDATES = 20, 2000  # over the trajectories, where no number of updates is given
LEAST = 0.02  # the lowest bar
PHRASES = 3  # times as many phrases are dropped as features


class Corrector(Policy):
    """An agent that reads text of any words and any length, and makes the edits that it is certain of."""

    streamable: ClassVar[bool] = False
    practises: ClassVar[bool] = False  # its states are of any words: there is nothing to sample batches of ids from
    contract_type: ClassVar[type[Contract]] = OpenContract
    knowledge_type: ClassVar[type[EditorKnowledge]] = EditorKnowledge
    group: ClassVar[int] = 64
    settings: ClassVar[dict[str, Any]] = {
        "width": 128,
        "dropout": 0.1,
        "batch": 64,
        "optimizer": "adamw",
        "learning_rate": 1e-3,
        "weight_decay": 0.01,
        "train_on": "expert",
        "updates": 0,
        "restart": 32,
        "clip": 1.0,
        "select": "edits",
        "adaptive": "off",
    }
    gpu_settings: ClassVar[dict[str, Any]] = {"precision": "bf16"}
    unread: ClassVar[frozenset[str]] = PLANNING | {
        "init", "teacher_forcing", "teacher_draw", "epoch", "lengths", "last_batch", "restart",
        "warm_up", "rate_every", "adaptive", "adaptive_scale", "stream_rows", "decay_steps",
    }  # fmt: skip

    bar: Tensor  # how certain an edit must be, chosen in validation; 0: more than that nothing is left to edit

    def __init__(self, config: Config, contract: OpenContract, knowledge: EditorKnowledge) -> None:
        super().__init__()
        self.contract, self.classes = contract, EditClasses(contract, knowledge)
        self.tunes = config.select == "edits" and contract.sentences
        self.register_buffer("bar", torch.tensor(0.5 if self.tunes else 0.0))
        self.encoder: SmallEncoder | PretrainedEncoder
        if knowledge.encoder is None:
            self.encoder = SmallEncoder(contract, config.width, config.layers, config.dropout)
        else:
            self.encoder = PretrainedEncoder(contract, knowledge.encoder, knowledge.tokenizer)
        self.phrases = Phrases(contract, self.encoder.width, PHRASES * config.dropout)
        self.between = nn.Linear(2 * self.encoder.width, self.encoder.width)
        self.dropout = nn.Dropout(config.dropout)

    # What it needs of its data

    @classmethod
    def study(
        cls, data: Demonstrations, config: Config, known: Knowledge | None = None
    ) -> tuple[Config, EditorKnowledge]:
        config, _ = super().study(data, config)
        for name in ("width", "layers") if config.encoder else ():
            if getattr(config, name) != getattr(Config(**cls.settings), name):
                raise InvalidConfig(f"field {name}: the encoder {config.encoder} decides; leave it out")
        if config.encoder and config.optimizer == "muon":
            raise InvalidConfig("field optimizer: muon is for an encoder from scratch, not for a pretrained one")
        contract = data.contract
        if not isinstance(contract, OpenContract) or contract.game != "edits":
            raise InvalidConfig(f"{config.model} requires edits, the dataset has {contract.game}")
        check_trajectories(data.steps, contract, data.where)
        edits = read_edits(data.steps, contract)
        span = check_spans([edit for edit in edits if edit]) if "left" in contract.slots else 0
        variants = worth_having(written_words(data.steps, contract, edits))
        updates = config.updates or max(PASSES * data.steps.trajectories // config.batch, LEAST_UPDATES)
        if not config.encoder:
            encoder, tokenizer = None, 0
        elif isinstance(known, EditorKnowledge):  # of a run that is resumed: its encoder need not be there any more
            encoder, tokenizer = known.encoder, known.tokenizer
        else:
            encoder, found = describe(config.encoder)
            tokenizer = len(found)
        return replace(config, updates=updates), EditorKnowledge(variants, span, encoder, tokenizer)

    def sampler(self, data: Demonstrations, config: Config, runtime: Runtime) -> EditorSampler:
        return EditorSampler(self.classes, data.steps, config, runtime)

    # What the loop asks

    def initialise(self, config: Config) -> None:
        if isinstance(self.encoder, PretrainedEncoder):
            self.encoder.fill(config.encoder)

    @property
    def has_unused(self) -> bool:
        return isinstance(self.encoder, PretrainedEncoder)  # many have a pooler, which nobody asks

    def parameter_groups(self, config: Config) -> list[dict[str, Any]]:
        if not isinstance(self.encoder, PretrainedEncoder):
            return super().parameter_groups(config)
        own = {id(parameter) for parameter in self.encoder.parameters()}
        rest = [parameter for parameter in self.parameters() if id(parameter) not in own]
        return [
            {"params": rest, "weight_decay": config.weight_decay},
            {"params": [*self.encoder.parameters()], "weight_decay": config.weight_decay, "scale": RATE},
        ]

    def hidden_matrices(self) -> list[Tensor]:
        assert isinstance(self.encoder, SmallEncoder)
        return [module.weight for module in self.encoder.layers.modules() if isinstance(module, nn.Linear)]

    def read(self, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the encoder says (b, m + 2, d), and what is known of the gaps (b, m + 1, d) and the tokens (b, m, d)."""
        found = self.dropout(self.encoder(states, lengths))
        gaps = functional.gelu(self.between(torch.cat((found[:, :-1], found[:, 1:]), -1)))
        across, around = self.phrases(states, lengths)
        return found, gaps + across, found[:, 1:-1] + around

    def judge(self, scores: Tensor, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        return scores[..., 0], scores[..., 1] > 0

    @torch.inference_mode()
    def tune(self, steps: Steps) -> dict[str, float]:
        """Set the bar with the highest F0.5 of the edits of held-out sources, all made at once."""
        if not self.tunes:
            return {}
        shown = Trajectories(self.classes, steps)
        self.bar.fill_(LEAST)
        found = []
        for some in shown.sources(self.group):
            certain, right = self.proposed(EditorBatch.of(self.classes, some).to(self.bar.device))
            found.append((certain.cpu(), right.cpu()))
        certain, right = (torch.cat(column) for column in zip(*found, strict=True))
        self.bar.fill_(best_bar(certain, right, shown.count))
        return {"bar": round(float(self.bar), 4)}

    def proposed(self, batch: EditorBatch) -> tuple[Tensor, Tensor]:
        """How certain (e) the edits are that exceed the bar, and whether they are to be made."""
        raise NotImplementedError

    # What a game asks

    def decision(
        self, found: list[list[tuple[Edit, float, float]]], calm: list[float], device: torch.device
    ) -> Decision:
        """Edits with the chances of their places and words, as actions; DONE for a state without any.

        From right to left, and a token before the gap in front of it: each leaves the positions of the next ones.
        """
        most, slots = max(1, *map(len, found)), self.contract.slots
        actions = torch.zeros(len(found), most, len(slots), dtype=torch.long)
        chances = torch.ones(actions.shape)
        for row, edits in enumerate(found):
            edits.sort(key=lambda one: (one[0].start, one[0].stop), reverse=True)
            for turn, (edit, place, word) in enumerate(edits):
                actions[row, turn] = torch.tensor(self.classes.action(edit))
                chances[row, turn] = torch.tensor([word if name == "token" else place for name in slots])
            if not edits:
                actions[row, 0], chances[row, 0] = torch.tensor(self.classes.done), calm[row]
        counts = torch.tensor([max(len(edits), 1) for edits in found])
        return Decision(actions.to(device), chances.to(device), counts.to(device))
