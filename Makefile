# Every target makes the virtual environment it needs; nothing has to be installed by hand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-faults bench lint clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "aegen needs Python 3.11 or newer (set PYTHON=...)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all,dev]"
	touch $@

demo: $(VENV)/installed
	$(BIN)/aegen build aec --n 10 --l 5 --d 10000 --out demo/aec
	$(BIN)/aegen show demo/aec --rows 2
	$(BIN)/trainer fit demo/aec --preset cpu --out demo/run --resume
	@echo "The paper's NAR* + TA after hours on a GPU: token 82.70, sequence 49.64, equation 50.15. Here:"
	$(BIN)/trainer evaluate demo/run
	$(BIN)/trainer edit demo/run "- 2 * + 4 10 + 8 / 8 = 8" "7 + - 5 - 5 = 2" "8 / 2 / 2 + 3 = 5"

test: $(VENV)/installed
	$(BIN)/python -m pytest

test-faults: $(VENV)/installed
	$(BIN)/python -m pytest -m faults $(ARGS)

bench: $(VENV)/installed
	$(BIN)/python -m tests.bench $(ARGS)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist demo runs .pytest_cache .hypothesis .mypy_cache .ruff_cache *.egg-info
