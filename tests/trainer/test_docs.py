"""The examples in the docstrings do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import trainer

MODULES = [f"trainer.{module.name}" for module in pkgutil.iter_modules(trainer.__path__) if module.name != "__main__"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
