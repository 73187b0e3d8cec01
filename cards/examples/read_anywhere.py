"""A dataset needs no package of ours to be read: pandas, and datasets, from the folder.

python cards/examples/read_anywhere.py
"""

import pandas
from datasets import load_dataset

import aegen

aegen.build("aor-n10-l4-d200", out="aor")

steps = pandas.read_parquet("aor/expert/train-00000-of-00001.parquet")
actions = steps["action"].str.join(" ")  # a list cannot be a key
print(steps.groupby(actions).size().sort_values().tail(3).to_string())

rows = load_dataset("aor", "expert", split="test")  # the folder's card says where what is
print(rows.num_rows, "steps;", rows[0]["state"], "->", *rows[0]["action"])
