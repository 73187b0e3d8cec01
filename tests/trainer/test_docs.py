"""The examples in the docstrings do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import trainer

MODULES = ["trainer", *(module.name for module in pkgutil.walk_packages(trainer.__path__, "trainer."))]
MODULES.remove("trainer.__main__")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", ["trainer.core.text", "trainer.models.planner.networks", "trainer.report.notes"])
def test_examples_are_found(name):
    assert name in MODULES and doctest.testmod(importlib.import_module(name)).attempted > 1
