"""The Hugging Face hub: one commit with everything, then the tag. Tokens come from where huggingface_hub looks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from aegen.card.companions import CARD, MARK
from aegen.columns.schemas import SCHEMAS
from aegen.core.errors import AegenError, BadData, Failed, FolderConflict, InvalidSpec, MissingExtra, NoAccess
from aegen.core.format import MANIFEST, MAX_MANIFEST
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.files.places import SCHEME, short

MAIN = "main"
DOWNLOADS = 8  # at once
SHARDS = [f"{config}/*.parquet" for config in SCHEMAS]
_URL = re.compile(SCHEME + r"(?:datasets/)?([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([\w./-]+))?", re.ASCII)


def parse(url: str) -> tuple[str, str | None]:
    """Repository and revision.

    >>> parse("hf://org/name@v1")
    ('org/name', 'v1')
    """
    if match := _URL.fullmatch(url):
        return match[1], match[2]
    if re.search(r"[:@?#]", url.removeprefix(SCHEME)):
        raise InvalidSpec(
            "a token in the URL would be visible: run `hf auth login` or set HF_TOKEN (expected hf://org/name[@revision])"
        )
    raise InvalidSpec(f"{url}: expected hf://org/name or hf://org/name@revision")


def repository_id(url: str, branch: str | None = None) -> str:
    """The repository as a card names it, with a branch or revision that is not the default.

    >>> repository_id("hf://org/name"), repository_id("hf://org/name", "dev")
    ('org/name', 'org/name@dev')
    """
    name, revision = parse(url)
    at = branch or revision
    return f"{name}@{at}" if at and at != MAIN else name


@dataclass(frozen=True)
class Repository:
    """A dataset repository that exists, and the branch that is written to."""

    url: str
    name: str
    branch: str
    api: Any

    @classmethod
    def open(cls, url: str, private: bool, branch: str | None) -> Repository:
        """Create the repository and the branch if they do not exist."""
        name, _ = parse(url)
        with explained(url):
            api = _client().HfApi()
            api.create_repo(name, repo_type="dataset", private=private or None, exist_ok=True)
            if private and not api.repo_info(name, repo_type="dataset").private:
                raise FolderConflict(f"{url}: already exists and is public: make it private first")
            if branch and branch != MAIN:
                api.create_branch(name, branch=branch, repo_type="dataset", exist_ok=True)
        return cls(url, name, branch or MAIN, api)

    def content(self, name: str) -> bytes | None:
        """One small file, if it exists."""
        errors = _client().errors
        with explained(self.url):
            try:
                path = self.api.hf_hub_download(self.name, name, repo_type="dataset", revision=self.branch)
            except errors.LocalEntryNotFoundError:  # hub not reachable, and not in the cache
                raise
            except errors.EntryNotFoundError:
                return None
            with Path(path).open("rb") as file:
                return file.read(MAX_MANIFEST + 1)

    def manifest(self) -> Manifest | None:
        """Of the dataset published there, if there is one."""
        raw = self.content(MANIFEST)
        return None if raw is None else Manifest.read(raw, f"{self.url}/{MANIFEST}")

    def foreign(self, manifest: Manifest) -> str | None:
        """Without a manifest there: the first file that would be replaced or removed."""
        page = self.content(CARD)
        if page is not None and MARK not in page.decode(errors="replace"):
            return CARD
        with explained(self.url):
            there = self.api.list_repo_files(self.name, repo_type="dataset", revision=self.branch)
        return next((name for name in sorted(there) if any(fnmatch(name, pattern) for pattern in SHARDS)), None)

    def send(
        self, folder: Folder, files: list[str], stale: list[str], tag: str | None, force: bool, same: bool
    ) -> tuple[str, bool]:
        """Upload everything and remove what is stale in one commit, then tag it; the commit, and whether it is new."""
        with explained(self.url):
            before = self.api.repo_info(self.name, repo_type="dataset", revision=self.branch).sha
            tagged = self._tagged(tag)
            if tagged and not force and (tagged != before or not same):
                raise FolderConflict(f"{self.url}: tag {tag} belongs to another commit (--force moves it)")
            # Not upload_folder: it splits many files into several commits, which would publish half a dataset.
            commit = self.api.create_commit(
                self.name,
                [
                    *self._removals(files, stale),
                    *(_client().CommitOperationAdd(name, folder.here / name) for name in files),
                ],
                commit_message=f"Publish {folder.manifest().recipe.name}",
                repo_type="dataset",
                revision=self.branch,
                parent_commit=before,
            ).oid
            if tag and tagged != commit:
                if tagged:
                    self.api.delete_tag(self.name, tag=tag, repo_type="dataset")
                self.api.create_tag(self.name, tag=tag, revision=commit, repo_type="dataset")
        return str(commit), commit != before or bool(tag and tagged != commit)

    def _removals(self, files: list[str], stale: list[str]) -> list[Any]:
        """Of files that are stale."""
        there = self.api.list_repo_files(self.name, repo_type="dataset", revision=self.branch)
        old = [name for name in there if name in stale or any(fnmatch(name, pattern) for pattern in SHARDS)]
        return [_client().CommitOperationDelete(name) for name in sorted({*old} - {*files})]

    def _tagged(self, tag: str | None) -> str | None:
        if not tag:
            return None
        refs = self.api.list_repo_refs(self.name, repo_type="dataset")
        return next((str(ref.target_commit) for ref in refs.tags if ref.name == tag), None)


@dataclass
class Snapshot:
    """One commit of a published dataset, downloaded into huggingface_hub's cache, or found there."""

    url: str
    name: str
    revision: str | None
    commit: str | None = None
    sizes: dict[str, int] | None = None  # of the files there; None: the hub does not answer, use the cache
    folder: Path | None = None

    @classmethod
    def open(cls, url: str) -> Snapshot:
        """List the files and the commit, and download the manifest."""
        there, client = cls(url, *parse(url)), _client()
        client.utils.disable_progress_bars()  # one bar per file would be too many
        with explained(url):
            there._list(client)
            if there.sizes is None:
                where = client.snapshot_download(
                    there.name,
                    repo_type="dataset",
                    revision=there.revision,
                    allow_patterns=[MANIFEST],
                    local_files_only=True,
                )
                there.folder = Path(where)
            else:
                # Not by the commit: the cache must record which commit a branch or tag is.
                there.fetch({MANIFEST: MAX_MANIFEST}, revision=there.revision or "main")
        return there

    def _list(self, client: Any) -> None:
        api, errors = client.HfApi(), client.errors
        try:
            self.commit = api.repo_info(self.name, repo_type="dataset", revision=self.revision).sha
            tree = api.list_repo_tree(self.name, recursive=True, repo_type="dataset", revision=self.commit)
            self.sizes = {entry.path: entry.size for entry in tree if hasattr(entry, "size")}
        except errors.HfHubHTTPError as error:
            if getattr(error.response, "status_code", 0) < 500:
                raise
        except (errors.HTTPError, OSError):
            pass

    def fetch(self, most: Mapping[str, int], progress: Progress = silent, revision: str | None = None) -> None:
        """Download those of these files that exist; reject files that are larger than expected before downloading."""
        sizes = self.sizes or {}  # without the hub, use the cache
        for name in most:
            if sizes.get(name, 0) > most[name]:
                raise BadData(f"{self.url}/{name}: altered ({sizes[name]:,} bytes; expected at most {most[name]:,})")
        load = partial(_client().hf_hub_download, self.name, repo_type="dataset", revision=revision or self.commit)
        names = [name for name in most if name in sizes]
        with explained(self.url), progress("fetching", len(names)) as advance, ThreadPoolExecutor(DOWNLOADS) as pool:
            for name, path in zip(names, pool.map(load, names), strict=True):
                advance(1)
                self.folder = Path(path).parents[name.count("/")]
                if self.folder.name != self.commit:
                    raise Failed(f"{self.url}: changed during the download; rerun the command")

    def read(self, name: str) -> BinaryIO:
        """Open a downloaded file."""
        if self.folder is None:
            raise FileNotFoundError(name)
        return (self.folder / name).open("rb")


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn the client's errors into ours: one line, without secrets."""
    errors = _client().errors
    try:
        yield
    except AegenError:
        raise
    except errors.LocalEntryNotFoundError as error:
        raise Failed(f"{url}: cannot be reached and is not in the cache ({one_line(error)})") from None
    except errors.RepositoryNotFoundError:
        raise NoAccess(f"{url}: no such dataset, or access denied: run `hf auth login` or set HF_TOKEN") from None
    except errors.RevisionNotFoundError:
        raise NoAccess(f"{url}: no such revision") from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in (401, 403):
            raise NoAccess(f"{url}: the hub rejected the token ({one_line(error)})") from None
        raise Failed(f"{url}: {one_line(error)}; rerun to resume; uploaded files are skipped") from None
    except (errors.HTTPError, errors.HFValidationError, RuntimeError, OSError) as error:
        raise Failed(f"{url}: {one_line(error)}; rerun to resume; uploaded files are skipped") from None
    except Exception as error:  # the answer is not a hub's, for example a network's login page
        raise Failed(f"{url}: unexpected answer, not from a hub ({type(error).__name__})") from None


def one_line(error: BaseException) -> str:
    """The error of the client, short and without the token."""
    return short(error, _client().get_token())


def _client() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError:
        raise MissingExtra.of("huggingface_hub", "hub") from None
    huggingface_hub.utils.logging.set_verbosity_error()  # our errors say what is wrong
    if not sys.stderr.isatty():
        huggingface_hub.utils.disable_progress_bars()
    return huggingface_hub
