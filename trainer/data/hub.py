"""Repositories on the Hugging Face hub, read through huggingface_hub's cache: what was read once needs no network."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

from trainer.core.errors import BadData, MissingExtra, TrainerError, masked

SCHEME = "hf://"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?", re.ASCII)


def hub_id(where: str) -> str | None:
    """The id in ``org/name[@revision]``, with or without ``hf://``; None for what is a folder or another URL.

    >>> hub_id("hf://datasets/org/name@v1"), hub_id("s3://bucket/name")
    ('org/name@v1', None)
    """
    if not where.startswith(SCHEME):
        return where if HUB_ID.fullmatch(where) and not Path(where).exists() else None
    name = where.removeprefix(SCHEME)
    short = name.removeprefix("datasets/")
    return next((one for one in (short, name) if HUB_ID.fullmatch(one)), None)


class HubFiles:
    """The files of one commit: the first one asked for settles which, so that they belong together."""

    def __init__(self, where: str, name: str, kind: Literal["dataset", "model"]) -> None:
        self.kind = kind
        # Without the scheme a folder may have been meant.
        self.where = where if where.startswith(SCHEME) else f"{where}: no such folder; as a hub id"
        self.name, _, self.revision = name.partition("@")

    def fetch(self, name: str) -> Path:
        """The file in the cache, downloaded if it is not there."""
        client = import_client()
        with explained(self.where, f"no such {self.kind} on the hub"):
            try:
                path = Path(
                    client.hf_hub_download(self.name, name, repo_type=self.kind, revision=self.revision or None)
                )
            except client.errors.LocalEntryNotFoundError:  # a kind of the next one: the hub could not be asked
                raise
            except client.errors.EntryNotFoundError:
                raise FileNotFoundError(f"{self.where}: no {name} there") from None
        self.revision = path.parents[name.count("/")].name
        return path

    def open(self, path: str, mode: str) -> BinaryIO:
        """As fsspec's file systems do."""
        assert mode == "rb"
        return self.fetch(path.lstrip("/")).open("rb")


@contextmanager
def explained(where: str, unknown: str, failed: type[TrainerError] = BadData) -> Iterator[None]:
    """The client's errors in one line that holds no secret; a missing file stays one."""
    errors = import_client().errors
    try:
        yield
    except errors.LocalEntryNotFoundError:
        raise BadData(f"{where}: not in huggingface_hub's cache, and the hub cannot be reached") from None
    except errors.RepositoryNotFoundError:
        raise BadData(f"{where}: {unknown}, or access denied: run `hf auth login` or set HF_TOKEN") from None
    except errors.RevisionNotFoundError:
        raise BadData(f"{where}: no such revision") from None
    except FileNotFoundError:
        raise
    except (errors.HfHubHTTPError, errors.HTTPError, OSError, ValueError, RuntimeError) as error:
        raise failed(f"{where}: {without_token(error)}") from None


def without_token(error: BaseException) -> str:
    """The error of another library in one short line that does not show the token."""
    text = str(error)
    if token := import_client().get_token():
        text = text.replace(token, "…")
    text = re.sub(r"Bearer [^\s'\"]+", "Bearer …", masked(text))  # however it was quoted
    return " ".join(text.split())[:200] or type(error).__name__


def import_client() -> Any:
    """The package huggingface_hub, silent unless standard error is a terminal."""
    try:
        import huggingface_hub
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError as error:
        raise MissingExtra("huggingface_hub") from error
    huggingface_hub.utils.logging.set_verbosity_error()
    if not sys.stderr.isatty():
        huggingface_hub.utils.disable_progress_bars()
    return huggingface_hub
