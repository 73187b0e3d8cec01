"""Publish an agent: weights, config and card, to a folder or in one commit to the hub."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.core.errors import BadData, Failed, FolderConflict, InvalidConfig
from trainer.core.files import digest, write, write_json
from trainer.core.format import SplitName
from trainer.data.hub import HUB_ID, SCHEME, explained, import_client
from trainer.data.places import LOCAL, check_url
from trainer.models.zoo import make_model
from trainer.publishing.card import Results, card, figures, is_card
from trainer.training.checkpoint import load_checkpoint, most_bytes, save_checkpoint
from trainer.training.run import CONFIG, PUBLISHED, Description, RunFolder, read_json

SPLITS: tuple[SplitName, ...] = ("test", "validation")


def publish(run: Path, to: str, private: bool = False) -> str:
    """Publish the best agent of a run to ``hf://org/name`` or into a folder; returns its address."""
    check_url(to)
    if to.startswith(SCHEME):
        name = to.removeprefix(SCHEME)
        if not HUB_ID.fullmatch(name) or "@" in name:
            raise InvalidConfig(f"{to}: expected hf://org/name")
        with tempfile.TemporaryDirectory() as folder:
            prepare(run, name).write(Path(folder))
            return upload(Path(folder), name, private)
    if "://" in to:
        raise InvalidConfig(f"{to}: expected hf://org/name or a folder")
    folder_path = Path(to)
    check_folder(run, folder_path)
    agent = prepare(run, to)
    try:
        folder_path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(f"{to}: cannot create the folder: {error.strerror}") from error
    agent.write(folder_path)
    return to


def check_folder(run: Path, folder: Path) -> None:
    """Refuse to overwrite a run, or pages and weights that are not a published agent's."""
    if folder.resolve() == run.resolve() or RunFolder(folder).last.exists():
        raise FolderConflict(f"{folder}: is the folder of a run; choose another folder")
    page = folder / "README.md"
    if page.exists() and not is_card(page.read_text(encoding="utf-8", errors="replace")):
        raise FolderConflict(f"{page}: not the card of an agent; choose another folder")
    if (folder / CONFIG).exists():
        Description.read(folder / CONFIG)
    elif (weights := folder / PUBLISHED).exists():  # ours come after their config
        raise FolderConflict(f"{weights}: not the weights of an agent; choose another folder")


@dataclass(frozen=True)
class Prepared:
    """The files of a published agent."""

    described: dict[str, Any]
    page: str
    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def write(self, folder: Path) -> None:
        """Write them into a folder; weights last, so that a folder with weights is complete."""
        (folder / PUBLISHED).unlink(missing_ok=True)  # another agent's must not lie beside this config
        write_json(folder / CONFIG, self.described)
        write(folder / "README.md", self.page.encode())
        save_checkpoint(folder / PUBLISHED, self.tensors, self.facts)


def prepare(run: Path, name: str) -> Prepared:
    """Read and check everything before anything is written: a failure leaves the published agent as it was."""
    files = RunFolder(run)
    description = Description.read(files.config)
    if not files.best.exists():
        raise BadData(f"{run}: no {files.best.name} yet; the first validation writes it")
    with torch.device("meta"):
        model = make_model(description.config, description.contract, description.knowledge)
    tensors, facts = load_checkpoint(files.best, most_bytes(model))
    results = measured(files, facts)
    public = description
    scheme, mark, _ = str(description.data.get("where")).partition("://")
    if not mark or scheme in LOCAL:
        public = replace(description, data=description.data | {"where": None})  # a local path means nothing elsewhere
    return Prepared(public.to_json(), card(description, results, name), tensors, facts)


def measured(run: RunFolder, facts: dict[str, Any]) -> Results:
    """Results of ``trainer evaluate`` for these weights on the run's own dataset, and of their last validation."""
    found: Results = {}
    weights = digest(run.best)
    for split in SPLITS:
        path = run.evaluation(split)
        if not path.exists():
            continue
        result = read_json(path)
        if result.get("weights") == weights and result.get("own") is True:
            found[split] = figures(result, str(path))
    if isinstance(facts.get("validation"), dict):
        found.setdefault("validation", figures(facts["validation"], f"{run.best}: validation"))
    return found


def upload(folder: Path, name: str, private: bool) -> str:
    """One commit on the hub."""
    with explained(f"{SCHEME}{name}", "no such place on the hub", Failed):
        api = import_client().HfApi()
        api.create_repo(name, private=private or None, exist_ok=True)
        if private and not api.repo_info(name).private:
            raise FolderConflict(f"{SCHEME}{name}: exists and is public; make it private first")
        if api.file_exists(name, "README.md"):
            page = Path(api.hf_hub_download(name, "README.md")).read_text(encoding="utf-8", errors="replace")
            if not is_card(page):
                raise FolderConflict(f"{SCHEME}{name}: its README.md is not the card of an agent; choose another name")
        add = import_client().CommitOperationAdd
        files = [add(path.name, path) for path in sorted(folder.iterdir())]
        # Not upload_folder: it may make several commits, and a card must not be visible without its weights.
        commit = api.create_commit(name, files, commit_message="Publish the agent and its card")
        return str(commit.commit_url)
