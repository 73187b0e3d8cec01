"""The few exceptions a user can meet: one line each, which ``cli/common.py`` prints before it exits with their code."""

from __future__ import annotations

import errno
import re

LONGEST = 1000  # characters of a message


class TrainerError(Exception):
    """Base of all errors that are explained to the user in one line."""

    exit_code = 2

    def __str__(self) -> str:
        """The line; what a stranger's file made too long for one is cut."""
        text = super().__str__()
        return text if len(text) <= LONGEST else f"{text[: LONGEST * 3 // 4]} … {text[-LONGEST // 5 :]}"


class BadData(TrainerError):
    """A dataset, checkpoint or run that is not what it claims to be: missing, altered or foreign."""


class InvalidConfig(TrainerError):
    """A setting that cannot work: the message says which, and what would be right."""


class InvalidText(TrainerError):
    """A text that the agent cannot read: too long, or with tokens that it never saw."""


class FolderConflict(TrainerError):
    """The run folder already holds something else, or another process is writing to it."""


class MissingShards(BadData):
    """The dataset has no shards of the kind that a model learns from."""


class MissingExtra(TrainerError):
    """A package of the base install, or of an optional extra, is missing."""

    def __init__(self, package: str, extra: str = "") -> None:
        wanted = f'"./trainer[{extra}]"' if extra else "./trainer"
        super().__init__(f"this needs the package {package}: in a clone of aegen, pip install {wanted}")


class Failed(TrainerError):
    """The input was right but the work could not be finished, for example on a full disk."""

    exit_code = 1


class Interrupted(TrainerError):
    """Stopped by the user; what was done is saved."""

    exit_code = 130


# What another name or another place would mend.
WRONG_USE = (PermissionError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
WRONG_NAME = {errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}


def refused(error: OSError, where: object = None) -> TrainerError:
    """What the system refused, as one of ours: wrong use, or a failure such as a full disk."""
    kind = InvalidConfig if isinstance(error, WRONG_USE) or error.errno in WRONG_NAME else Failed
    name = where or error.filename
    return kind(f"{name}: {error.strerror or error}" if name else str(error.strerror or error))


def one_line(error: BaseException) -> str:
    """An error of another library in one short line.

    >>> one_line(ValueError("not\\n  here")), one_line(KeyError())
    ('not here', 'KeyError')
    """
    return masked(" ".join(str(error).split()))[:200] or type(error).__name__


def masked(text: str) -> str:
    """The error of another library without what stands before an @ or behind a ? in its URLs.

    >>> masked("no https://me:word@host/x and no https://host/x?key=word")
    'no https://…@host/x and no https://host/x?…'
    """
    text = re.sub(r"://[^\s'\"]*@", "://…@", text)
    return re.sub(r"(://[^\s'\"?#]*[?#])[^\s'\"]+", r"\1…", text)
