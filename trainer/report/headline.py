"""What a report begins with: for each task the best agent that was run, and what to hold it against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from trainer.report import paper
from trainer.report.collect import Record
from trainer.report.notes import other_sizes, size_text
from trainer.report.paper import Figure
from trainer.report.tables import Entry, label, standard
from trainer.training.measures import Measure

RIGHT: dict[Measure, str] = {"equation": "equations right", "sequence": "texts right", "token": "tokens right"}


@dataclass(frozen=True)
class Headline:
    """The best result of a task."""

    task: str
    method: str
    measure: Measure
    score: Entry
    split: str
    minutes: float  # of training, the mean of the seeds
    rival: tuple[str, Figure] | None = None  # the best in the paper
    size: str = ""  # of the data, where it is not the paper's: then there is no difference from it

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's best, in percentage points."""
        if self.rival is None or self.score.mean is None or self.size:
            return None
        return self.score.mean - self.rival[1][0]

    @property
    def beside(self) -> str:
        """The paper's best and the difference from it."""
        if self.rival is None:
            return ""
        name, (theirs, _) = self.rival
        data = f"with {size_text(paper.SIZES[self.task])}; here {self.size}" if self.size else ""
        return f"paper's best, {name}: {theirs:.2f} {data or f'({self.difference:+.2f})'}"

    @property
    def cost(self) -> str:
        """How long it trained, and how often."""
        seeds = len(self.score.values)
        return f"{self.minutes:.1f} minutes of training, {seeds} seed{'s' if seeds > 1 else ''}, {self.split} split"


def headlines(records: Sequence[Record]) -> list[Headline]:
    """One for each task, in the order in which they are the subject."""
    return [headline([record for record in records if record.task == task]) for task in subjects(records)]


def subjects(records: Sequence[Record]) -> list[str]:
    """The tasks: the paper's first, in its order, unless most cells are of others."""
    own = [record.task for record in records if record.task not in paper.TASKS]
    theirs = {record.task for record in records} - {*own}
    in_order = [task for task in paper.TASKS if task in theirs]
    others = sorted(set(own))
    return others + in_order if own_first(records) else in_order + others


def own_first(records: Sequence[Record]) -> bool:
    """Whether texts of the user's own are the subject: most cells are of other tasks than the paper's."""
    return 2 * sum(record.task not in paper.TASKS for record in records) > len(records)


def headline(records: Sequence[Record]) -> Headline:
    """The best method of one task: of the test split and without a label, where there are such cells."""
    for split in ("test", "validation"):
        if here := [record for record in records if record.split == split]:
            break
    here = [record for record in here if not record.label] or here
    measure: Measure = next((m for m in RIGHT if any(m in record.scores for record in here)), "token")
    groups: dict[tuple[str, bool, str, str, str], list[Record]] = {}
    for record in here:
        if measure in record.scores:
            key = (record.model, record.ta, record.label, record.metric, record.design)
            groups.setdefault(key, []).append(record)
    runs = max(groups.values(), key=lambda runs: mean(record.scores[measure] for record in runs), default=here[:1])
    first = runs[0]
    return Headline(
        task=first.task,
        method=label(first.model, first.ta) + (f", {first.label}" if first.label else ""),
        measure=measure,
        score=Entry(tuple(record.scores[measure] for record in runs if measure in record.scores)),
        split=first.split,
        minutes=mean(record.train_seconds for record in runs) / 60,
        rival=best_in_paper(first.task, measure) if standard(first) else None,
        size="; ".join(other_sizes(runs, first.task)),
    )


def best_in_paper(task: str, measure: Measure) -> tuple[str, Figure] | None:
    """The method with the best figure of a column of the paper's main table."""
    column = (task, measure)
    return max(
        ((label(*name), row[column]) for name, row in paper.MAIN.items() if column in row),
        key=lambda found: found[1][0],
        default=None,
    )
