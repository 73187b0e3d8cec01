"""What an evaluation says of an agent: ``evaluation-SPLIT.json`` as cards and reports read it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Measure = Literal["token", "sequence", "equation", "edits"]  # edits: the F0.5 of edits of text; the others: accuracy
Percent = Annotated[float, Meta(ge=0, le=100)]


class ScoredEdits(Struct):
    """MaxMatch, in short."""

    f: Percent = field(name="f0.5")


class Evaluation(Struct, kw_only=True):
    """The scores; those that were not measured are unset.

    >>> Evaluation(token_accuracy=50.0, edits=ScoredEdits(f=41.67)).scores
    {'token': 50.0, 'edits': 41.67}
    """

    token_accuracy: Percent | UnsetType = UNSET
    sequence_accuracy: Percent | UnsetType = UNSET
    equation_accuracy: Percent | UnsetType = UNSET
    edits: ScoredEdits | UnsetType = UNSET

    @property
    def scores(self) -> dict[Measure, float]:
        """By measure."""
        found: dict[Measure, float | UnsetType] = {
            "token": self.token_accuracy,
            "sequence": self.sequence_accuracy,
            "equation": self.equation_accuracy,
            "edits": self.edits.f if self.edits else UNSET,
        }
        return {name: score for name, score in found.items() if score is not UNSET}
