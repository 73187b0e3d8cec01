"""Publishing and loading through the real clients, on loopback."""

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest
import torch

from tests.hub import Hub, Repository
from tests.pages import ATTACK, check_inert, code_blocks, head_and_body
from tests.trainer.reference import small_dataset
from trainer.agents.agent import Agent
from trainer.core.errors import BadData, FolderConflict
from trainer.core.files import digest
from trainer.core.progress import Reporter
from trainer.publishing.publish import publish
from trainer.training.checkpoint import load_checkpoint, save_checkpoint
from trainer.training.fit import train_run
from trainer.training.presets import preset
from trainer.training.run import sealed

TEXT = "3 6 2 5"


@pytest.fixture(scope="module")
def run(datasets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "run"
    config = preset("cpu", width=16, layers=1, updates=40)
    train_run(datasets["insert"], config, folder, device="cpu", reporter=Reporter(quiet=True))
    return folder


def test_a_published_folder_plays_the_same_game(run, tmp_path):
    where = publish(run, str(tmp_path / "agent")).to
    assert sorted(path.name for path in (tmp_path / "agent").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    assert Agent.from_pretrained(where).edit(TEXT) == Agent.from_pretrained(run).edit(TEXT)


def test_the_card_states_what_was_measured(run, datasets, tmp_path):
    result = Agent.from_pretrained(run).evaluate(split="test")
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "evaluation-test.json").write_text(json.dumps(result))
    publish(copy, str(tmp_path / "agent"))
    card = (tmp_path / "agent" / "README.md").read_text()
    assert f"| test | 16 | {result['token_accuracy']:.2f} % |" in card and "| validation | 16 |" in card
    test = head_and_body(card)[0]["model-index"][0]["results"][0]
    assert test["metrics"][2] == {
        "type": "equation_accuracy",
        "name": "Equation accuracy",
        "value": result["equation_accuracy"],
    }
    public = (tmp_path / "agent" / "config.json").read_text()
    assert str(datasets["insert"]) not in public and str(datasets["insert"]) not in card


def test_no_local_path_is_published(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    record = json.loads((copy / "config.json").read_text())
    record["data"] |= {"begun": "/home/me/start", "sources": "hf://org/free"}
    (copy / "config.json").write_text(json.dumps(sealed(record)))
    publish(copy, str(tmp_path / "agent"))
    public = json.loads((tmp_path / "agent" / "config.json").read_text())["data"]
    assert [public[name] for name in ("where", "begun", "sources")] == [None, None, "hf://org/free"]
    assert public["files"] == record["data"]["files"]


def test_the_card_says_how_the_agent_practised(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    record = json.loads((copy / "config.json").read_text())
    practice = {"rounds": 1, "samples": 8, "updates": 5, "corrections": False, "start": "0" * 64, "sources": {}}
    said = []
    for change in ({}, {"corrections": True, "sources": {"sources/train": "1" * 64}}):
        (copy / "config.json").write_text(json.dumps(sealed(record | {"practice": practice | change})))
        publish(copy, str(tmp_path / "agent"))
        page = (tmp_path / "agent" / "README.md").read_text()
        said.append(" ".join(page.partition("Then it ")[2].partition("## Usage")[0].split()))
    assert said == [
        "practised, in 1 round of 8 games from each training source, and learned from the games that it won: "
        "5 updates a round.",
        "practised, in 1 round of 8 games from each training source and from sources without targets, and learned from "
        "the games that it won and from the expert's corrections: 5 updates a round.",
    ]
    assert "| updates |" not in page  # of practice alone
    tensors, facts = load_checkpoint(copy / "best.safetensors")
    save_checkpoint(copy / "best.safetensors", tensors, facts | {"epoch": -1})
    publish(copy, str(tmp_path / "agent"))
    assert "Practice after that made nothing better in validation" in (tmp_path / "agent" / "README.md").read_text()
    publish(run, str(tmp_path / "other"))
    imitated = (tmp_path / "other" / "README.md").read_text()
    assert "practised" not in imitated and "| updates |" in imitated


def test_what_was_measured_otherwise_is_not_on_the_card(run, tmp_path):
    """Of other weights, or on another dataset."""
    result = Agent.from_pretrained(run).evaluate(split="test")
    for number, change in enumerate(({}, {"weights": "0" * 64}, {"own": False}, {"own": None})):
        copy = shutil.copytree(run, tmp_path / f"run{number}")
        (copy / "evaluation-test.json").write_text(json.dumps(result | change))
        publish(copy, str(tmp_path / f"agent{number}"))
        assert ("| test |" in (tmp_path / f"agent{number}" / "README.md").read_text()) is not bool(change)


def test_only_an_agent_is_overwritten(run, tmp_path):
    agent, mine = tmp_path / "agent", tmp_path / "mine"
    publish(run, str(agent))
    publish(run, str(agent))
    mine.mkdir()
    (mine / "README.md").write_text("# Mine")
    with pytest.raises(FolderConflict, match=r"README.md: not the card of an agent"):
        publish(run, str(mine))
    assert (mine / "README.md").read_text() == "# Mine"
    (mine / "README.md").rename(mine / "model.safetensors")
    with pytest.raises(FolderConflict, match=r"model.safetensors: not the weights of an agent"):
        publish(run, str(mine))
    assert [(path.name, path.read_text()) for path in mine.iterdir()] == [("model.safetensors", "# Mine")]
    before = (run / "config.json").read_bytes()
    with pytest.raises(FolderConflict, match="folder of a run"):
        publish(run, str(run))
    assert (run / "config.json").read_bytes() == before


def test_without_weights_nothing_is_published(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "best.safetensors").unlink()
    with pytest.raises(BadData, match=r"no best\.safetensors yet"):
        publish(copy, str(tmp_path / "agent"))


FIT = ["--preset", "cpu", "--width", 16, "--layers", 1, "--updates", 3, "--device", "cpu"]


def test_from_hub_to_hub_without_aegen(command, datasets, run, tmp_path):
    with Hub() as hub:
        hub.add_folder("datasets", "org/insert", datasets["insert"])
        extra = hub.settings(tmp_path / "home")
        stream = ["--stream", "--stream-rows", 100]
        trained = command("fit", "org/insert", *FIT, *stream, "--out", tmp_path / "run", extra=extra)
        sent = command("publish", run, "--to", "hf://org/agent", extra=extra)
        commits = hub.repositories["models", "org/agent"]
        assert len(commits) == 2 and set(commits[-1]) == {"README.md", "config.json", "model.safetensors"}
        played = command("edit", "org/agent", TEXT, "--json", extra=extra)
        assert json.loads(played.stdout)["text"] == Agent.from_pretrained(run).edit(TEXT).text
        missing = command("edit", "org/nothing", TEXT, extra=extra, code=2)
        assert missing.stderr.startswith(
            "Error: org/nothing: no such folder; as a hub id: no such model on the hub, or access denied"
        )
        assert len(missing.stderr.splitlines()) == 1
        for done in (trained, sent, played, missing):
            assert "hf_secret" not in done.stdout + done.stderr


def test_what_was_read_once_needs_no_network(command, datasets, run, tmp_path):
    published = tmp_path / "agent"
    publish(run, str(published))
    with Hub() as hub:
        hub.add_folder("datasets", "org/insert", datasets["insert"])
        hub.add_folder("models", "org/agent", published)
        extra = hub.settings(tmp_path / "home")
        command("fit", "hf://org/insert", *FIT, "--out", tmp_path / "first", extra=extra)
        asked = {path.partition("/resolve/")[2] for _, path in hub.requests if "/resolve/" in path}
        needed = ("manifest.json", "augmented/train-", "expert/validation-", "pairs/validation-")
        assert asked and all(path.partition("/")[2].startswith(needed) for path in asked)
        online = command("edit", "hf://org/agent", TEXT, extra=extra).stdout
    offline = extra | {"HF_HUB_OFFLINE": "1"}
    command("fit", "hf://org/insert", *FIT, "--out", tmp_path / "second", extra=offline)
    weights = [(tmp_path / out / "best.safetensors").read_bytes() for out in ("first", "second")]
    assert weights[0] == weights[1]
    assert command("edit", "hf://org/agent", TEXT, extra=offline).stdout == online
    missing = command("fit", "hf://org/insert@v2", *FIT, "--out", tmp_path / "third", extra=offline, code=2)
    assert missing.stderr == (
        "Error: hf://org/insert@v2: not in huggingface_hub's cache, and the hub cannot be reached\n"
    )
    missing = command("edit", "hf://org/other", TEXT, extra=offline, code=2)
    assert "not in huggingface_hub's cache" in missing.stderr and len(missing.stderr.splitlines()) == 1


def test_all_files_are_of_one_commit(datasets, tmp_path):
    """A dataset that is replaced while it is read stays the one that was opened."""
    with Hub() as hub:
        hub.add_folder("datasets", "org/data", datasets["insert"])
        code = (
            "import os, sys; from trainer.core.format import PAIR_COLUMNS; from trainer.data.dataset import Dataset\n"
            "dataset = Dataset('org/data')\n"
            "print(dataset.where, flush=True); sys.stdin.readline()\n"
            "print(dataset.read(dataset.select('pairs', 'train')[0], PAIR_COLUMNS).num_rows, flush=True)\n"
            "os._exit(0)"  # as our commands do: threads of Arrow may need Python while it ends
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ | hub.settings(tmp_path / "home"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "hf://org/data\n"
        repository = hub.repositories["datasets", "org/data"]
        repository.append(dict.fromkeys(repository[0], b"other"))
        repository.branches["main"] = 1
        out, _ = process.communicate("\n", timeout=60)
        assert process.returncode == 0 and int(out) > 0


def test_a_repository_is_what_it_should_be(command, run, tmp_path):
    with Hub() as hub:
        hub.repositories["models", "org/agent"] = Repository({})
        extra = hub.settings(tmp_path / "home")
        refused = command("publish", run, "--to", "hf://org/agent", "--private", extra=extra, code=2)
        assert "exists and is public" in refused.stderr and len(hub.repositories["models", "org/agent"]) == 1
        hub.repositories["models", "org/mine"] = Repository({"README.md": b"# Mine"})
        refused = command("publish", run, "--to", "hf://org/mine", extra=extra, code=2)
        assert "not the card of an agent" in refused.stderr and len(hub.repositories["models", "org/mine"]) == 1


def test_a_local_path_is_not_taken_for_a_dataset_on_the_hub(run, tmp_path):
    """``data/aor`` was a folder where the agent was trained, whatever is there now."""
    for where, linked in (("data/aor", False), ("hf://org/aor@v1", True)):
        copy = shutil.copytree(run, tmp_path / f"run{linked}")
        record = json.loads((copy / "config.json").read_text())
        record["data"]["where"] = where
        (copy / "config.json").write_text(json.dumps(sealed(record)))
        publish(copy, str(tmp_path / f"agent{linked}"))
        card = (tmp_path / f"agent{linked}" / "README.md").read_text()
        assert head_and_body(card)[0].get("datasets") == (["org/aor"] if linked else None)
        public = json.loads((tmp_path / f"agent{linked}" / "config.json").read_text())
        assert public["data"]["where"] == (where if linked else None)


FIGURES = {"pairs": 16, "refused": 0, "token_accuracy": 50.0, "sequence_accuracy": 50.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": None}, "missing required field pairs"),
        ({"pairs": "many"}, "field pairs: expected int"),
        ({"refused": -1}, "field refused: expected int >= 0"),
        ({"token_accuracy": "high"}, "field token_accuracy: expected float"),
        ({"token_accuracy": float("nan")}, "not valid JSON|expected float"),
        ({"token_accuracy": True}, "field token_accuracy: expected float"),
        ({"equation_accuracy": 1e9}, "field equation_accuracy: expected float <= 100"),
    ],
)
def test_figures_of_no_measurement_leave_what_is_published(run, tmp_path, change, message):
    target = tmp_path / "agent"
    publish(run, str(target))
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    copy = shutil.copytree(run, tmp_path / "run")
    tensors, facts = load_checkpoint(run / "best.safetensors")
    validation = {name: value for name, value in (FIGURES | change).items() if value is not None}
    save_checkpoint(copy / "best.safetensors", tensors, facts | {"validation": validation})
    for to in (target, tmp_path / "new"):
        with pytest.raises(BadData, match=rf"best\.safetensors: .*{message}"):
            publish(copy, str(to))
    shutil.copy(run / "best.safetensors", copy)
    measured = validation | {
        "weights": digest(copy / "best.safetensors"),
        "own": True,
    }
    (copy / "evaluation-test.json").write_text(json.dumps(measured))
    with pytest.raises(BadData, match=rf"evaluation-test\.json: .*{message}"):
        publish(copy, str(target))
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before
    assert not (tmp_path / "new").exists()


def test_a_measure_that_only_one_split_has_keeps_its_column(run, tmp_path):
    tensors, facts = load_checkpoint(run / "best.safetensors")
    copy = shutil.copytree(run, tmp_path / "run")
    save_checkpoint(copy / "best.safetensors", tensors, facts | {"validation": FIGURES})
    result = Agent.from_pretrained(copy).evaluate(split="test")
    (copy / "evaluation-test.json").write_text(json.dumps(result))
    publish(copy, str(tmp_path / "agent"))
    table = [line for line in (tmp_path / "agent" / "README.md").read_text().splitlines() if line.startswith("| test")]
    table += ["| validation | 16 | 50.00 % | 50.00 % |  | 0 |"]
    card = (tmp_path / "agent" / "README.md").read_text()
    assert all(line in card for line in table) and {line.count("|") for line in table} == {7}


def test_what_a_run_says_is_shown_and_nothing_more(run, tmp_path):
    """Names and versions hold Markdown, HTML and YAML; the card has the same parts as any other, and is ours."""
    publish(run, str(tmp_path / "usual"))
    usual = check_inert((tmp_path / "usual/README.md").read_text(), headings=4)
    copy = shutil.copytree(run, tmp_path / "run")
    record = json.loads((copy / "config.json").read_text())
    record["versions"] = {ATTACK: ATTACK}
    record["contract"] |= {"task": ATTACK, "metric": ATTACK}
    (copy / "config.json").write_text(json.dumps(sealed(record)))
    name = "@x`|<b>'\"\n```\n---"
    publish(copy, str(tmp_path / name))
    publish(copy, str(tmp_path / name))
    page = (tmp_path / name / "README.md").read_text()
    head, body = head_and_body(page)
    assert head["model-index"][0]["name"] == name and head["model-index"][0]["results"][0]["dataset"]["name"] == ATTACK
    text = check_inert(page, headings=4)
    assert len(text.splitlines()) == len(usual.splitlines())
    shell, python = code_blocks(body)[0]
    assert shlex.split(shell)[2] == str(tmp_path / name)
    assert ast.literal_eval(python.split("from_pretrained(")[1].split(")\n")[0]) == str(tmp_path / name)


def test_weights_beyond_their_model_are_not_read(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    _, facts = load_checkpoint(run / "best.safetensors")
    save_checkpoint(copy / "best.safetensors", {"x": torch.zeros(1 << 20)}, facts)
    with pytest.raises(BadData, match="bytes of weights, expected at most"):
        publish(copy, str(tmp_path / "agent"))


@pytest.mark.parametrize("to", ["agent/", "./agent/.", "agent"])
def test_a_card_has_a_title(run, tmp_path, monkeypatch, to):
    monkeypatch.chdir(tmp_path)
    publish(run, to)
    head, body = head_and_body((tmp_path / "agent" / "README.md").read_text())
    assert head["model-index"][0]["name"] == "agent" and body.lstrip().startswith("# agent\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    publish(run, ".")
    assert "# here\n" in (tmp_path / "here" / "README.md").read_text()


LEARNED = {
    "end2end": ("the pairs of task", ()),
    "tagging": ("the rounds of tags of task", ("train_on",)),
    "recurrence-star": ("the expert's demonstrations of task", ("train_on",)),
    "nar-star": ("the augmented demonstrations of task", ("beam", "view")),
    "planner": ("the augmented demonstrations of task", ("width", "batch", "learning_rate")),
}


@pytest.mark.parametrize("model", LEARNED)
def test_the_card_says_what_the_model_used(tmp_path, model):
    """And not what stands in the config but was not read."""
    data = small_dataset(tmp_path / "data", "insert", tags=True)
    size = {} if model == "planner" else {"width": 8, "layers": 1}
    train_run(
        data,
        preset("cpu", model=model, updates=4, **size),
        tmp_path / "run",
        device="cpu",
        reporter=Reporter(quiet=True),
    )
    publish(tmp_path / "run", str(tmp_path / "agent"))
    page = (tmp_path / "agent" / "README.md").read_text()
    learned, unread = LEARNED[model]
    assert f"parameters, trained on {learned}\n`aor`" in page
    assert ("edit metric" in page) is (model != "end2end")
    shown = {line.split(" | ")[0][2:] for line in page.split("## Training")[1].splitlines() if line.startswith("| ")}
    assert {"model", "updates", "seed"} <= shown and not shown & set(unread)


def test_the_options_are_those_of_aegen(command, run, tmp_path):
    """Tag, branch, force, a dry run, and JSON: on the hub, and where they make sense in a folder."""
    from aegen.cli import main as other
    from trainer.cli import main

    ours, theirs = ({option.name for option in group.commands["publish"].params} for group in (main, other))
    assert theirs - ours == {"folders", "workers"} and ours - theirs == {"run"}
    with Hub() as hub:
        extra = hub.settings(tmp_path / "home")

        def call(*options, code=0):
            return command("publish", run, "--to", "hf://org/agent", *options, extra=extra, code=code)

        dry = json.loads(call("--dry-run", "--json").stdout)
        assert set(dry["files"]) == {"README.md", "config.json", "model.safetensors"} and not dry["changed"]
        assert ("models", "org/agent") not in hub.repositories
        first = json.loads(call("--tag", "v1", "--json").stdout)
        there = hub.repositories["models", "org/agent"]
        assert first["changed"] and first["files"] == dry["files"] and len(there) == 2 and there.tags == {"v1": 1}
        assert "nothing to do: 3 files" in call("--tag", "v1").stdout and len(there) == 2
        there.append(there[-1] | {"config.json": b"{}"})
        there.branches["main"] = 2
        assert "tag v1 belongs to another commit (--force moves it)" in call("--tag", "v1", code=2).stderr
        there.append(there[-1] | {"README.md": b"# Mine"})
        there.branches["main"] = 3
        assert "(--force replaces it)" in call(code=2).stderr and len(there) == 4
        assert "published" in call("--force", "--tag", "v1").stdout
        assert there.tags == {"v1": len(there) - 1} and there[-1]["README.md"] != b"# Mine"
        call("--revision", "dev")
        assert set(there.branches) == {"main", "dev"}
        assert "--tag a b: expected letters" in call("--tag", "a b", code=2).stderr
    assert "are for hf://org/name only" in command("publish", run, "--to", tmp_path / "x", "--tag", "v1", code=2).stderr
    assert "would publish 3 files" in command("publish", run, "--to", tmp_path / "x", "--dry-run").stdout
    assert not (tmp_path / "x").exists()
