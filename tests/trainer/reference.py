"""A plain second opinion on the game, and small dataset folders made with it; nothing here imports aegen.

Slow and obvious on purpose: the trainer's tensors are held against these lists.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SLOTS = {
    "insert": ["position", "token"],
    "edit": ["operation", "position", "token"],
    "span": ["left", "right", "token"],
    "span-2": ["left", "token", "right"],
    "span-3": ["token", "left", "right"],
}
FORMAT = 2
POSITION = re.compile(r"POS_\d+")
OPERATIONS = ("INSERT", "DELETE", "REPLACE")
STEPS = pa.schema(
    [
        ("pair", pa.int64()),
        ("origin", pa.int32()),
        ("step", pa.int16()),
        ("state", pa.string()),
        ("action", pa.list_(pa.string())),
    ]
)
PAIRS = pa.schema([("id", pa.int64()), ("source", pa.string()), ("target", pa.string())])


def levenshtein(source, target):
    """Splices (start, stop, new) in the order of the source, by the textbook table."""
    rows, columns = len(source) + 1, len(target) + 1
    cost = [[max(i, j) if 0 in (i, j) else 0 for j in range(columns)] for i in range(rows)]
    for i, j in itertools.product(range(1, rows), range(1, columns)):
        change = cost[i - 1][j - 1] + (source[i - 1] != target[j - 1])
        cost[i][j] = min(change, cost[i - 1][j] + 1, cost[i][j - 1] + 1)
    edits, i, j = [], len(source), len(target)
    while i or j:
        if i and j and source[i - 1] == target[j - 1] and cost[i][j] == cost[i - 1][j - 1]:
            i, j = i - 1, j - 1
        elif j and cost[i][j] == cost[i][j - 1] + 1:
            j -= 1
            edits.append((i, i, (target[j],)))
        elif i and cost[i][j] == cost[i - 1][j] + 1:
            i -= 1
            edits.append((i, i + 1, ()))
        else:
            i, j = i - 1, j - 1
            edits.append((i, i + 1, (target[j],)))
    return edits[::-1]


def span(source, target):
    """Splices that write each parenthesis as its value."""
    edits, i, j = [], 0, 0
    while i < len(source):
        if source[i] == "(":
            close = source.index(")", i)
            edits.append((i, close + 1, (target[j],)))
            i = close
        i, j = i + 1, j + 1
    return edits


def encode(design, start, stop, new):
    """The action of one splice."""
    if design == "insert":
        return [f"POS_{start}", *new]
    if design == "edit":
        if not new:
            return ["DELETE", f"POS_{start}", f"POS_{start}"]
        return ["INSERT" if start == stop else "REPLACE", f"POS_{start}", *new]
    values = {"left": f"POS_{start}", "right": f"POS_{stop - 1}", "token": new[0]}
    return [values[slot] for slot in SLOTS[design]]


def trajectory(design, source, target):
    """The steps (state, action) from a source to its target, DONE included."""
    edits = span(source, target) if design.startswith("span") else levenshtein(source, target)
    state, steps, shift = list(source), [], 0
    for start, stop, new in edits:
        steps.append((tuple(state), encode(design, start + shift, stop + shift, new)))
        state[start + shift : stop + shift] = new
        shift += len(new) - (stop - start)
    assert tuple(state) == tuple(target)
    return [*steps, (tuple(state), ["DONE"] * len(SLOTS[design]))]


def shifted(design, source, target):
    """The states off the expert's path that some of its edits lead to."""
    edits = span(source, target) if design.startswith("span") else levenshtein(source, target)
    path = {state for state, _ in trajectory(design, source, target)}
    found = []
    for chosen in itertools.product((False, True), repeat=len(edits)):
        state, shift = list(source), 0
        for (start, stop, new), take in zip(edits, chosen, strict=True):
            if take:
                state[start + shift : stop + shift] = new
                shift += len(new) - (stop - start)
        if tuple(state) not in path and tuple(state) not in found:
            found.append(tuple(state))
    return found


def tag_rounds(source, target):
    """Rounds (state, tags): every edit of the script that finds its tag free, until nothing is left to do."""
    state, steps = list(source), []
    while True:
        tags = ["KEEP"] * (len(state) + 1)
        for start, stop, new in levenshtein(state, target):
            if start == stop and tags[start] == "KEEP":
                tags[start] = f"INSERT_{new[0]}"
            elif start != stop:
                tags[start + 1] = f"SUB_{new[0]}" if new else "DELETE"
        steps.append((tuple(state), tags))
        if set(tags) == {"KEEP"}:
            assert tuple(state) == tuple(target)
            return steps
        state = tagged(state, tags)


def tagged(state, tags):
    """The state after a round."""
    after = [tags[0][7:]] if tags[0] != "KEEP" else []
    for token, tag in zip(state, tags[1:], strict=True):
        if not tag.startswith(("SUB_", "DELETE")):
            after.append(token)
        if "_" in tag:
            after.append(tag.partition("_")[2])
    return after


def judge(slots, writable, max_state, state, action):
    """The environment as the contract's prose has it: (new state, verdict)."""
    part = dict(zip(slots, action, strict=True))
    place = {slot: int(token[4:]) for slot, token in part.items() if POSITION.fullmatch(token)}
    special = {slot for slot, token in part.items() if token in (*OPERATIONS, "DONE")} | set(place)
    if set(action) == {"DONE"}:
        return state, "done"
    if "DONE" in action:
        return state, "partly-done"
    operation = part.get("operation", "REPLACE" if "left" in slots else "INSERT")
    wrong = operation not in OPERATIONS
    wrong |= any(slot in part and slot not in place for slot in ("left", "right", "position"))
    wrong |= "token" not in place if operation == "DELETE" else "token" in special
    if wrong:
        return state, "wrong-kind"
    if operation == "DELETE" and place["token"] != place["position"]:
        return state, "delete-two-positions"
    left = place.get("left", place.get("position"))
    right = place.get("right", left)
    if left > right or (left > len(state) if operation == "INSERT" else right >= len(state)):
        return state, "out-of-range"
    new = () if operation == "DELETE" else (part["token"],)
    if not set(new) <= set(writable):
        return state, "not-writable"
    result = state[:left] + new + state[left if operation == "INSERT" else right + 1 :]
    return (state, "too-long") if len(result) > max_state else (result, "applied")


def equations(count, seed=0, integers=range(2, 12)):
    """Distinct true equations of two operations, as token tuples."""
    rng, found = random.Random(seed), {}
    while len(found) < count:
        a, b, c = (rng.choice(integers) for _ in range(3))
        one, two = rng.choice("+-*"), rng.choice("+-")
        value = {"+": a + b, "-": a - b, "*": a * b}[one] + (c if two == "+" else -c)
        if 2 <= value <= 11:
            found[str(a), one, str(b), two, str(c), "=", str(value)] = None
    return list(found)


def pairs_of(design, count, seed=0):
    """Small pairs for a design: operators restored, parentheses simplified, or corruptions corrected."""
    rng, pairs = random.Random(seed), []
    for target in equations(count, seed):
        if design == "insert":
            source = tuple(token for token in target if token.isdigit())
        elif design.startswith("span"):
            source = []
            chosen = rng.sample(range(0, 7, 2), rng.randint(0, 2))
            for place, token in enumerate(target):
                wrapped = place in chosen
                part = rng.randint(1, 9)
                source += ["(", str(int(token) + part), "-", str(part), ")"] if wrapped else [token]
        else:
            source = list(target)
            for _ in range(rng.randint(0, 2)):
                place = rng.randrange(len(source))
                source[place : place + rng.randint(0, 1)] = rng.choice([[], ["+"], ["7"]])
        pairs.append((tuple(source), target))
    return pairs


def describe(config, split, rows, *, design, tokens, arithmetic, one_source, task, spec):
    """The description that a shard of these rows carries."""
    text = {
        "format": FORMAT,
        "config": config,
        "split": split,
        "task": task,
        "tokens": tokens,
        "arithmetic": arithmetic,
        "one_source": one_source,
        "goal": {"wins": "target"},
        "spec": spec,
    }
    if config == "pairs":
        return text
    if config == "tags":
        longest = max(len(row["action"]) for row in rows)
        states = sorted({token for row in rows for token in row["state"].split(" ") if token})
        return text | {
            "metric": "levenshtein",
            "backend": {"reference": "1"},
            "design": "tags",
            "slots": ["tags"],
            "state_tokens": states,
            "action_tokens": sorted({tag for row in rows for tag in row["action"]}),
            "writable": states,
            "max_state": longest - 1,
            "action_length": longest,
            "max_steps": 1 + max(row["step"] for row in rows),
        }
    states = {token for row in rows for token in row["state"].split(" ") if token}
    actions = {token for row in rows for token in row["action"]}
    return text | {
        "metric": "span" if design.startswith("span") else "levenshtein",
        "backend": {"reference": "1"},
        "design": design,
        "slots": SLOTS[design],
        "state_tokens": sorted(states),
        "action_tokens": sorted(actions),
        "writable": sorted(t for t in actions if not POSITION.fullmatch(t) and t not in (*OPERATIONS, "DONE")),
        "max_state": max(len(row["state"].split(" ")) for row in rows),
        "action_length": len(SLOTS[design]),
        "max_steps": 1 + max(row["step"] for row in rows),
    }


def write_shard(path, rows, schema, description, row_group_size=None):
    """One Parquet file; returns its entry in the manifest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=schema.with_metadata({"aegen": json.dumps(description)}))
    pq.write_table(table, path, compression="zstd", row_group_size=row_group_size)
    content = path.read_bytes()
    return {"rows": len(rows), "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def step_rows(design, pairs, first_id, augmented):
    """The rows of expert or augmented trajectories."""
    rows = []
    for number, (source, target) in enumerate(pairs, start=first_id):
        starts = [source, *(shifted(design, source, target) if augmented else ())]
        for origin, start in enumerate(starts):
            for step, (state, action) in enumerate(trajectory(design, start, target)):
                rows.append(
                    {
                        "pair": number,
                        "origin": origin,
                        "step": step,
                        "state": " ".join(state),
                        "action": action,
                    }
                )
    return rows


def tag_rows(pairs, first_id):
    """The rows of rounds of tags."""
    return [
        {"pair": number, "origin": 0, "step": step, "state": " ".join(state), "action": tags}
        for number, (source, target) in enumerate(pairs, start=first_id)
        for step, (state, tags) in enumerate(tag_rounds(source, target))
    ]


def write_dataset(
    folder,
    design,
    splits,
    *,
    tokens="words",
    arithmetic=True,
    one_source=False,
    task="text",
    shards=1,
    row_group_size=None,
    tags=False,
    variants=(),
):
    """A whole dataset folder for ``splits`` = {"train": [(source, target), …], …}."""
    folder, files, first_id = Path(folder), {}, 0
    spec = {"pairs": {split: len(pairs) for split, pairs in splits.items()}, "expert": {"design": design}}
    for split, pairs in splits.items():
        plain = [
            {"id": first_id + i, "source": " ".join(source), "target": " ".join(target)}
            for i, (source, target) in enumerate(pairs)
        ]
        parts = {"pairs": [(PAIRS, plain)], "expert": []}
        size = -(-len(pairs) // shards)
        for config in ("expert", "augmented") if split == "train" else ("expert",):
            parts[config] = [
                (STEPS, step_rows(design, pairs[at : at + size], first_id + at, config == "augmented"))
                for at in range(0, len(pairs), size)
            ]
        if tags:
            parts["tags"] = [(STEPS, tag_rows(pairs, first_id))]
        if variants and split == "train":
            parts["variants_expert"] = [(STEPS, step_rows(design, variants, first_id, augmented=False))]
        for config, pieces in parts.items():
            for index, (schema, rows) in enumerate(pieces):
                name = f"{config}/{split}-{index:05}-of-{len(pieces):05}.parquet"
                description = describe(
                    config,
                    split,
                    rows,
                    design=design,
                    tokens=tokens,
                    arithmetic=arithmetic,
                    one_source=one_source,
                    task=task,
                    spec=spec,
                )
                files[name] = write_shard(folder / name, rows, schema, description, row_group_size)
        first_id += len(pairs)
    (folder / "manifest.json").write_text(json.dumps({"format": FORMAT, "spec": spec, "files": files}))
    return folder


def small_dataset(folder, design, train=64, held_out=16, **options):
    """A dataset of one design with train, validation and test."""
    pairs = pairs_of(design, train + 2 * held_out)
    splits = {
        "train": pairs[:train],
        "validation": pairs[train : train + held_out],
        "test": pairs[train + held_out :],
    }
    task = {"insert": "aor", "edit": "aec"}.get(design, "aes")
    return write_dataset(folder, design, splits, task=task, **options)
