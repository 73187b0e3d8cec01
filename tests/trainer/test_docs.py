"""The examples in the docstrings do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import trainer
from tests.trainer.reference import write_dataset

MODULES = ["trainer", *(module.name for module in pkgutil.walk_packages(trainer.__path__, "trainer."))]
MODULES.remove("trainer.__main__")
PAIRS = [
    ("61 + 6 - ( 81 - 73 ) = 59", "61 + 6 - 8 = 59"),
    ("( 2 + 3 ) - 1 = 4", "5 - 1 = 4"),
    ("7 - ( 9 - 4 ) = 2", "7 - 5 = 2"),
]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A working directory with the dataset ``aes`` that the examples name, small enough to learn by heart."""
    pairs = [(tuple(source.split()), tuple(target.split())) for source, target in PAIRS]
    write_dataset(tmp_path / "aes", "span", dict.fromkeys(("train", "validation", "test"), pairs), task="aes")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize(
    "name",
    ["trainer", "trainer.api", "trainer.core.format", "trainer.models.planner.networks", "trainer.report.notes"],
)
def test_examples_are_found(name):
    found = doctest.DocTestFinder().find(importlib.import_module(name))
    assert name in MODULES and sum(len(test.examples) for test in found) > 1
