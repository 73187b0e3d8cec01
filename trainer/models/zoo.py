"""The model zoo by name: what a model learns from, and how it is built."""

from __future__ import annotations

from typing import Any

import torch

from trainer.core.config import Config
from trainer.core.errors import InvalidConfig
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset
from trainer.data.demonstrations import Demonstrations
from trainer.models.baselines import End2end, Recurrence, RecurrenceStar, Tagging
from trainer.models.editor.model import Editor
from trainer.models.editor.tagger import Tagger
from trainer.models.paper import Ar, ArStar, Decoder0, Linear, Nar, NarStar, SharedD2
from trainer.models.planner.model import Planner
from trainer.models.policy import Knowledge, Policy

MODELS: dict[str, type[Policy]] = {
    "ar": Ar,
    "ar-star": ArStar,
    "nar": Nar,
    "nar-star": NarStar,
    "linear": Linear,
    "decoder0": Decoder0,
    "shared-d2": SharedD2,
    "end2end": End2end,
    "tagging": Tagging,
    "recurrence": Recurrence,
    "recurrence-star": RecurrenceStar,
    "planner": Planner,
    "editor": Editor,
    "tagger": Tagger,
}


def find_model(name: str) -> type[Policy]:
    """The class with this name in the zoo."""
    if name not in MODELS:
        raise InvalidConfig(f"unknown model {name!r}; models: {', '.join(MODELS)}")
    return MODELS[name]


def open_demonstrations(dataset: Dataset, config: Config) -> Demonstrations:
    """What the model of a config learns from."""
    model = find_model(config.model)
    return Demonstrations.open(dataset, model.shards(config), model.streamable, model.contract_type)


def make_model(config: Config, contract: Contract, knowledge: Knowledge | None = None) -> Policy:
    """A model as its class makes it; ``knowledge`` is what :meth:`Policy.study` found."""
    build: Any = find_model(config.model)
    if build.game != contract.game:
        raise InvalidConfig(f"model {config.model} requires {build.game}, the dataset has {contract.game}")
    made: Policy = build(config, contract) if knowledge is None else build(config, contract, knowledge)
    return made


def count_parameters(config: Config, contract: Contract, knowledge: Knowledge | None = None) -> int:
    """Trainable parameters, without allocating them."""
    with torch.device("meta"):
        model = make_model(config, contract, knowledge)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def build_model(config: Config, contract: Contract, knowledge: Knowledge | None = None) -> Policy:
    """A new model with its initial weights; the caller seeds."""
    model = make_model(config, contract, knowledge)
    model.initialise(config)
    return model
