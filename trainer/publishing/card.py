"""The model card: how to use an agent, what was measured, how it was trained."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from trainer.core.markdown import markdown_templates, project_link, read_front_matter
from trainer.core.records import convert, plain
from trainer.data.demonstrations import Shards
from trainer.data.hub import SCHEME, hub_id
from trainer.models.zoo import find_model
from trainer.training.measures import Evaluation
from trainer.training.rounds import Practice, counted
from trainer.training.run import Description

MEASURES = {
    "token_accuracy": "Token accuracy",
    "sequence_accuracy": "Sequence accuracy",
    "equation_accuracy": "Equation accuracy",
    "f0.5": "F0.5 of edits",
}
LIBRARY = "aegen"  # in the head of a card: tells ours from other people's
TEMPLATE = markdown_templates("trainer.publishing").get_template("model.md")

LEARNED_FROM: dict[Shards, str] = {
    "augmented": "the augmented demonstrations",
    "expert": "the expert's demonstrations",
    "variants": "the expert's demonstrations, those of variants included,",
    "tags": "the rounds of tags",
    "pairs": "the pairs",
}

Results = dict[str, dict[str, Any]]  # by split
Count = Annotated[int, Meta(ge=0, le=1 << 50)]


class Measured(Evaluation, kw_only=True):
    """A measurement, as far as a card shows it."""

    pairs: Count
    refused: Count


def figures(values: dict[str, Any], where: str) -> dict[str, Any]:
    """What a card shows of a measurement, checked.

    >>> figures({"pairs": 2, "refused": 0, "edits": {"precision": 50.0, "f0.5": 41.67}, "seconds": 1.0}, "evaluation")
    {'pairs': 2, 'refused': 0, 'f0.5': 41.67}
    """
    found = plain(convert(values, Measured, where))
    edits = found.pop("edits", {})
    return {**found, **edits}


def is_card(page: str) -> bool:
    """Whether a page is the card of an agent."""
    return bool(read_front_matter(page).get("library_name") == LIBRARY)


def card(description: Description, results: Results, name: str, practised: bool = True) -> str:
    """The page; ``name`` is where it will be: ``org/name`` or a folder.

    ``practised`` says whether the weights are of after practice, which may have made nothing better.
    """
    config, contract, practice = description.config, description.contract, description.practice
    left_out = ("updates", "epochs") if practice else ()  # those of practice alone, which the page says in words
    model = find_model(config.model)
    where = str(description.data.get("where"))
    dataset = hub_id(where) if where.startswith(SCHEME) else None
    title = Path(name).absolute().name or name  # of ``out/`` and of ``.`` too
    header = {
        "library_name": LIBRARY,
        "license": "mit",
        "tags": ["text-editing", "imitation-learning", "aegen", config.model],
        **({"datasets": [dataset.partition("@")[0]]} if dataset else {}),
        "model-index": [{"name": title, "results": index(results, contract.task, dataset)}],
    }
    return TEMPLATE.render(
        header=header,
        project=project_link("aegen-trainer"),
        name=name,
        shell_name=shlex.quote(name),
        title=title,
        about=model.about,
        model=config.model,
        learned_from=LEARNED_FROM[model.shards(config)],
        settings={name: value for name, value in description.settings.items() if name not in left_out},
        stages=() if practice else description.recipe,
        practice=practice and convert(practice, Practice, "practice"),
        practised=practised,
        counted=counted,
        contract=contract,
        parameters=description.parameters,
        versions=description.versions,
        results=results,
        measures={key: text for key, text in MEASURES.items() if any(key in found for found in results.values())},
    )


def index(results: Results, task: str, dataset: str | None) -> list[dict[str, Any]]:
    """The results in the form that the hub shows."""
    return [
        {
            "task": {"type": "text2text-generation", "name": "Text editing"},
            "dataset": {"type": dataset or task, "name": task, "split": split},
            "metrics": [
                {"type": key, "name": text, "value": found[key]} for key, text in MEASURES.items() if key in found
            ],
        }
        for split, found in results.items()
    ]
