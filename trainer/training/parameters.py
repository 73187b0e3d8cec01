"""How many parameters each model has on a dataset."""

from __future__ import annotations

from trainer.core.config import preset
from trainer.core.errors import NoLessons
from trainer.data.dataset import Dataset
from trainer.models.zoo import MODELS, count_parameters
from trainer.training.demonstrations import open_training
from trainer.training.fit import survey


def parameters_by_model(data: str, preset_name: str = "paper", train_on: str | None = None) -> dict[str, int]:
    """Trainable parameters by model, without models that the dataset has no demonstrations for, such as tags."""
    dataset = Dataset(data)
    kind = train_on or ("augmented" if dataset.has("augmented", "train") else "expert")
    counts: dict[str, int] = {}
    for name in MODELS:
        config = preset(preset_name, model=name, train_on=kind)
        try:
            footers, contract = open_training(dataset, config)
            config, knowledge, _ = survey(dataset, footers, contract, config)
        except NoLessons:
            continue
        counts[name] = count_parameters(config, contract, knowledge)
    return counts
