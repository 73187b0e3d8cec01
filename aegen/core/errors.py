"""The few exceptions a user can meet; only ``aegen.cli`` turns them into exit codes."""

from __future__ import annotations

LONGEST = 1000  # characters of a message


class AegenError(Exception):
    """Base of all errors that are explained to the user in one line."""

    exit_code = 2

    def __str__(self) -> str:
        """The line; what a stranger's file made too long for one is cut."""
        text = super().__str__()
        return text if len(text) <= LONGEST else f"{text[: LONGEST * 3 // 4]} … {text[-LONGEST // 5 :]}"


class InvalidSpec(AegenError):
    """A setting that is wrong or cannot be combined: the message says which value, and what would be right."""


class InvalidEdit(AegenError):
    """An edit that does not fit its state, or a metric whose edits do not reach the goal."""


class BadData(AegenError):
    """A file or folder that is not what it claims to be: missing, altered, foreign, unreadable."""


class FolderConflict(AegenError):
    """The folder already holds something else, or another process is writing to it."""


class NoAccess(AegenError):
    """The hub or a storage does not let us in, or has no such thing."""


class MissingExtra(AegenError):
    """A command needs a package of an optional extra."""

    @classmethod
    def of(cls, package: str, extra: str) -> MissingExtra:
        """The error that names the extra."""
        return cls(f'this needs the package {package}: in a clone of aegen, pip install ".[{extra}]"')


class Failed(AegenError):
    """The input was right but the work could not be finished, for example on a full disk."""

    exit_code = 1
