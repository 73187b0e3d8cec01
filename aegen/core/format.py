"""The facts of the dataset format."""

from __future__ import annotations

FORMAT = 1  # of datasets

DESCRIPTION_KEY = "aegen"
MAX_TOKENS = 1 << 20  # of one text: each takes many times its bytes once it is split; contracts allow as many


TASKS = ("aor", "aes", "aec")
SPLITS = ("train", "validation", "test")
