"""The examples in the docstrings do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import aegen

MODULES = ["aegen", *(module.name for module in pkgutil.walk_packages(aegen.__path__, "aegen."))]
MODULES.remove("aegen.__main__")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", ["aegen", "aegen.arithmetic.equation", "aegen.engines.engine", "aegen.gym"])
def test_examples_are_found(name):
    found = doctest.DocTestFinder().find(importlib.import_module(name))
    assert name in MODULES and sum(len(test.examples) for test in found) > 1
