# Every target sets up what it needs; a second run installs nothing.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2
# rliable cannot live beside today's pandas; .venv-rliable holds it, and what it needs, and no ebql.
RLIABLE := .venv-rliable

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ebql needs Python 3.11 or newer; found $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of dependencies: it is renewed only when pyproject.toml or the pins change.
$(VENV)/.deep: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --quiet --editable ".[deep,minatar]" --constraint constraints.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.deep
	$(PIP) install --quiet --editable ".[dev]" --constraint constraints.txt
	@touch $@

# Stable-Baselines3 needs OpenCV for Atari; sbx is its JAX version.
$(VENV)/.bench: $(VENV)/.dev
	$(PIP) install --quiet --editable ".[bench]" --constraint constraints.txt
	@touch $@

setup: $(VENV)/.dev ## create .venv with everything the checks need

reproduce: $(VENV)/.deep ## the paper's figures, ledger, a short deep study and a report into reproduction/
	$(BIN)/ebql reproduce --out reproduction

$(VENV)/.lab: $(VENV)/.deep
	$(PIP) install --quiet --editable ".[deep,minatar,lab,video]" --constraint constraints.txt
	@touch $@

FOLDER ?= .

lab: $(VENV)/.lab ## the lab in the browser; FOLDER=DIR shows the runs below DIR
	$(BIN)/ebql lab $(FOLDER)

$(RLIABLE)/.ready: tests/against_rliable/requirements.txt
	$(PYTHON) -m venv $(RLIABLE)
	$(RLIABLE)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $<
	@touch $@

rliable: $(VENV)/.dev $(RLIABLE)/.ready ## our statistics beside those of rliable
	$(BIN)/python -m pytest tests/against_rliable

test: lint $(RLIABLE)/.ready ## all checks and tests, and which parts of the code they run
	PYTEST_PLUGINS=tools.statement_coverage $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
	$(BIN)/python tools/coverage_of_parts.py .coverage.json

# The groups that take long: networks, studies and commands that start processes, the lab's browser, crashes.
SLOW := deep studies cli lab report crash neighbours sb3 against_rliable

test-fast: $(VENV)/.dev ## the tests that take seconds: statistics, tables, files, documents
	$(BIN)/python -m pytest -n $(JOBS) $(patsubst %,--ignore=tests/%,$(SLOW))

test-%: $(VENV)/.dev ## (test-deep, test-lab, …) the tests of one folder below tests/
	$(BIN)/python -m pytest -n $(JOBS) tests/$*

docs: $(VENV)/.dev ## the documentation site into docs/_build/html; tutorials are executed, warnings are errors
	rm -rf docs/_build/html
	$(BIN)/python -m sphinx --builder html --fresh-env --write-all --fail-on-warning --quiet docs docs/_build/html
	PYTHONPATH=tools $(BIN)/python -m manual.check docs/_build/html

package: $(VENV)/.dev ## wheel and sdist into dist/, checked, and the wheel alone in an empty environment
	rm -rf dist
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m pytest -m package tests/package

crash: $(VENV)/.dev ## break runs, files and input in thousands of ways; counts go to results/reliability/ (CASE=… for one)
	PYTHONPATH=tools $(BIN)/python -m crash --jobs $(JOBS) $(if $(LOG),--log '$(LOG)') $(if $(CASE),--only '$(CASE)',--out results/reliability)

lint: $(VENV)/.dev ## ruff, mypy --strict, the floors' import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench ## the speed benchmarks, beside plain Python and Stable-Baselines3
	$(BIN)/python benchmarks/tabular.py
	$(BIN)/python benchmarks/deep.py
	$(BIN)/python benchmarks/atari.py
	$(BIN)/python benchmarks/lab.py

clean: ## remove .venv and what the tools left behind
	rm -rf $(VENV) $(RLIABLE) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache reproduction \
	  dist docs/_build docs/generated .coverage.json

.PHONY: help setup reproduce lab rliable test test-fast docs package crash lint format bench clean
