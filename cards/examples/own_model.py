"""An agent of one's own: embeddings of the whole state, flattened, and two layers.

python cards/examples/own_model.py
"""

import torch
from torch import Tensor, nn

import aegen
import trainer
from trainer.core.config import Config
from trainer.data.contract import Contract
from trainer.models.policy import PLANNING, Policy
from trainer.models.zoo import MODELS


class Flat(Policy):
    """A state (b, m) becomes scores (b, n, v): n slots of an action, v action tokens."""

    about = "embeddings of the whole state, flattened, and two layers"
    unread = PLANNING | {"layers", "dropout", "init", "teacher_forcing", "teacher_draw"}  # settings it does not have

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__()
        self.places, self.slots = contract.max_state, contract.action_length
        self.embed = nn.Embedding(len(contract.state_tokens) + 1, config.width)  # 0 is the padding
        self.first = nn.Linear(self.places * config.width, 8 * config.width)
        self.last = nn.Linear(8 * config.width, self.slots * len(contract.actions))

    @property
    def targets(self) -> int:
        return self.slots

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        padded = nn.functional.pad(states, (0, self.places - states.shape[1]))  # (b, m)
        hidden = torch.relu(self.first(self.embed(padded).flatten(1)))  # (b, d)
        return self.last(hidden).unflatten(1, (self.slots, -1)).log_softmax(-1)  # (b, n, v)


MODELS["flat"] = Flat  # from here on its name is as good as any other of the zoo

if __name__ == "__main__":
    data = aegen.build("aec-n10-l4-d1000", out="aec")
    run = trainer.fit("aec", model="flat", preset="cpu", width=16, updates=300, out="runs/flat")
    nothing = [len(game.steps) == 1 for game in data.trajectories("validation")]  # the source is right: DONE at once
    print(f"right in validation: {run.best:.0%}; had it done nothing: {sum(nothing) / len(nothing):.0%}")
