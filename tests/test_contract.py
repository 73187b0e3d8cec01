"""The one thing the packages share is the dataset: what ``aegen`` writes, ``trainer`` plays, to the same states."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from aegen.core.errors import AegenError
from aegen.core.format import MAX_TEXT, MAX_TOKEN, split_state
from aegen.dataset import contract as ours
from aegen.dataset.folder import Folder
from aegen.dataset.verify import verify
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.experts.tags import TaggingGame
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from trainer.agents.frequent import evaluate_baselines, read_texts
from trainer.core.errors import BadData
from trainer.data.dataset import Dataset
from trainer.data.encode import load_pairs, load_steps
from trainer.data.m2 import read_m2
from trainer.game.environment import Environment, Verdict
from trainer.game.rules import rules_of
from trainer.scoring.gold import GoldEdits
from trainer.sweeps.cell import describe
from trainer.sweeps.grid import SweepDataset

ROOT = Path(__file__).parent.parent
CASES = {
    "aor": ("aor", None, None),
    "aes": ("aes", None, None),
    "aes span2": ("aes", "span", "span2"),
    "aes span3": ("aes", "span", "span3"),
    "aes levenshtein": ("aes", "levenshtein", "edit"),
    "aec": ("aec", None, None),
    "aec lcs": ("aec", "lcs", "edit"),
    "aor edit": ("aor", "lcs", "edit"),
    "text": ("text", None, None),
    "text lcs": ("text", "lcs", "edit"),
}


@pytest.fixture(scope="module", params=CASES)
def dataset(request, tmp_path_factory):
    task, metric, design = CASES[request.param]
    path = tmp_path_factory.mktemp("contract")
    folder = Folder(path / "data")
    augmentation = Augmentation(max_edits=4, max_states=20)
    if task == "text":
        rng = random.Random(1)
        words = ["the", "POS_3", "DONE", "a b", "\\s", "é", "INSERT", "x\ty"]
        pairs = [["_".join(rng.choices(words, k=rng.randint(1, 3))) for _ in range(2)] for _ in range(60)]
        pq.write_table(pa.table({"source": [p[0] for p in pairs], "target": [p[1] for p in pairs]}), path / "a.parquet")
        pipeline.import_pairs(Import((path / "a.parquet",), tokens="chars"), folder)
        pipeline.add_demonstrations(folder, pipeline.demonstrator(task, metric, design), Local())
        pipeline.add_augmented(folder, augmentation, Local())
    else:
        pipeline.build(
            Spec(task, 10, 4, 100), folder, Local(), expert=Expert.of(task, metric, design), augmentation=augmentation
        )
    return folder


def both(folder, config, split):
    """The same rules on both sides: the environment in words, and the one on id tensors."""
    theirs = Dataset(folder.path)
    contract = theirs.contract(theirs.footers(config, split))
    words = ours.read_contract(folder, folder.manifest(), config)
    return words, contract


def play(contract, rows):
    """One action each, on tensors; states and verdicts in words."""
    states = torch.zeros(len(rows), contract.max_state, dtype=torch.long)
    for row, (state, _) in enumerate(rows):
        states[row, : len(state)] = torch.tensor([contract.state_ids[token] for token in state], dtype=torch.long)
    lengths = torch.tensor([len(state) for state, _ in rows])
    actions = torch.tensor([[contract.action_ids[token] for token in action] for _, action in rows])
    after, lengths, verdicts = Environment(contract).step(states, lengths, actions)
    names = ("", *contract.state_tokens)
    found = [tuple(names[i] for i in row[:n]) for row, n in zip(after.tolist(), lengths.tolist(), strict=True)]
    return list(zip(found, [Verdict(verdict).reason for verdict in verdicts.tolist()], strict=True))


def expected(environment, rows):
    """The same in words, by aegen's environment."""
    outcomes = [environment.step(state, action) for state, action in rows]
    return [(o.state, "done" if o.done else str(o.refusal) if o.refusal else "applied") for o in outcomes]


@pytest.mark.parametrize("config", ["expert", "augmented"])
def test_every_step_leads_to_the_next_state_on_both_sides(dataset, config):
    words, contract = both(dataset, config, "train")
    table = pa.concat_tables(pq.read_table(dataset / name) for name in dataset.manifest().shards(config, "train"))
    rows = [(split_state(row["state"]), tuple(row["action"])) for row in table.to_pylist()]
    played = play(contract, rows)
    assert played == expected(words.environment, rows)
    for (after, verdict), (state, _) in zip(played[:-1], rows[1:], strict=True):
        assert verdict == "done" or after == state


def test_random_actions_valid_or_not_have_the_same_outcome(dataset):
    words, contract = both(dataset, "augmented", "train")
    rng = random.Random(7)
    table = pq.read_table(dataset / dataset.manifest().shards("augmented", "train")[0])
    states = [split_state(state) for state in rng.choices(table["state"].to_pylist(), k=4000)]
    actions = [tuple(rng.choices(contract.actions, k=contract.action_length)) for _ in states]
    rows = list(zip(states, actions, strict=True))
    played = play(contract, rows)
    assert played == expected(words.environment.__class__(words.design, words.writable, contract.max_state), rows)
    assert len({verdict for _, verdict in played}) >= 3


@pytest.mark.parametrize("name", ["format", "description", "locks", "records", "size_guard"])
def test_both_packages_carry_the_same_file(name):
    ours, theirs = (ROOT / package / "core" / f"{name}.py" for package in ("aegen", "trainer"))
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("name", ["page.css", "stepper.css", "stepper.js"])
def test_the_pages_of_both_packages_have_the_same_stepper(name):
    ours, theirs = (ROOT / package / "pages" / "static" / name for package in ("aegen", "trainer"))
    assert ours.read_bytes() == theirs.read_bytes()


LONG = "x" * MAX_TOKEN


@pytest.mark.parametrize(
    ("source", "target", "tokens"),
    [
        (LONG, "y", "words"),
        (" ".join(["a"] * MAX_TEXT), " ".join(["a"] * (MAX_TEXT - 1)), "words"),
        ("\u0001" * (MAX_TOKEN // 6), "", "words"),
        ("\U000e0001 \u3000 \x85", "POS_0 BOS PAD KEEP SUB_x INSERT_", "words"),
        ("", "a", "chars"),
        ("a", "", "chars"),
    ],
)
def test_whatever_aegen_writes_and_verifies_the_trainer_reads(source, target, tokens, tmp_path):
    """At the limits of the format: the longest token, the longest text, characters that look like separators."""
    rows = [{"source": source, "target": target, "split": "train"}] + [
        {"source": "a", "target": "b", "split": split} for split in ("train", "validation", "test")
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = Folder(tmp_path / "data")
    pipeline.import_pairs(Import((tmp_path / "rows.jsonl",), tokens=tokens, max_tokens=MAX_TEXT), folder)
    pipeline.add_demonstrations(folder, pipeline.demonstrator("text"), Local())
    verify(folder, Local())
    dataset = Dataset(folder.path)
    footers, contract = dataset.open_steps(["expert"], "train")
    assert load_steps(dataset, footers, contract).skipped == 0
    assert load_pairs(dataset, "train", contract).playable.all()


@pytest.mark.parametrize(
    ("text", "what"), [(LONG + "x", "a token of more"), (" ".join(["a"] * 9), "more than 8 tokens")]
)
def test_what_the_trainer_would_refuse_is_not_imported(text, what, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps({"source": text, "target": "b"}) + "\n")
    with pytest.raises(AegenError, match=what):
        pipeline.import_pairs(Import((tmp_path / "rows.jsonl",), max_tokens=8), Folder(tmp_path / "data"))


def test_a_dataset_without_validation_rows_is_read(tmp_path):
    (tmp_path / "rows.csv").write_text("source,target\na,b\n")
    folder = Folder(tmp_path / "data")
    pipeline.import_pairs(Import((tmp_path / "rows.csv",), ratio="100/0/0"), folder)
    pipeline.add_demonstrations(folder, pipeline.demonstrator("text"), Local())
    dataset = Dataset(folder.path)
    assert [footer.shard.rows for footer in dataset.footers("expert", "validation")] == [0]
    assert dataset.open_steps(["expert"], "train")[1].max_steps == 2


@pytest.mark.parametrize("task,n", [("aor", 10), ("aec", 10)])
def test_rounds_of_tags_have_the_same_outcome_on_both_sides(task, n, tmp_path):
    folder = Folder(tmp_path / task)
    pipeline.generate(Spec(task, n, 4, 100), folder, Local())
    pipeline.add_demonstrations(folder, pipeline.demonstrator("text", design="tags"), Local())
    words, contract = both(folder, "tags", "train")
    table = pq.read_table(folder / folder.manifest().shards("tags", "train")[0])
    rows = [(split_state(row["state"]), tuple(row["action"])) for row in table.to_pylist()]
    rng = random.Random(2)
    rows += [(state, tuple(rng.choices(contract.actions, k=len(state) + 1))) for state, _ in rng.choices(rows, k=500)]
    keep = contract.action_ids["KEEP"]
    states = torch.zeros(len(rows), contract.max_state, dtype=torch.long)
    actions = torch.full((len(rows), contract.action_length), keep)
    for row, (state, tags) in enumerate(rows):
        states[row, : len(state)] = torch.tensor([contract.state_ids[token] for token in state])
        actions[row, : len(tags)] = torch.tensor([contract.action_ids[tag] for tag in tags])
    lengths = torch.tensor([len(state) for state, _ in rows])
    after, lengths, verdicts = rules_of(contract).step(states, lengths, actions)
    names = ("", *contract.state_tokens)
    found = [tuple(names[i] for i in row[:n]) for row, n in zip(after.tolist(), lengths.tolist(), strict=True)]
    played = list(zip(found, [Verdict(verdict).reason for verdict in verdicts.tolist()], strict=True))
    assert played == expected(TaggingGame(words.writable, contract.max_state), rows)
    assert len({verdict for _, verdict in played}) >= 3


def test_a_sweep_learns_what_a_dataset_is(dataset):
    found = describe(SweepDataset(task="", path=str(dataset.path)))
    expert = dataset.manifest().recipe.expert
    assert (found["metric"], found["design"]) == (expert.metric, expert.design)
    usual = {"aes": ("span", "span"), "aor": ("levenshtein", "insert")}.get(found["task"], ("levenshtein", "edit"))
    assert found["usual"] == ((expert.metric, expert.design) == usual)
    assert found["size"] == ({"n": 10, "l": 4, "d": 100} if found["task"] != "text" else {})
    with pytest.raises(BadData, match="task is '.*', the sweep file says 'other'"):
        describe(SweepDataset(task="other", path=str(dataset.path)))


ANNOTATED = """\
S he go home , he said
A 1 2|||R:VERB|||goes||went|||REQUIRED|||-NONE-|||0
A 1 2|||R:VERB|||is going|||REQUIRED|||-NONE-|||1
A 3 4|||U:PUNCT||||||REQUIRED|||-NONE-|||1

S he go  POS_3 DONE
A 1 2|||R:VERB|||goes|||REQUIRED|||-NONE-|||0
A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||1

S fine .
"""


@pytest.mark.parametrize("tokens", ["words", "chars"])
def test_the_trainer_scores_against_all_annotators_of_imported_text(tokens, tmp_path):
    """What the shards say of annotators is what the M2 file says."""
    file = tmp_path / "a.m2"
    file.write_text(ANNOTATED)
    source = Import((file, Path(f"test={file}")), ratio="100/0/0", tokens=tokens)
    pipeline.import_pairs(source, Folder(tmp_path / "data"))
    dataset = Dataset(tmp_path / "data")
    gold = GoldEdits(dataset, "test", tokens)
    assert list(gold.annotated(read_texts(dataset, "test"))) == list(read_m2(file))
    by_shards, by_file = (evaluate_baselines(tmp_path / "data", "test", m2) for m2 in (None, file))
    assert by_shards == by_file and by_shards["unchanged"]["gold"] > 0
    assert by_shards["frequent"]["types"] or tokens == "chars"
