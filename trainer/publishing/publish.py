"""Publish an agent: weights, config and card, to a folder or in one commit to the hub."""

from __future__ import annotations

import re
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
PLACES = ("where", "begun", "sources")  # of a run's data, of the run it began with, of the sources it practised on


@dataclass(frozen=True)
class Target:
    """Where to publish, and how."""

    to: str
    private: bool = False
    revision: str | None = None
    tag: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        check_url(self.to)
        if self.to.startswith(SCHEME):
            if not HUB_ID.fullmatch(self.name) or "@" in self.name:
                raise InvalidConfig(f"{self.to}: expected hf://org/name; use --revision for a branch")
        elif "://" in self.to or not self.to:
            raise InvalidConfig(f"{self.to}: expected hf://org/name or a folder")
        elif self.private or self.revision or self.tag:
            raise InvalidConfig("--private, --revision and --tag are for hf://org/name only")
        for option, name in (("--revision", self.revision), ("--tag", self.tag)):
            if name is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.ASCII):
                raise InvalidConfig(f"{option} {name}: expected letters, digits, dots and dashes, for example v1.0")

    @property
    def name(self) -> str:
        """The repository, or the folder."""
        return self.to.removeprefix(SCHEME)


@dataclass(frozen=True)
class Published:
    """What is published, and whether anything had to be sent."""

    to: str
    files: dict[str, int]  # bytes by name
    changed: bool
    commit: str | None = None


def publish(run: Path, target: Target | str, dry_run: bool = False) -> Published:
    """Publish the best agent of a run to ``hf://org/name`` or into a folder; publishing it again changes nothing."""
    target = Target(target) if isinstance(target, str) else target
    hub = target.to.startswith(SCHEME)
    if not hub:
        check_folder(run, Path(target.to), target.force)
    agent = prepare(run, target.name)
    with tempfile.TemporaryDirectory() as aside:
        agent.write(Path(aside))
        made = {path.name: path.read_bytes() for path in sorted(Path(aside).iterdir())}
        sizes = {name: len(content) for name, content in made.items()}
        if dry_run:
            return Published(target.to, sizes, False)
        if hub:
            return Published(target.to, sizes, *upload(Path(aside), target))
    folder = Path(target.to)
    if all((folder / name).is_file() and (folder / name).read_bytes() == made[name] for name in made):
        return Published(target.to, sizes, False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(f"{target.to}: cannot create the folder: {error.strerror}") from error
    agent.write(folder)
    return Published(target.to, sizes, True)


def check_folder(run: Path, folder: Path, force: bool = False) -> None:
    """Refuse to overwrite a run, or, without ``force``, pages and weights that are not a published agent's."""
    if folder.resolve() == run.resolve() or RunFolder(folder).last.exists():
        raise FolderConflict(f"{folder}: is the folder of a run; choose another folder")
    if force:
        return
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
    local = {name for name in PLACES if name in description.data and is_local(description.data[name])}
    public = replace(description, data=description.data | dict.fromkeys(local))  # which mean nothing elsewhere
    page = card(description, results, name, practised=facts.get("epoch") != -1)
    return Prepared(public.to_json(), page, tensors, facts)


def is_local(where: object) -> bool:
    """Whether a place is on this machine.

    >>> is_local("data/aes"), is_local("file:///data/aes"), is_local("hf://org/aes")
    (True, True, False)
    """
    scheme, mark, _ = str(where).partition("://")
    return not mark or scheme in LOCAL


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


def upload(folder: Path, target: Target) -> tuple[bool, str]:
    """One commit on the hub, then the tag; whether anything changed, and the commit."""
    name, branch = target.name, target.revision or "main"
    with explained(target.to, "no such place on the hub", Failed):
        client = import_client()
        api = client.HfApi()
        api.create_repo(name, private=target.private or None, exist_ok=True)
        if target.private and not api.repo_info(name).private:
            raise FolderConflict(f"{target.to}: exists and is public; make it private first")
        if branch != "main":
            api.create_branch(name, branch=branch, exist_ok=True)
        if not target.force and api.file_exists(name, "README.md", revision=branch):
            page = Path(api.hf_hub_download(name, "README.md", revision=branch))
            if not is_card(page.read_text(encoding="utf-8", errors="replace")):
                raise FolderConflict(f"{target.to}: its README.md is not the card of an agent (--force replaces it)")
        before = api.repo_info(name, revision=branch).sha
        tagged = tagged_commit(api, target)
        same = api.file_exists(name, PUBLISHED, revision=branch) and all(
            Path(api.hf_hub_download(name, path.name, revision=branch)).read_bytes() == path.read_bytes()
            for path in sorted(folder.iterdir())
        )
        if tagged and not target.force and (tagged != before or not same):
            raise FolderConflict(f"{target.to}: tag {target.tag} belongs to another commit (--force moves it)")
        commit = before
        if not same:
            files = [client.CommitOperationAdd(path.name, path) for path in sorted(folder.iterdir())]
            # Not upload_folder: it may make several commits, and a card must not be visible without its weights.
            message = "Publish the agent and its card"
            commit = api.create_commit(name, files, commit_message=message, revision=branch).oid
        if target.tag and tagged != commit:
            if tagged:
                api.delete_tag(name, tag=target.tag)
            api.create_tag(name, tag=target.tag, revision=commit)
        return commit != before or bool(target.tag and tagged != commit), str(commit)


def tagged_commit(api: Any, target: Target) -> str | None:
    """The commit that the tag names already."""
    if not target.tag:
        return None
    return next(
        (str(ref.target_commit) for ref in api.list_repo_refs(target.name).tags if ref.name == target.tag), None
    )
