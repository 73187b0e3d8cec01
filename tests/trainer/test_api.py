"""What a programmer imports: the names, and that they do what the command does."""

import inspect
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import trainer
from tests.trainer.reference import pairs_of, small_dataset
from tests.trainer.runs import same, weights
from trainer.cli import main
from trainer.core.progress import Reporter

QUIET = {"device": "cpu", "reporter": Reporter(quiet=True)}
TINY = {"width": 16, "layers": 1, "updates": 3}


def text_of(number):
    return " ".join(pairs_of("span", 4)[number][0])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("api") / "data", "span")


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    return trainer.fit(data, out=tmp_path_factory.mktemp("api") / "run", model="planner", updates=10, **QUIET)


def test_every_name_is_there_and_documented():
    for name in trainer.__all__:
        found = getattr(trainer, name)
        assert name == "__version__" or inspect.getdoc(found)
    assert inspect.isfunction(trainer.fit) and inspect.isclass(trainer.Agent)
    with pytest.raises(AttributeError, match="no attribute 'train'"):
        _ = trainer.train


def test_the_package_imports_from_anywhere_without_pytorch(command, tmp_path):
    code = "import sys, trainer; print('torch' in sys.modules); from trainer import fit; print(fit.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=command.environment
    )
    assert done.stdout.split() == ["False", "trainer.api"], done.stderr


def test_a_run_gives_its_agent(run):
    assert (run.updates, run.finished) == (10, "updates") and (run.folder / "best.safetensors").exists()
    assert json.dumps(run.to_json())
    agent = run.agent()
    assert isinstance(agent, trainer.Agent)
    one = agent.edit(text_of(0))
    assert (
        isinstance(one, trainer.Game)
        and one.source == text_of(0)
        and all(isinstance(move, trainer.Move) for move in one.moves)
    )
    many = agent.edit([text_of(0), text_of(1)])
    assert [game.source for game in many] == [text_of(0), text_of(1)] and many[0].text == one.text
    assert agent.edit([]) == [] and agent.edit((text_of(0),))[0].text == one.text
    with pytest.raises(trainer.InvalidText, match="unknown token"):
        agent.edit("?")
    for load in (trainer.load, trainer.Agent.from_pretrained):
        assert load(run.folder).edit(text_of(0)) == one


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"model": "planner", "updates": 4}, ["--model", "planner", "--updates", 4]),
        ({"updates": 4, "seed": 2}, ["--updates", 4, "--seed", 2]),
        ({"model": "ar", **TINY}, ["--model", "ar", "--width", 16, "--layers", 1, "--updates", 3]),
        ({"stream": True, **TINY}, ["--stream", "--width", 16, "--layers", 1, "--updates", 3]),
        ({"preset": "cpu", **TINY}, ["--preset", "cpu", "--width", 16, "--layers", 1, "--updates", 3]),
    ],
)
def test_the_function_and_the_command_make_the_same_run(data, tmp_path, settings, options):
    made = trainer.fit(data, out=tmp_path / "function", **settings, **QUIET)
    arguments = ["fit", data, *options, "--device", "cpu", "--json", "--out", tmp_path / "command"]
    said = CliRunner().invoke(main, [*map(str, arguments)])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["updates"] == made.updates
    one, two = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("function", "command"))
    assert one == two
    assert same(weights(tmp_path / "function"), weights(tmp_path / "command"))


def test_a_whole_config_is_taken_as_it_is(data, tmp_path):
    config = trainer.preset("cpu", model="ar", **TINY)
    made = trainer.fit(data, out=tmp_path / "run", config=config, **QUIET)
    assert made.agent().description.config == config
    again = trainer.fit(data, out=tmp_path / "run", config=config, resume=True, **QUIET)
    assert again.best == made.best
    with pytest.raises(trainer.FolderConflict, match="already contains a run; continue it with .*resume=True"):
        trainer.fit(data, out=tmp_path / "run", config=config, **QUIET)
    for wrong in ({"seed": 1}, {"preset": "cpu"}, {"model": "ar"}):
        with pytest.raises(trainer.InvalidConfig, match=f"cannot be combined with {next(iter(wrong))}"):
            trainer.fit(data, out=tmp_path / "other", config=config, **wrong, **QUIET)
