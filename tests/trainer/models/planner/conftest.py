"""A planner with random weights for every design, and what it would learn from."""

import pytest
import torch

from trainer.core.config import preset
from trainer.core.device import Runtime
from trainer.data.dataset import Dataset
from trainer.models.planner.lessons import Lessons
from trainer.models.zoo import build_model
from trainer.training.fit import open_training, survey


class Bench:
    """A dataset folder, opened for a planner."""

    def __init__(self, folder, **changes):
        dataset = Dataset(folder)
        config = preset("fast", **changes)
        footers, self.contract = open_training(dataset, config)
        self.config, self.knowledge, self.steps = survey(dataset, footers, self.contract, config)
        torch.manual_seed(0)
        self.model = build_model(self.config, self.contract, self.knowledge).eval()

    def lessons(self, runtime=None):
        runtime = runtime or Runtime(torch.device("cpu"))
        return Lessons(self.model, self.steps, self.config, self.contract, runtime)

    def texts(self, states):
        """Id rows as token tuples; MASK and QUERY are shown as such."""
        names = ("", *self.contract.state_tokens, "MASK", "QUERY")
        return [tuple(names[token] for token in row if token) for row in states.tolist()]


@pytest.fixture
def bench():
    return Bench
