"""The paper's tables as reference data: mean and, where it gives one, standard deviation of five runs, in percent.

What a report knows of tasks, metrics and designs is here, because the paper's tables name them.
"""

from __future__ import annotations

from trainer.training.measures import Measure

LENIENT = (
    "The paper's figures are by the released evaluator, which also accepts “4 / / 2 = 2” and a target with more behind "
    "it, worth 0.07 to 0.47 points; ours does not."
)

Figure = tuple[float, float | None]
Column = tuple[str, Measure]  # (task, measure)

TITLE = "Text editing as imitation game"
TASKS = ("aor", "aes", "aec")
PAIR = ("ar-star", "nar-star")  # the agents whose times, curves and metrics it compares
AGENTS = ("ar", "ar-star", "nar", "nar-star")
RIVALS = ("linear", "decoder0", "shared-d2")  # the decoders that it compares with D2
BASELINES = ("end2end", "tagging", "recurrence")  # the first block of the main table
SIZES = {
    "aor": {"n": 10, "l": 5, "d": 10_000},
    "aes": {"n": 100, "l": 5, "d": 10_000},
    "aec": {"n": 10, "l": 5, "d": 10_000},
}
COLUMNS: tuple[Column, ...] = (
    ("aor", "token"), ("aor", "sequence"), ("aor", "equation"),
    ("aes", "token"), ("aes", "equation"),
    ("aec", "token"), ("aec", "sequence"), ("aec", "equation"),
)  # fmt: skip
AES: tuple[Column, ...] = (("aes", "token"), ("aes", "equation"))


def _row(text: str, columns: tuple[Column, ...] = COLUMNS) -> dict[Column, Figure]:
    """A row as it is printed: ``61.85±0.51``, a mean alone, or ``-`` for what the paper leaves blank.

    >>> _row("99.27±0.32 93.57", AES)[("aes", "equation")]
    (93.57, None)
    """
    found: dict[Column, Figure] = {}
    for column, entry in zip(columns, text.split(), strict=True):
        if entry != "-":
            mean, _, spread = entry.partition("±")
            found[column] = (float(mean), float(spread) if spread else None)
    return found


# (model, trajectory augmentation) -> the row of the main table
MAIN = {
    ("end2end", False): _row("- - 29.33 84.60 25.20 88.08 57.27 57.73"),
    ("tagging", False): _row("- - 51.40 87.00 36.67 84.46 46.93 47.33"),
    ("recurrence", False): _row("- - 58.53 98.63 87.73 83.64 57.47 58.27"),
    ("recurrence-star", False): _row(
        "60.30±1.30 27.31±1.33 56.73±1.33 79.82±0.37 22.28±0.52 82.32±0.56 41.72±0.74 42.13±0.75"
    ),
    ("ar", False): _row("61.85±0.51 28.83±1.14 59.09±0.95 88.12±2.37 37.05±6.57 82.61±0.53 45.81±0.36 46.31±0.31"),
    ("ar-star", False): _row("62.51±0.62 30.85±0.41 61.35±0.33 99.27±0.32 93.57±2.91 82.29±0.39 45.99±0.49 46.35±0.52"),
    ("nar", False): _row("59.72±0.70 24.16±1.16 51.64±1.97 83.87±1.60 29.49±2.51 80.28±0.76 44.91±1.71 45.40±1.78"),
    ("nar-star", False): _row(
        "62.81±0.89 30.13±1.31 61.45±1.61 99.51±0.13 95.67±0.93 81.82±0.68 45.97±1.07 46.43±1.10"
    ),
    ("ar", True): _row("62.35±0.61 32.28±0.67 63.56±1.06 88.05±1.20 38.39±3.45 83.94±0.42 49.36±1.23 49.83±1.21"),
    ("ar-star", True): _row("62.58±0.63 33.01±1.31 65.73±1.38 99.44±0.27 95.24±2.38 83.39±0.74 48.95±0.65 49.47±0.73"),
    ("nar", True): _row("61.30±0.86 32.04±1.99 63.75±2.08 90.38±2.21 47.91±8.18 81.36±0.40 48.01±1.07 48.47±1.15"),
    ("nar-star", True): _row("63.48±0.38 34.23±0.92 67.13±0.99 99.58±0.15 96.44±1.29 82.70±0.42 49.64±0.59 50.15±0.55"),
}

DECODERS = {
    ("linear", False): _row("61.84±0.94 28.55±1.57 57.72±1.55 99.41±0.26 95.01±2.01 81.35±0.92 42.47±1.85 42.81±1.87"),
    ("decoder0", False): _row(
        "61.78±0.83 28.20±1.57 58.36±1.58 99.24±0.23 93.49±2.03 80.84±0.66 43.97±1.82 44.32±1.82"
    ),
    ("shared-d2", False): _row(
        "61.74±0.71 28.68±0.94 58.05±1.01 99.28±0.24 93.85±2.14 81.38±1.04 43.64±2.03 44.09±2.02"
    ),
    ("nar-star", False): MAIN["nar-star", False],
    ("linear", True): _row("61.41±0.28 31.75±0.93 63.15±0.96 99.42±0.17 95.08±1.47 81.54±0.66 46.79±2.26 47.33±2.30"),
    ("decoder0", True): _row("62.50±1.24 32.48±1.87 64.47±1.88 99.47±0.13 95.33±1.13 82.02±0.40 46.80±2.04 47.32±1.91"),
    ("shared-d2", True): _row(
        "61.64±0.87 31.21±0.34 62.77±0.85 99.53±0.12 95.91±1.25 81.80±0.47 47.23±1.07 47.61±1.14"
    ),
    ("nar-star", True): MAIN["nar-star", True],
}

# The tables of designs and metrics are about one task. A cell that names neither uses the task's own.
ABLATION_TASK = "aes"
ABLATION_METRIC, ABLATION_DESIGN = "span", "span"
DESIGN_HEADS = {
    "span": "#1 [left, right, token]",
    "span2": "#2 [left, token, right]",
    "span3": "#3 [token, left, right]",
}
METRIC_HEADS = {"span": "SELF (spans)", "levenshtein": "Levenshtein"}
METRIC_DESIGNS = ("span", "edit")  # the designs of these metrics

# (design, model, trajectory augmentation)
DESIGNS = {
    ("span", "ar-star", False): _row("99.27±0.32 93.57±2.91", AES),
    ("span", "nar-star", False): _row("99.51±0.13 95.67±0.93", AES),
    ("span", "ar-star", True): _row("99.44±0.27 95.24±2.38", AES),
    ("span", "nar-star", True): _row("99.58±0.15 96.44±1.29", AES),
    ("span2", "ar-star", False): _row("99.08±0.93 92.35±7.21", AES),
    ("span2", "nar-star", False): _row("99.50±0.27 95.55±2.28", AES),
    ("span2", "ar-star", True): _row("99.52±0.29 95.68±2.49", AES),
    ("span2", "nar-star", True): _row("99.54±0.20 95.97±1.64", AES),
    ("span3", "ar-star", False): _row("98.06±0.79 83.79±6.25", AES),
    ("span3", "nar-star", False): _row("99.53±0.14 95.99±0.81", AES),
    ("span3", "ar-star", True): _row("98.43±0.49 87.29±3.70", AES),
    ("span3", "nar-star", True): _row("99.61±0.06 96.55±0.46", AES),
}

# (metric, model), without augmentation
METRICS = {
    ("span", "ar-star"): _row("99.27±0.32 93.57±2.91", AES),
    ("span", "nar-star"): _row("99.51±0.13 95.67±0.93", AES),
    ("levenshtein", "ar-star"): _row("69.53±2.29 18.37±0.70", AES),
    ("levenshtein", "nar-star"): _row("67.58±0.87 17.93±0.07", AES),
}

# The figure of games with and without replacements: one agent on one task, trained with either metric.
REPLACE_TASK, REPLACE_MODEL = "aec", "nar-star"
REPLACE_METRICS = {"lcs": "LCS", "levenshtein": "Levenshtein"}
