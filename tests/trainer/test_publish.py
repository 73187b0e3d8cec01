"""Publishing and loading through the real clients, on loopback."""

import json
import shutil

import pytest

from tests.hub import Hub
from trainer.agent import Agent
from trainer.config import preset
from trainer.errors import BadData
from trainer.progress import Reporter
from trainer.publish import publish
from trainer.training import fit

TEXT = "3 6 2 5"


@pytest.fixture(scope="module")
def run(datasets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "run"
    config = preset("cpu", width=16, layers=1, updates=40)
    fit(datasets["insert"], config, folder, device="cpu", reporter=Reporter(quiet=True))
    return folder


def test_a_published_folder_plays_the_same_game(run, tmp_path):
    where = publish(run, str(tmp_path / "agent"))
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
    front = dict(line.split(": ", 1) for line in card.split("---\n")[1].splitlines())
    test = json.loads(front["model-index"])[0]["results"][0]
    assert test["metrics"][2] == {
        "type": "equation_accuracy",
        "name": "Equation accuracy",
        "value": result["equation_accuracy"],
    }
    public = (tmp_path / "agent" / "config.json").read_text()
    assert str(datasets["insert"]) not in public and str(datasets["insert"]) not in card


def test_without_weights_nothing_is_published(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "best.safetensors").unlink()
    with pytest.raises(BadData, match=r"no best\.safetensors yet"):
        publish(copy, str(tmp_path / "agent"))


def test_from_hub_to_hub_without_aegen(command, datasets, run, tmp_path):
    with Hub() as hub:
        hub.add_folder("datasets", "org/insert", datasets["insert"])
        extra = {
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": "hf_secret",
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "*",
        }
        fit_options = ["--preset", "cpu", "--width", 16, "--layers", 1, "--updates", 3, "--device", "cpu"]
        stream = ["--stream", "--stream-rows", 100]
        trained = command("fit", "org/insert", *fit_options, *stream, "--out", tmp_path / "run", extra=extra)
        sent = command("publish", run, "--to", "hf://org/agent", extra=extra)
        commits = hub.repositories["models", "org/agent"]
        assert len(commits) == 2 and set(commits[-1]) == {"README.md", "config.json", "model.safetensors"}
        played = command("edit", "org/agent", TEXT, "--json", extra=extra)
        assert json.loads(played.stdout)["text"] == Agent.from_pretrained(run).edit(TEXT).text
        missing = command("edit", "org/nothing", TEXT, extra=extra, code=2)
        assert missing.stderr.startswith("Error: org/nothing: neither a run folder nor a model on the hub")
        assert len(missing.stderr.splitlines()) == 1
        for done in (trained, sent, played, missing):
            assert "hf_secret" not in done.stdout + done.stderr
