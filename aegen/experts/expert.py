"""Who demonstrates: the metric and the action design, with the paper's choice for each task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegen.core.actions import load_design
from aegen.core.errors import InvalidSpec

TASK_DEFAULTS = {"aor": ("levenshtein", "insert"), "aes": ("span", "span"), "aec": ("levenshtein", "edit")}
TEXT_DEFAULTS = ("levenshtein", "edit")
# How many tokens the edits of a metric remove and add; a user's own may do anything.
EDITS = {"levenshtein": ((0, 1), (1, 0), (1, 1)), "lcs": ((0, 1), (1, 0)), "span": ((3, 1),)}


@dataclass(frozen=True)
class Expert:
    """Who demonstrates, and in which words: the metric and the action design."""

    metric: str
    design: str

    @classmethod
    def of(cls, task: str, metric: str | None = None, design: str | None = None) -> Expert:
        """The paper's choice for a task, where nothing else is asked.

        >>> Expert.of("aes"), Expert.of("text", metric="lcs")
        (Expert(metric='span', design='span'), Expert(metric='lcs', design='edit'))
        """
        default_metric, default_design = TASK_DEFAULTS.get(task, TEXT_DEFAULTS)
        asked = cls(metric or default_metric, load_design(design or default_design).name)
        asked.check(task)
        return asked

    def check(self, task: str) -> None:
        """Refuse what cannot work, before there is anything to demonstrate.

        The edits of an equation are known beforehand; of a text we know only what its metric can do at all.
        """
        if self.metric == "span" and task in ("aor", "aec"):
            raise InvalidSpec(f"metric span requires parentheses, and {task} has none")
        kinds = EDITS.get(self.metric, ())
        if task == "aor":
            kinds = kinds[:1]  # a source lacks tokens, and nothing else
        refused = [kind for kind in kinds if not load_design(self.design).expresses(*map(np.array, kind))]
        if refused and (task in TASK_DEFAULTS or len(refused) == len(kinds)):
            removed, added = refused[0]
            raise InvalidSpec(
                f"design {self.design} cannot express an edit that replaces {removed} tokens by {added}, "
                f"which metric {self.metric} requires for {task}"
            )
