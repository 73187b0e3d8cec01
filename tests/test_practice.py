"""Practice from end to end: sources of aegen, games and learning of trainer."""

from __future__ import annotations

import dataclasses
import json
import math
import os

import pytest
import torch
from msgspec import structs

import aegen.pipeline.build as pipeline
import trainer
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from tests.hub import Hub
from tests.trainer.runs import QUIET, Stop, Stopper, same, story, weights
from trainer.agents.evaluation import evaluate_run
from trainer.core.errors import BadData, FolderConflict, InvalidConfig
from trainer.data.dataset import Dataset
from trainer.data.encode import load_pairs
from trainer.data.sources import load_sources
from trainer.game import practice
from trainer.report.collect import collect
from trainer.report.runs import told_apart
from trainer.sweeps.cell import CellJob, finished, run_cell
from trainer.sweeps.grid import read_sweep
from trainer.sweeps.result import read_cell
from trainer.sweeps.runner import next_cell, run_sweep
from trainer.training.rounds import Practice, PracticeSampler
from trainer.training.run import Description

MARGIN = 10.0  # per cent of the equations that practice must gain on a tiny AOR, at least


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny AOR, free sources, and an agent that has imitated."""
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("practice")
    pipeline.build(Spec("aor", 10, 4, 600), Folder(root / "aor"), Local())
    pipeline.sources(Spec("aor", 10, 4, 2000, seed=1), Folder(root / "free"), Folder(root / "aor"))
    settings = {"model": "planner", "view": "scripts", "updates": 200, "preset": "fast"}
    trainer.fit(root / "aor", out=root / "start", **settings, **QUIET)
    return root


def practise(folder, out, **settings):
    given = {"sources": folder / "free", "rounds": 2, "samples": 8, "updates": 150} | settings
    return trainer.practise(folder / "start", out=out, **QUIET | given)


@pytest.fixture(scope="module")
def practised(folder):
    practise(folder, folder / "practised")
    return folder / "practised"


def test_practice_improves_the_agent_that_it_began_with(folder, practised):
    before, after = (
        trainer.load(run).evaluate(split="test")["equation_accuracy"] for run in (folder / "start", practised)
    )
    assert after >= before + MARGIN


def test_the_log_tells_what_was_won_in_each_round(practised):
    rounds = {line["practice"]["round"]: line["practice"] for line in story(practised)}
    assert sorted(rounds) == [1, 2]
    for facts in rounds.values():
        assert facts["training_games"] == 8 * 420
        assert 0 < facts["free_sources_won"] <= facts["free_won"] <= facts["free_games"]
    assert rounds[2]["free_sources_won"] > rounds[1]["free_sources_won"]
    about = Description.read(practised / "config.json").practice
    assert about["rounds"] == 2 and len(about["sources"]) == 1


GAMES = 4  # from each source


def won(folder, sources):
    """What an agent that has imitated wins from some sources."""
    agent, draw = trainer.load(folder / "start"), torch.Generator().manual_seed(0)
    return practice.practise(agent.policy, agent.environment, agent.contract, sources, GAMES, draw)


def test_free_sources_that_were_lost_are_played_again(folder, monkeypatch):
    agent = trainer.load(folder / "start")
    free = load_sources(Dataset(folder / "free"), agent.contract)
    more = won(folder, free)
    monkeypatch.setattr(practice, "AGAIN", 1)
    again = won(folder, free)
    lost = again.played - GAMES * len(free)
    assert 0 < lost == GAMES * round(lost / GAMES) and again.played < more.played <= 2 * GAMES * len(free)
    assert len(free) - lost // GAMES <= again.sources < more.sources <= len(free)


def test_sources_are_played_once_where_a_win_may_be_another(folder):
    """Where the target is known, and where the goal keeps no more than the number of edits."""
    agent = trainer.load(folder / "start")
    free = load_sources(Dataset(folder / "free"), agent.contract)
    near = dataclasses.replace(free, goal=structs.replace(free.goal, keeps="edits", edits=9))
    known = dataclasses.replace(free, targets=free.texts)
    assert won(folder, near).played == won(folder, known).played == GAMES * len(free)


SHORT = {"rounds": 2, "samples": 2, "updates": 12, "save_every": 5}


@pytest.fixture(scope="module")
def short(folder):
    practise(folder, folder / "short", **SHORT)
    return folder / "short"


@pytest.mark.parametrize("after", [0, 8, 17])  # before anything is learned, in the first round, in the second
def test_a_practice_that_was_killed_resumes_bit_for_bit(folder, short, tmp_path, after):
    with pytest.raises(Stop):
        practise(folder, tmp_path / "run", **SHORT, reporter=Stopper(after))
    practise(folder, tmp_path / "run", **SHORT, resume=True)
    assert same(weights(tmp_path / "run"), weights(short))
    assert same(weights(tmp_path / "run", "best"), weights(short, "best"))
    assert story(tmp_path / "run") == story(short)


def test_no_free_source_is_held_out(folder, tmp_path):
    agent = trainer.load(folder / "start")
    free = load_sources(Dataset(folder / "free"), agent.contract)
    for split in ("validation", "test"):
        assert not set(free.texts) & set(load_pairs(Dataset(folder / "aor"), split, agent.contract).sources)
    pipeline.sources(Spec("aor", 10, 4, 800, seed=1), Folder(tmp_path / "leaking"))
    with pytest.raises(BadData, match="of its sources are in validation of .* --apart-from"):
        practise(folder, tmp_path / "out", sources=tmp_path / "leaking")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def others(folder):
    """Datasets that do not fit: of another task, other tokens, texts, and without a reward."""
    pipeline.sources(Spec("aec", 10, 4, 20), Folder(folder / "aec"))
    pipeline.import_sources(
        Import(pairs=(("77 78 79", ""), ("80 81 82", "")), task="aor", sources_only=True), Folder(folder / "large")
    )
    return folder


@pytest.mark.parametrize(
    "name, message",
    [
        ("aec", "field task is 'aec', the agent expects 'aor'"),
        ("large", "the agent can read none of 2 sources"),
        ("aor", "no sources/train shards"),
        ("none", "no such folder"),
    ],
)
def test_sources_that_do_not_fit_are_refused_and_nothing_is_lost(others, tmp_path, name, message, invoke):
    words = ["practise", others / "start", "--out", tmp_path / "out", "--sources", others / name]
    told = invoke(*words, module="trainer", check=2).stderr.strip()
    assert message in told and "\n" not in told
    assert not (tmp_path / "out").exists()


def test_a_dataset_without_a_reward_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("aegen.pipeline.generated.goal_of", lambda *given: None)
    pipeline.build(Spec("aor", 10, 4, 60), Folder(tmp_path / "aor"), Local())
    trainer.fit(tmp_path / "aor", out=tmp_path / "start", model="planner", view="scripts", updates=2, **QUIET)
    with pytest.raises(BadData, match="no reward: its shards define no goal"):
        trainer.practise(tmp_path / "start", out=tmp_path / "out", **QUIET)
    assert not (tmp_path / "out").exists()


def test_a_run_is_not_mistaken_for_another(folder, practised, tmp_path):
    with pytest.raises(FolderConflict, match="continue it with --resume"):
        practise(folder, practised)
    with pytest.raises(FolderConflict, match="samples: existing value 8, requested 9"):
        practise(folder, practised, samples=9, resume=True)
    with pytest.raises(InvalidConfig, match="choose another folder"):
        practise(folder, folder / "start", resume=True)
    with pytest.raises(FolderConflict, match="an agent that practised, not one that imitated"):
        config = Description.read(practised / "config.json").config
        trainer.fit(folder / "aor", config=config, out=practised, resume=True, **QUIET)


def test_an_agent_on_the_hub_practises(folder, tmp_path, run):
    given = ["--data", folder / "aor", "--rounds", 1, "--samples", 2, "--updates", 2]
    with Hub() as hub:
        env = os.environ | hub.settings(tmp_path / "home")
        run("publish", folder / "start", "--to", "hf://org/start", module="trainer", env=env)
        run("practise", "org/start", "--out", tmp_path / "out", *given, module="trainer", env=env)
    assert json.loads((tmp_path / "out/config.json").read_text())["data"]["begun"] == "hf://org/start"
    practise(folder, tmp_path / "same", sources=None, rounds=1, samples=2, updates=2)
    assert same(weights(tmp_path / "out"), weights(tmp_path / "same"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rounds": 0}, "field rounds: expected int >= 1"),
        ({"samples": 0}, "field samples: expected int >= 1"),
        ({"samples": 1 << 21}, "field samples: expected int <= 1048576"),
        ({"updates": 0}, "field updates: expected int >= 1"),
        ({"updates": 1 << 40}, "field updates: expected int <= "),  # times two rounds
        ({"seed": -1}, "field seed: expected int >= 0"),
    ],
)
def test_how_much_is_practised_is_checked_before_anything_is_written(folder, tmp_path, wrong, message):
    with pytest.raises(InvalidConfig, match=message):
        practise(folder, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("model", ["ar", "nar-star", "linear", "decoder0", "end2end", "tagging"])
def test_every_agent_practises_through_one_interface(folder, tmp_path, model):
    data = folder / "aor"
    if model == "tagging" and not Dataset(data).has("tags", "train"):
        pipeline.add_demonstrations(Folder(data), pipeline.demonstrator("text", design="tags"), Local())
    small = {"width": 16, "updates": 30, "layers": 1, "preset": "cpu"}
    trainer.fit(data, out=tmp_path / "start", model=model, **small, **QUIET)
    done = trainer.practise(tmp_path / "start", out=tmp_path / "out", rounds=2, samples=2, updates=3, **QUIET)
    assert done.updates == 6 and trainer.load(tmp_path / "out").edit("2 3 4 9").source == "2 3 4 9"


def test_a_round_warms_up_as_imitation_does(folder, tmp_path):
    small = {"width": 16, "updates": 30, "layers": 1, "preset": "cpu", "optimizer": "muon", "warm_up": 10}
    trainer.fit(folder / "aor", out=tmp_path / "start", model="nar-star", learning_rate=1e-2, **small, **QUIET)
    trainer.practise(tmp_path / "start", out=tmp_path / "out", rounds=1, samples=2, updates=3, **QUIET)
    (line,) = map(json.loads, (tmp_path / "out" / "metrics.jsonl").read_text().splitlines())
    assert line["learning_rate"] == pytest.approx(1e-2 * 3 / 10 * (1 + math.cos(math.pi * 2 / 3)) / 2)


@pytest.mark.parametrize("task", ["aes", "aec"])
def test_the_planner_practises_all_views(task, tmp_path):
    pipeline.build(Spec(task, 10, 4, 100), Folder(tmp_path / task), Local())
    pipeline.sources(Spec(task, 10, 4, 40, seed=1), Folder(tmp_path / "free"), Folder(tmp_path / task))
    trainer.fit(tmp_path / task, out=tmp_path / "start", model="planner", updates=60, **QUIET)
    given = {"sources": tmp_path / "free", "rounds": 2, "samples": 4, "updates": 6}
    trainer.practise(tmp_path / "start", out=tmp_path / "out", **given, **QUIET)
    facts = story(tmp_path / "out")[-1]["practice"]
    assert (
        facts["training_won"] > 0 and json.loads((tmp_path / "out/config.json").read_text())["practice"]["samples"] == 4
    )


def test_texts_practise_on_their_targets_and_the_log_tells_how_near_they_came(tmp_path):
    pairs = tuple((f"a b {number}", f"a c {number}") for number in range(40))
    folder = Folder(tmp_path / "text")
    pipeline.import_pairs(Import(pairs=pairs, ratio="50/25/25"), folder)
    pipeline.add_demonstrations(folder, pipeline.demonstrator("text"), Local())
    trainer.fit(folder.path, out=tmp_path / "start", model="planner", train_on="expert", updates=20, **QUIET)
    trainer.practise(tmp_path / "start", out=tmp_path / "out", rounds=1, samples=2, updates=2, **QUIET)
    facts = story(tmp_path / "out")[-1]["practice"]
    assert facts["training_won"] / facts["training_games"] < facts["training_share"] < 1


def test_corrections_are_on_or_off(folder, tmp_path):
    with pytest.raises(InvalidConfig, match="field corrections: expected bool, got int"):
        practise(folder, tmp_path / "out", corrections=0)
    assert not (tmp_path / "out").exists()


def test_a_report_tells_how_a_run_practised(folder, short):
    evaluate_run(short, "cpu")
    (cell,) = (one for one in collect(folder).records if one.practice)
    assert cell.label == "practised"  # no agent of the main table
    assert cell.practice == {
        "sources": str(folder / "free"),
        "rounds": 2,
        "samples": 2,
        "updates": 12,
        "corrections": True,
    }
    practise = f"trainer practise {folder / 'start'} --sources {folder / 'free'} --rounds 2 --samples 2 --updates 12"
    assert cell.commands[0] == f"{practise} --data {folder / 'aor'} --seed 0 --out {short}"
    imitated = structs.replace(cell, label="", practice={})
    longer = structs.replace(cell, seed=1, practice=cell.practice | {"rounds": 3})
    runs = {folder / name: one for name, one in (("start", imitated), ("short", cell), ("longer", longer))}
    told = told_apart(runs, {}, {place: place.name for place in runs})
    assert [one.label for one in told.values()] == ["", "short", "longer"]


SWEEP = """
preset = "fast"
[[data]]
task = "aor"
path = "{root}/aor"
[[grid]]
tasks = ["aor"]
models = ["planner"]
ta = [true]
settings = {{ updates = 20, view = "scripts" }}
[[grid]]
tasks = ["aor"]
models = ["planner"]
ta = [true]
settings = {{ updates = 20, view = "scripts" }}
label = "practised"
[grid.practise]
sources = "{root}/free"
rounds = 1
samples = 2
updates = 4
"""


def test_a_sweep_practises_from_its_own_imitation(folder, tmp_path):
    path = tmp_path / "practice.toml"
    path.write_text(SWEEP.format(root=folder))
    sweep = read_sweep(path, tmp_path / "sweep")
    imitated, practised = sweep.cells
    assert practised.start.name == imitated.name
    for cell in (practised, imitated):  # in any order
        assert run_cell(CellJob(cell, str(sweep.out), threads=1, device="cpu", verbose=False)) is None
    result = read_cell(sweep.out / practised.name)
    assert (result.label, result.updates, result.practice["samples"]) == ("practised", 4, 2)
    assert [command.split()[1] for command in result.commands] == ["fit", "practise", "evaluate"]
    assert read_cell(sweep.out / imitated.name).updates == 20
    assert finished(practised, sweep.out)
    assert result.sources == Dataset(folder / "free").hashes("sources", "train")
    cell = sweep.out / practised.name / "cell.json"
    said = json.loads(cell.read_text())
    cell.write_text(json.dumps(said | {"sources": dict.fromkeys(said["sources"], "0" * 64)}))
    with pytest.raises(FolderConflict, match="was run on other data than .*/free holds now"):
        finished(practised, sweep.out)
    del said["sources"]  # as in older results
    cell.write_text(json.dumps(said))
    assert finished(practised, sweep.out)
    path.write_text(SWEEP.format(root=folder).replace("samples = 2", "samples = 3"))
    with pytest.raises(FolderConflict, match="existing practice .*'samples': 2.*requested"):
        finished(read_sweep(path, tmp_path / "sweep").cells[1], sweep.out)
    path.write_text(SWEEP.format(root=folder).replace('label = "practised"', ""))
    with pytest.raises(BadData, match="practise: requires a label"):
        read_sweep(path)


def test_a_sweep_does_not_practise_from_a_run_with_other_settings(folder, tmp_path):
    before, _, after = SWEEP.rpartition("updates = 20")
    (tmp_path / "practice.toml").write_text((before + "updates = 21" + after).format(root=folder))
    sweep = read_sweep(tmp_path / "practice.toml", tmp_path / "sweep")
    one, other = (CellJob(cell, str(sweep.out), threads=1, device="cpu", verbose=False) for cell in sweep.cells)
    assert run_cell(one) is None
    with pytest.raises(FolderConflict, match="existing updates 20, requested 21"):
        run_cell(other)
    assert not (sweep.out / other.cell.name / "cell.json").exists()


def test_free_sources_that_are_missing_are_named_before_anything_is_trained(folder, tmp_path, invoke):
    path = tmp_path / "practice.toml"
    text = SWEEP.format(root=folder).replace(f'"{folder}/free"', '"gone"\nbuild = "aegen sources aor --out gone"')
    path.write_text(text)
    words = ["sweep", path, "--out", tmp_path / "sweep"]
    told = invoke(*words, module="trainer", check=2).stderr
    assert told == "Error: gone: no finished dataset; build it with: aegen sources aor --out gone\n"
    assert invoke(*words, "--plan", module="trainer").stdout.splitlines()[0] == "aegen sources aor --out gone"
    assert not (tmp_path / "sweep").exists()
    path.write_text(text.replace('"gone"', '"s3://me:password@gone"'))
    assert "a password in the URL would be visible" in invoke(*words, module="trainer", check=2).stderr


def test_cells_that_begin_with_the_same_run_take_turns(folder, tmp_path):
    more = (
        SWEEP[SWEEP.rindex("[[grid]]") :].replace('"practised"', '"without"').replace('sources = "{root}/free"\n', "")
    )
    (tmp_path / "practice.toml").write_text((SWEEP + more).format(root=folder))
    sweep = read_sweep(tmp_path / "practice.toml", tmp_path / "sweep")
    assert run_sweep(sweep, jobs=3, threads=1, device="cpu", say=[].append) == 3
    one, other = sweep.cells[0], structs.replace(sweep.cells[0], seed=1)
    assert next_cell(sweep.cells[1:], [sweep.cells[1]], sweep.out) == sweep.cells[1]  # what they begin with is finished
    new = tmp_path / "new"
    assert next_cell(sweep.cells, [one], new) is None and next_cell([*sweep.cells, other], [one], new) == other


def test_one_round_of_one_game_is_not_called_many():
    def about(rounds, samples):
        given = Practice(rounds=rounds, samples=samples, updates=1, corrections=False, start="")
        return PracticeSampler(None, None, None, given, [("training", range(3))], None, None, None).about

    assert about(1, 1) == "1 round of 1 game from 3 training sources"
    assert about(2, 8) == "2 rounds of 8 games from 3 training sources"


def test_games_with_an_action_that_changed_nothing_are_known():
    states = torch.tensor([[1, 2], [1, 3], [1, 3], [1, 3], [4, 0], [4, 0], [5, 0], [5, 0], [6, 0]])
    games = practice.Games(torch.tensor([0, 2, 4, 6, 7, 9]), states, (states > 0).sum(1), torch.zeros(9, 1))
    assert games.idle.tolist() == [False, True, True, False, False]  # the last begins where another ended
    assert practice.Games.join([games, games.pick(torch.tensor([1]))]).idle.tolist()[-3:] == [False, False, True]
