"""The model zoo by name, and how a model is built."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from trainer.core.config import Config
from trainer.core.errors import InvalidConfig
from trainer.data.contract import Contract
from trainer.models.baselines import End2end, Recurrence, RecurrenceStar, Tagging
from trainer.models.encoded import Encoded
from trainer.models.paper import Ar, ArStar, Decoder0, Linear, Nar, NarStar, SharedD2
from trainer.models.planner.model import Planner
from trainer.models.policy import Policy

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
}


def find_model(name: str) -> type[Policy]:
    """The class with this name in the zoo."""
    if name not in MODELS:
        raise InvalidConfig(f"no model {name!r}: there are {', '.join(MODELS)}")
    return MODELS[name]


def make_model(config: Config, contract: Contract, knowledge: Any) -> Policy:
    """A model as its class makes it; ``knowledge`` is what :meth:`Policy.survey` found, for those who need it."""
    build: Any = find_model(config.model)
    if build.game != contract.game:
        raise InvalidConfig(f"model {config.model} plays {build.game}, the data shows {contract.game}")
    made: Policy = build(config, contract) if knowledge is None else build(config, contract, knowledge)
    return made


def count_parameters(config: Config, contract: Contract, knowledge: Any = None) -> int:
    """Trainable parameters, without taking the memory for them."""
    with torch.device("meta"):
        model = make_model(config, contract, knowledge)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def build_model(config: Config, contract: Contract, knowledge: Any = None) -> Policy:
    """A fresh model with its first weights; the caller seeds."""
    model = make_model(config, contract, knowledge)
    if config.init == "released" and isinstance(model, Encoded):
        # The released code: N(0, 0.01) for all that is called a weight, 0 for the rest, and so for v. Scaled first
        # weights, the default, measured better (AR on AOR, 1,500 updates of preset cpu: 32.2 against 19.6).
        for name, parameter in model.named_parameters():
            if "weight" in name:
                nn.init.normal_(parameter, std=0.01)
            else:
                nn.init.zeros_(parameter)
        with torch.no_grad():
            model.encoder.embed.weight[0].zero_()
    return model
