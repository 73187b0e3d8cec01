"""What a dataset says of itself: the manifest, and the description that each shard carries in its metadata.

Everything here may come from a stranger: types and limits are declared on the fields and checked before anything is
believed. ``aegen`` and ``trainer`` carry this file byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from .errors import BadData
from .format import (
    DELETE,
    INSERT_AFTER,
    KEEP,
    MAX_DESCRIPTION,
    MAX_MANIFEST,
    MAX_NAME,
    MAX_ROWS,
    MAX_SHARD,
    MAX_STATE,
    MAX_STEPS,
    MAX_TOKEN,
    MAX_VOCABULARY,
    POSITION,
    SHARD,
    SLOTS,
    SUBSTITUTE,
    VERSION,
    ConfigName,
    SplitName,
    is_special,
)
from .records import convert, decode, plain

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Vocabulary = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=MAX_TOKEN)], ...], Meta(max_length=MAX_VOCABULARY)
]
Value = str | int | float | bool | None
# How each config was made. Readers other than aegen only record it; the type bounds its depth.
Provenance = dict[str, dict[str, Value | list[dict[str, Value]] | dict[str, Value]]]


class FileInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """What the manifest says of one file."""

    rows: Annotated[int, Meta(ge=0, le=MAX_ROWS)]
    bytes: Annotated[int, Meta(ge=0, le=MAX_SHARD)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class ManifestRecord(Struct, frozen=True, kw_only=True):
    """``manifest.json``: written last, so a folder without it is not finished."""

    format: int = VERSION
    spec: Provenance
    files: dict[str, FileInfo]
    capped_pairs: Count = 0  # pairs whose shifted states are a sample


class Goal(Struct, frozen=True):
    """What winning is: the state in which the agent says DONE equals the ``target``, or is an ``equation``.

    The equation must hold, without parentheses, and keep something of the source: its ``integers`` in order; the
    ``values`` of its integers and parentheses in order; or all but a few ``edits``. Where the target is known, its
    integers must be those of the target, whatever is kept.
    """

    wins: Literal["equation", "target"]
    keeps: Literal["integers", "values", "edits"] | None = None
    edits: Annotated[int, Meta(ge=0, le=MAX_STEPS)] = 0  # at most so many from the source, with ``keeps`` edits
    integers: Annotated[int, Meta(ge=0, le=MAX_STATE)] = 0  # exactly so many, with ``keeps`` edits; 0: any number

    def __post_init__(self) -> None:
        if (self.wins == "equation") != (self.keeps is not None):
            raise ValueError("keeps: expected what an equation keeps, and nothing for a target")


class PairsDescription(Struct, frozen=True, kw_only=True):
    """What every shard says of itself."""

    format: int = VERSION
    config: ConfigName
    split: SplitName
    task: Name
    tokens: Literal["words", "chars"]
    arithmetic: bool  # whether equation accuracy makes sense
    one_source: bool = False  # whether a target has exactly one source, so that there can be no variants
    goal: Goal | None = None  # None: written before shards said what winning is
    spec: Provenance
    counts: dict[str, Count | list[Count] | dict[str, Count]] = {}


class StepsDescription(PairsDescription, frozen=True, kw_only=True):
    """What a shard of demonstrations says as well: enough to read its rows and to play the game."""

    metric: Name
    backend: dict[str, Value]
    design: Name
    usual: bool = True  # whether metric and design are the task's own
    slots: Annotated[tuple[str, ...], Meta(max_length=3)]
    state_tokens: Vocabulary
    action_tokens: Vocabulary
    writable: Vocabulary
    max_state: Annotated[int, Meta(ge=0, le=MAX_STATE)]
    action_length: Annotated[int, Meta(ge=0, le=MAX_STATE + 1)]
    max_steps: Annotated[int, Meta(ge=0, le=MAX_STEPS)]
    capped_pairs: Count = 0

    @property
    def game(self) -> str:
        """What an action is: one of the ``edits``, a round of ``tags``, or the whole ``text``."""
        return self.slots[0] if self.slots in (("tags",), ("text",)) else "edits"


Steps = TypeVar("Steps", bound=StepsDescription)
UNITED = ("state_tokens", "action_tokens", "writable")
LARGEST = ("max_state", "max_steps", "action_length")
SUMMED = ("capped_pairs",)
DIFFERENT = ("config", "split", "counts")  # from shard to shard


class _Version(Struct):
    format: Any = None


def check_version(raw: bytes | str, where: object, most: int = MAX_DESCRIPTION) -> None:
    """Refuse another version of the format before anything else is looked at."""
    found = decode(raw, _Version, where, most).format
    if found != VERSION or isinstance(found, bool):
        newer = isinstance(found, int) and found > VERSION
        advice = "update the package" if newer else "build the dataset again"
        shown = "no format number" if found is None else f"format {str(found)[:20]}"
        raise BadData(f"{where}: {shown}, this version reads format {VERSION}: {advice}")


def read_manifest(raw: bytes | str, where: object) -> ManifestRecord:
    """A manifest from untrusted bytes; its file names cannot lead out of the folder."""
    check_version(raw, where, MAX_MANIFEST)
    manifest = decode(raw, ManifestRecord, where, MAX_MANIFEST)
    for name in manifest.files:
        if not SHARD.fullmatch(name):
            raise BadData(f"{where}: field files: {name[:80]!a} is not a shard name")
    if "pairs" not in manifest.spec:
        raise BadData(f"{where}: object missing required field spec.pairs")
    return manifest


def read_description(raw: bytes | str, where: object) -> PairsDescription | StepsDescription:
    """A shard's description from untrusted bytes."""
    check_version(raw, where)
    described = decode(raw, PairsDescription, where)
    if described.config in ("pairs", "variants", "sources", "annotations"):
        return described
    return checked(decode(raw, StepsDescription, where), where)


def checked(described: Steps, where: object) -> Steps:
    """The description, if its vocabularies, slots and sizes fit together."""
    if described.slots not in SLOTS:
        raise BadData(f"{where}: field slots: no such action: {list(described.slots)}")
    wanted = {"edits": len(described.slots), "tags": described.max_state + 1}.get(described.game)
    if wanted is not None and described.action_length != wanted:
        raise BadData(f"{where}: field action_length: expected {wanted}, got {described.action_length}")
    for name in UNITED:
        tokens: tuple[str, ...] = getattr(described, name)
        for token in tokens:
            if any(map(str.isspace, token)):
                raise BadData(f"{where}: field {name}: {token[:60]!r} contains white space")
            if name != "action_tokens" and is_special(token):
                raise BadData(f"{where}: field {name}: {token} is reserved for actions")
        if any(one >= two for one, two in pairwise(tokens)):
            raise BadData(f"{where}: field {name}: expected sorted tokens without repetition")
    _check_actions(described, where)
    return described


def _check_actions(described: StepsDescription, where: object) -> None:
    known, writable = set(described.state_tokens), set(described.writable)
    for token in described.action_tokens:
        if described.game == "tags":
            new = next((token.removeprefix(k) for k in (SUBSTITUTE, INSERT_AFTER) if token.startswith(k)), None)
            if token not in (KEEP, DELETE) and new not in known:
                raise BadData(f"{where}: field action_tokens: {token[:60]!r} is not a tag")
            continue
        position = POSITION.fullmatch(token)
        if position and int(position[1]) > described.max_state:
            raise BadData(f"{where}: field action_tokens: {token} exceeds max_state {described.max_state}")
        if not is_special(token) and (token not in known or token not in writable):
            missing = "state_tokens" if token not in known else "writable"
            raise BadData(f"{where}: field action_tokens: {token[:60]!r} is not in {missing}")


def merge(described: Iterable[tuple[str, StepsDescription]]) -> StepsDescription:
    """One description for several shards: vocabularies united, sizes at their largest, the rest equal."""
    (first_name, first), *others = named = list(described)
    merged: dict[str, Any] = {"counts": {}}
    for name in UNITED:
        merged[name] = tuple(sorted(set().union(*(getattr(one, name) for _, one in named))))
    for name in LARGEST:
        merged[name] = max(getattr(one, name) for _, one in named)
    for name in SUMMED:
        merged[name] = sum(getattr(one, name) for _, one in named)
    for field in first.__struct_fields__:
        if field in merged or field in DIFFERENT:
            continue
        for where, one in others:
            if getattr(one, field) != getattr(first, field):
                raise BadData(f"{where}: field {field} differs from {first_name}")
    united = msgspec.structs.replace(first, **merged)
    return checked(convert(plain(united), type(first), first_name), first_name)  # limits hold for all
