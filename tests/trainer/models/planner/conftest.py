"""A planner with random weights for every design, and what it would learn from."""

import pytest
import torch

from trainer.core.device import Runtime
from trainer.data.dataset import Dataset
from trainer.models.zoo import build_model, find_model, open_demonstrations
from trainer.training.presets import preset


class Bench:
    """A dataset folder, opened for a planner."""

    def __init__(self, folder, **changes):
        dataset = Dataset(folder)
        config = preset("fast", **changes)
        demonstrations = open_demonstrations(dataset, config)
        self.data, self.contract, self.steps = demonstrations, demonstrations.contract, demonstrations.steps
        self.config, self.knowledge = find_model(config.model).study(demonstrations, config)
        torch.manual_seed(0)
        self.model = build_model(self.config, self.contract, self.knowledge).eval()

    def sampler(self, runtime=None):
        return self.model.sampler(self.data, self.config, runtime or Runtime(torch.device("cpu")))

    def texts(self, states):
        """Id rows as token tuples; MASK and QUERY are shown as such."""
        names = ("", *self.contract.state_tokens, "MASK", "QUERY")
        return [tuple(names[token] for token in row if token) for row in states.tolist()]


@pytest.fixture
def bench():
    return Bench
