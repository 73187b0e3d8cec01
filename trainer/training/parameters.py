"""How many parameters each model has on a dataset."""

from __future__ import annotations

from trainer.core.errors import InvalidConfig, MissingShards
from trainer.core.format import ConfigName
from trainer.data.dataset import Dataset
from trainer.models.zoo import MODELS, count_parameters, open_demonstrations
from trainer.training.presets import preset


def parameters_by_model(data: str, preset_name: str = "paper", train_on: ConfigName | None = None) -> dict[str, int]:
    """Trainable parameters by model, without models that cannot learn from the dataset: it may have no tags."""
    dataset = Dataset(data)
    if train_on:
        dataset.select(train_on, "train")  # what was asked for must be there
    kind = train_on or ("augmented" if dataset.has("augmented", "train") else "expert")
    counts: dict[str, int] = {}
    for name, model in MODELS.items():
        config = preset(preset_name, model=name, train_on=kind)
        try:
            demonstrations = open_demonstrations(dataset, config)
            config, knowledge = model.study(demonstrations, config)
        except (MissingShards, InvalidConfig):  # the second: spans too wide for the planner, steps beyond memory
            continue
        counts[name] = count_parameters(config, demonstrations.contract, knowledge)
    return counts
