"""The paper's tables with our figures beside its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import mean, stdev
from typing import Any

from trainer.models.zoo import MODELS
from trainer.report import paper
from trainer.report.collect import Record
from trainer.report.paper import Column, Figure
from trainer.training.measures import Measure

TA = " + TA"
BEST = "Best in the paper"
SHORT: dict[Measure, str] = {"token": "Tok.", "sequence": "Seq.", "equation": "Eq.", "edits": "F0.5"}
# The paper's models in its order, and rows of the main table for models that it does not have, where they were run.
ORDER = tuple(dict.fromkeys(model for model, _ in (*paper.MAIN, *paper.DECODERS)))
OURS: dict[tuple[str, bool], dict[Column, Figure]] = {
    (model, ta): {} for model in MODELS if model not in ORDER for ta in (False, True)
}


def label(model: str, ta: bool = False) -> str:
    """A method as the paper writes it; short words are acronyms.

    >>> label("nar-star", True), label("shared-d2"), label("planner")
    ('NAR* + TA', 'Shared D2', 'Planner')
    """
    words = [word.upper() if len(word) <= 3 else word[:1].upper() + word[1:] for word in model.split("-")]
    return " ".join(words).replace(" Star", "*") + (TA if ta else "")


@dataclass(frozen=True)
class Entry:
    """One cell of a table: our runs and the paper's figure; either may be missing."""

    values: tuple[float, ...] = ()
    theirs: Figure | None = None
    best: bool = False  # of its block
    best_of_all: bool = False

    @property
    def mean(self) -> float | None:
        return mean(self.values) if self.values else None

    @property
    def std(self) -> float | None:
        """The sample standard deviation; one run has none."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, in percentage points."""
        return self.mean - self.theirs[0] if self.mean is not None and self.theirs else None


@dataclass(frozen=True)
class Row:
    """One method: the first cells of the row, and its entries by column."""

    head: tuple[str, ...]
    block: Hashable
    cells: dict[Column, Entry]

    @property
    def has_results(self) -> bool:
        return any(entry.values for entry in self.cells.values())


@dataclass(frozen=True)
class Table:
    """A table of the paper."""

    key: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def ran(self) -> Table | None:
        """The rows and columns that have results; None if there are none.

        Where a row has no figure of the paper beside it, the last row has the best of the paper.
        """
        rows = [row for row in self.rows if row.has_results]
        columns = tuple(column for column in self.columns if any(row.cells[column].values for row in rows))
        if not rows:
            return None
        kept = [replace(row, cells={column: row.cells[column] for column in columns}) for row in rows]
        best = {column: Entry(theirs=self._best(column)) for column in columns}
        if any(best[column].theirs and not row.cells[column].theirs for row in kept for column in columns):
            kept.append(Row((BEST, *[""] * (len(self.heads) - 1)), BEST, best))
        return replace(self, columns=columns, rows=tuple(kept))

    def _best(self, column: Column) -> Figure | None:
        figures = [theirs for row in self.rows if (theirs := row.cells[column].theirs)]
        return max(figures, key=lambda figure: figure[0], default=None)

    @property
    def whole(self) -> Table | None:
        """The table with all that the paper has; None if that is no more than what was run."""
        rows = [row for row in self.rows if row.has_results or any(entry.theirs for entry in row.cells.values())]
        ran = self.ran
        if ran and ran.columns == self.columns and all(row.has_results for row in rows):
            return None
        return replace(self, rows=tuple(rows))


def make(
    key: str,
    title: str,
    heads: tuple[str, ...],
    columns: tuple[Column, ...],
    rows: Mapping[Any, dict[Column, Figure]],
    head: Callable[[Any], tuple[str, ...]],
    block: Callable[[Any], Hashable],
    belongs: Callable[[Any, Record], bool],
    records: Sequence[Record],
) -> Table:
    """A table: for each row of the paper, the runs that belong to it."""
    filled: list[Row] = []
    for name, theirs in rows.items():
        mine = [record for record in records if belongs(name, record)]
        cells = {
            (task, measure): Entry(
                tuple(r.scores[measure] for r in mine if r.task == task and measure in r.scores),
                theirs.get((task, measure)),
            )
            for task, measure in columns
        }
        filled.append(Row(head(name), block(name), cells))
    return Table(key, title, heads, columns, tuple(_marked(filled, columns)))


def _marked(rows: list[Row], columns: tuple[Column, ...]) -> list[Row]:
    """Mark the best of each block and of all, among rows that were run, unless all are equal."""
    marked = []
    for row in rows:
        cells = {}
        for column in columns:
            entry = row.cells[column]
            everyone = [(r.block, ours) for r in rows if (ours := r.cells[column].mean) is not None]
            rivals = [theirs for block, theirs in everyone if block == row.block]
            mine = entry.mean
            cells[column] = Entry(
                entry.values,
                entry.theirs,
                best=mine is not None and mine == max(rivals) > min(rivals),
                best_of_all=mine is not None and mine == max(m for _, m in everyone) > min(m for _, m in everyone),
            )
        marked.append(Row(row.head, row.block, cells))
    return marked


def tables(records: Sequence[Record]) -> list[Table]:
    """All tables of the paper; what was not run is empty."""
    others = [record for record in records if not standard(record)]
    records = [record for record in records if standard(record)]

    def method(name: Any, record: Record) -> bool:
        return record.usual and (record.model, record.ta) == name

    def design(name: Any, record: Record) -> bool:
        usual = (record.metric or paper.ABLATION_METRIC) == paper.ABLATION_METRIC
        used = record.design or paper.ABLATION_DESIGN
        return record.task == paper.ABLATION_TASK and usual and (used, record.model, record.ta) == name

    def metric(name: Any, record: Record) -> bool:
        usual = not record.design or record.design in paper.METRIC_DESIGNS
        used = record.metric or paper.ABLATION_METRIC
        return record.task == paper.ABLATION_TASK and usual and not record.ta and (used, record.model) == name

    def block(name: Any) -> Hashable:
        return name[1], 0 if name[0] in paper.BASELINES else 1 if name[0] in ORDER else 2

    task = paper.ABLATION_TASK.upper()
    own = {name: row for name, row in OURS.items() if any(method(name, record) for record in records)}
    return [
        make(
            "main", "Main table", ("Method",), paper.COLUMNS, paper.MAIN | own,
            lambda name: (label(*name),), block, method, records,
        ),
        make(
            "decoders", "Same encoder, other decoders", ("Decoder",), paper.COLUMNS, paper.DECODERS,
            lambda name: (label(*name),), lambda name: name[1], method, records,
        ),
        make(
            "designs", f"Action designs on {task}", ("Design", "Method"), paper.AES, paper.DESIGNS,
            lambda name: (paper.DESIGN_HEADS[name[0]], label(*name[1:])), lambda name: (name[0], name[2]),
            design, records,
        ),
        make(
            "metrics", f"Edit metrics on {task}", ("Edit metric", "Method"), paper.AES, paper.METRICS,
            lambda name: (paper.METRIC_HEADS[name[0]], label(name[1])), lambda name: name[0], metric, records,
        ),
        *other_tables(others),
    ]  # fmt: skip


def standard(record: Record) -> bool:
    """Whether a cell belongs to a table of the paper: one of its tasks without a label, on the test split."""
    return record.task in paper.TASKS and not record.label and record.split == "test"


def other_tables(records: Sequence[Record]) -> list[Table]:
    """What the paper has no table for, split by split: other tasks, and cells with a label."""
    found = []
    for split in sorted({record.split for record in records}):
        here = [record for record in records if record.split == split]
        rows: dict[Any, dict[Column, Figure]] = {method_of(record): {} for record in here}
        columns: dict[Column, None] = {}
        title = "Other cells" if any(record.task in paper.TASKS for record in here) else "Own texts"
        for record in here:
            measures = [measure for measure in SHORT if measure in record.scores]
            accuracies = [measure for measure in measures if measure != "edits"]
            columns |= {(record.task, measure): None for measure in accuracies[-1:] + measures[len(accuracies) :]}
        found.append(
            make(
                f"other-{split}", f"{title}, {split} split", ("Method",), tuple(columns), rows,
                lambda name: (", ".join(name),), lambda name: None,
                lambda name, record: method_of(record) == name, here,
            )
        )  # fmt: skip
    return found


def method_of(record: Record) -> tuple[str, ...]:
    """The method of a cell that has no row in the paper, in words: with its label, and with its edits if they are not
    the task's own."""
    edits = () if record.usual else (record.metric, record.design)
    return tuple(filter(None, (label(record.model, record.ta), record.label, *edits)))


@dataclass(frozen=True)
class Order:
    """Where the order of two methods in one column agrees with the paper's, and where not."""

    column: Column
    block: str
    agree: int
    disagree: tuple[str, ...]


def orders(table: Table) -> list[Order]:
    """By task: pairs of methods in the paper's order of equation accuracy, without TA, with TA, and TA against none;
    and, where a table has them, designs or metrics against each other."""
    found = []
    for column in (column for column in table.columns if column[1] == "equation"):
        rows = [row for row in table.rows if row.cells[column].values and row.cells[column].theirs]
        for ta, block in ((False, "methods without TA"), (True, "methods with TA")):
            pairs = combinations([row for row in rows if _augmented(row) == ta], 2)
            found.append(_compared(column, block, ((a, b) for a, b in pairs if a.head[:-1] == b.head[:-1])))
        gains = [(a, b) for a, b in combinations(rows, 2) if a.head == (*b.head[:-1], b.head[-1].removesuffix(TA))]
        gains += [(a, b) for a, b in combinations(rows, 2) if b.head == (*a.head[:-1], a.head[-1].removesuffix(TA))]
        found.append(_compared(column, "each method with TA against without", gains))
        across = [(a, b) for a, b in combinations(rows, 2) if a.head[-1] == b.head[-1] and a.head != b.head]
        found.append(_compared(column, f"each method, one {table.heads[0].lower()} against another", across))
    return [order for order in found if order.agree or order.disagree]


def _augmented(row: Row) -> bool:
    return row.head[-1].endswith(TA)


def _compared(column: Column, block: str, pairs: Iterable[tuple[Row, Row]]) -> Order:
    agree, disagree = 0, []
    for one, two in pairs:
        a, b = one.cells[column], two.cells[column]
        assert a.theirs and b.theirs and a.mean is not None and b.mean is not None
        if (a.mean - b.mean) * (a.theirs[0] - b.theirs[0]) > 0:
            agree += 1
        else:
            first, second = (one, two) if a.theirs[0] > b.theirs[0] else (two, one)
            tied = " (equal here)" if a.mean == b.mean else ""
            place = f" ({', '.join(one.head[:-1])})" if one.head[:-1] == two.head[:-1] != () else ""
            names = [row.head[-1] if one.head[:-1] == two.head[:-1] else ", ".join(row.head) for row in (first, second)]
            disagree.append(f"{names[0]} > {names[1]}{tied}{place}")
    return Order(column, block, agree, tuple(disagree))
