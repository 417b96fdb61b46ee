# Each target sets up what it needs: Python 3.11 or newer and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: help prove test lint bench vectors docs clean

help:
	@echo "make prove    prove the spec, refute the unfiltered report, run the vectors"
	@echo "make test     the whole test suite"
	@echo "make lint     format, lint, types, import walls"
	@echo "make bench    measure (alone on the machine, please)"
	@echo "make vectors  regenerate the conformance vectors"
	@echo "make docs     regenerate the generated pages of docs/"

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mmcache needs Python 3.11 or newer; say which with make PYTHON=...")'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@$(PIP) --editable '.[test]'
	@touch $@

prove: $(VENV)/.installed
	@$(BIN)/python tests/tour.py

test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest -q

lint: $(VENV)/.installed-test
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.installed-test
	@$(BIN)/python -m tests.benchmarks

vectors: $(VENV)/.installed
	@$(BIN)/mmcache-spec counterexamples

docs: $(VENV)/.installed
	@$(BIN)/mmcache-spec clauses --markdown > docs/clauses.md

clean:
	rm -rf $(VENV) build dist
