"""Publishing an agent: weights, config and a card that states what was measured, in one commit."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.core.errors import BadData, Failed, FolderConflict, InvalidConfig
from trainer.data.contract import Fields
from trainer.data.hub import HUB_ID, SCHEME, explained, hub_id, import_client
from trainer.data.places import LOCAL, check_url
from trainer.models.zoo import find_model, make_model
from trainer.training.checkpoint import digest, load_checkpoint, most_bytes, save_checkpoint, write, write_json
from trainer.training.run import Description, read_json

MEASURES = {
    "token_accuracy": "Token accuracy",
    "sequence_accuracy": "Sequence accuracy",
    "equation_accuracy": "Equation accuracy",
}
SPLITS = ("test", "validation")
MARK = 'library_name: "aegen"'


def publish(run: Path, to: str, private: bool = False) -> str:
    """Publish the best agent of a run to ``hf://org/name`` or into a folder; returns where it is now."""
    check_url(to)
    if to.startswith(SCHEME):
        name = to.removeprefix(SCHEME)
        if not HUB_ID.fullmatch(name) or "@" in name:
            raise InvalidConfig(f"{to}: hf://org/name is needed")
        with tempfile.TemporaryDirectory() as folder:
            prepare(run, name).write(Path(folder))
            return upload(Path(folder), name, private)
    if "://" in to:
        raise InvalidConfig(f"{to}: hf://org/name or a folder is needed")
    folder_path = Path(to)
    check_folder(run, folder_path)
    agent = prepare(run, to)
    try:
        folder_path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(f"{to}: cannot be made: {error.strerror}") from error
    agent.write(folder_path)
    return to


def check_folder(run: Path, folder: Path) -> None:
    """Refuse to overwrite what is not a published agent: a run, or somebody's own pages or weights."""
    if folder.resolve() == run.resolve() or (folder / "last.safetensors").exists():
        raise FolderConflict(f"{folder}: it is the folder of a run: name another")
    page = folder / "README.md"
    if page.exists() and MARK not in page.read_text(encoding="utf-8", errors="replace"):
        raise FolderConflict(f"{page}: not the card of an agent: name another folder")
    if (folder / "config.json").exists():
        Description.read(folder / "config.json")
    elif (weights := folder / "model.safetensors").exists():  # ours come after their config
        raise FolderConflict(f"{weights}: not the weights of an agent: name another folder")


@dataclass(frozen=True)
class Prepared:
    """All that is published of an agent."""

    described: dict[str, Any]
    page: str
    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def write(self, folder: Path) -> None:
        """Into a folder; the weights come last, so that a folder with weights is complete."""
        (folder / "model.safetensors").unlink(missing_ok=True)  # those of another agent must not meet this config
        write_json(folder / "config.json", self.described)
        write(folder / "README.md", self.page.encode())
        save_checkpoint(folder / "model.safetensors", self.tensors, self.facts)


def prepare(run: Path, name: str) -> Prepared:
    """Read and check all that is published: what cannot be must not cost the agent that is there already."""
    description = Description.read(run / "config.json")
    if not (run / "best.safetensors").exists():
        raise BadData(f"{run}: no best.safetensors yet: it appears with the first validation")
    with torch.device("meta"):
        model = make_model(description.config, description.contract, description.knowledge)
    tensors, facts = load_checkpoint(run / "best.safetensors", most_bytes(model))
    results = measured(run, facts, description.data.get("where"))
    public = description
    scheme, mark, _ = str(description.data.get("where")).partition("://")
    if not mark or scheme in LOCAL:
        public = replace(description, data=description.data | {"where": None})  # a path tells others nothing
    return Prepared(public.to_json(), card(description, results, name), tensors, facts)


def measured(run: Path, facts: dict[str, Any], where: object) -> dict[str, dict[str, Any]]:
    """What ``trainer evaluate`` measured of these weights on the run's own dataset, and their validation."""
    found = {}
    best = run / "best.safetensors"
    weights = digest(best)
    for split in SPLITS:
        path = run / f"evaluation-{split}.json"
        if not path.exists():
            continue
        result = read_json(path)
        if result.get("weights") == weights and result.get("data") == where:
            found[split] = figures(result, str(path))
    if isinstance(facts.get("validation"), dict):
        found.setdefault("validation", figures(facts["validation"], f"{best}: validation"))
    return found


def figures(values: dict[str, Any], where: str) -> dict[str, Any]:
    """What a card shows of a measurement, checked: how many games, how many refused actions, and accuracies."""
    read = Fields(values, where)
    found: dict[str, Any] = {name: read.number(name, 0, 1 << 50) for name in ("pairs", "refused")}
    for name in MEASURES:
        if name not in values:
            continue
        share = values[name]
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share <= 100:
            raise read.wrong(name, "a number from 0 to 100")
        found[name] = share
    return found


def upload(folder: Path, name: str, private: bool) -> str:
    """One commit on the hub."""
    with explained(f"{SCHEME}{name}", "no such place on the hub", Failed):
        api = import_client().HfApi()
        api.create_repo(name, private=private or None, exist_ok=True)
        if private and not api.repo_info(name).private:
            raise FolderConflict(f"{SCHEME}{name}: it is there and public: make it private first")
        if api.file_exists(name, "README.md"):
            page = Path(api.hf_hub_download(name, "README.md")).read_text(encoding="utf-8", errors="replace")
            if MARK not in page:
                raise FolderConflict(f"{SCHEME}{name}: its card is not that of an agent: name another repository")
        add = import_client().CommitOperationAdd
        files = [add(path.name, path) for path in sorted(folder.iterdir())]
        # Not upload_folder: it may make several commits, and nobody shall see a card without its weights.
        commit = api.create_commit(name, files, commit_message="Publish the agent and its card")
        return str(commit.commit_url)


def card(description: Description, results: dict[str, dict[str, Any]], name: str) -> str:
    """The model card: how to use it, what was measured, how it was trained."""
    config, contract = description.config, description.contract
    where = str(description.data.get("where"))
    dataset = hub_id(where) if where.startswith(SCHEME) else None
    index = model_index(name, contract.task, results, dataset)
    header = {
        "library_name": "aegen",
        "license": "mit",
        "tags": ["text-editing", "imitation-learning", "aegen", config.model],
        **({"datasets": [dataset.partition("@")[0]]} if dataset else {}),
        "model-index": index,
    }
    columns = [key for key in MEASURES if any(key in values for values in results.values())]
    table = [
        f"| split | pairs | {' | '.join(map(MEASURES.__getitem__, columns))} | refused actions |",
        f"|---|---|{'---|' * len(columns)}---|",
        *(
            f"| {split} | {values['pairs']:,} | "
            + " | ".join(f"{values[key]:.2f} %" if key in values else "" for key in columns)
            + f" | {values['refused']:,} |"
            for split, values in results.items()
        ),
    ]
    settings = [f"| {key} | `{json.dumps(value)}` |" for key, value in config.to_json().items()]
    body = f"""
# {name.rsplit("/", 1)[-1]}

An agent that edits text step by step (*Text Editing as Imitation Game*): `{config.model}`, \
{find_model(config.model).about}, {description.parameters:,} parameters, \
trained on the {config.train_on} demonstrations of task `{contract.task}` (edit metric {contract.metric}, \
actions [{", ".join(contract.slots)}]).

## Use

```
pip install "aegen[train]"
trainer edit {name} "…"
```

```python
from trainer import Agent

agent = Agent.from_pretrained("{name}")
print(agent.edit("…").text)
```

It reads at most {contract.max_state} tokens ({contract.tokens}) of the {len(contract.state_tokens):,} that \
occur in its training data, and plays at most {contract.max_steps} steps.

## Results

Greedy recurrent inference through the environment.

{chr(10).join(table)}

## Training

| setting | value |
|---|---|
{chr(10).join(settings)}

Versions: {", ".join(f"{key} {value}" for key, value in description.versions.items())}. \
The SHA-256 of every file it was trained on is in `config.json`.
"""
    # JSON is YAML, and needs no library to be written right.
    front = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items())
    return f"---\n{front}\n---\n{body}"


def model_index(name: str, task: str, results: dict[str, dict[str, Any]], dataset: str | None) -> list[dict[str, Any]]:
    """The results in the form that the hub shows."""
    listed = [
        {
            "task": {"type": "text2text-generation", "name": "Text editing"},
            "dataset": {"type": dataset or task, "name": task, "split": split},
            "metrics": [
                {"type": key, "name": title, "value": values[key]} for key, title in MEASURES.items() if key in values
            ],
        }
        for split, values in results.items()
    ]
    return [{"name": name.rsplit("/", 1)[-1], "results": listed}]
