# Every target makes the virtual environment it needs; nothing has to be installed by hand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test bench lint clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "aegen needs Python 3.11 or newer (set PYTHON=...)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all,dev]"
	touch $@

demo: $(VENV)/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" sh demo.sh

test: $(VENV)/installed
	$(BIN)/python -m pytest

bench: $(VENV)/installed
	$(BIN)/python -m tests.bench

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist demo runs .pytest_cache .hypothesis .mypy_cache .ruff_cache *.egg-info
