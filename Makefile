# Every target makes the virtual environment it needs; nothing has to be installed by hand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The URL of an index to take PyTorch from, such as that of its wheels for CPUs: the usual ones bring 3 GB of CUDA.
TORCH_INDEX ?=
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: screenshots demo test test-faults bench lint docs docs-serve clean

$(VENV)/installed: pyproject.toml trainer/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "aegen needs Python 3.11 or newer (set PYTHON=...)")'
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(PIP) --no-deps torch --index-url $(TORCH_INDEX))
	$(PIP) -e ".[all,dev,docs]" -e "./trainer[all]"
	touch $@

demo: $(VENV)/installed
	$(BIN)/aegen build aes --n 100 --l 5 --d 10000 --out demo/aes
	$(BIN)/aegen show demo/aes --rows 2
	$(BIN)/aegen build aor --n 10 --l 4 --d 2000 --out demo/aor
	$(BIN)/aegen sources aor --n 10 --l 4 --d 2000 --seed 1 --apart-from demo/aor --out demo/free
	$(BIN)/trainer sweep cards/sweeps/demo.toml --threads 1
	$(BIN)/trainer edit demo/runs/aes/planner+ta/seed-0 \
	  "61 + 6 - ( 81 - 73 ) = 59" "44 + 95 / ( 2 + 3 ) - ( 35 - 8 ) = 36" "( 3 * 4 ) / ( 10 - 4 ) + 5 = 7"
	$(BIN)/trainer report demo/runs --out demo/report

screenshots: demo
	$(BIN)/python -m tests.screenshots demo

test: $(VENV)/installed
	$(BIN)/python -m pytest -n auto --dist worksteal

test-faults: $(VENV)/installed
	$(BIN)/python -m pytest -n auto --dist worksteal -m faults $(ARGS)

bench: $(VENV)/installed
	$(BIN)/python -m tests.bench $(ARGS)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A page that is not in mkdocs.yml, a link that leads nowhere, or anything from another host fails the build.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/installed
	$(BIN)/mkdocs build --strict --quiet

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site

clean:
	rm -rf $(VENV) demo runs site .pytest_cache .hypothesis .mypy_cache .ruff_cache
	rm -rf build dist *.egg-info trainer/build trainer/dist trainer/*.egg-info
