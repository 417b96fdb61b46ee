# Each target sets up what it needs: Python 3.11 or newer and make are enough.
PYTHON ?= python3
START := $(shell date +%s)
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
	@$(BIN)/mmcache-spec prove
	@echo
	@$(BIN)/mmcache-spec refute unfiltered_report
	@echo
	@echo "The vectors made from such traces, on the reference:"
	@$(BIN)/mmcache-conformance run --quiet reference
	@echo "On the real managers of two vLLM releases, of which the first reports unfiltered:"
	@$(BIN)/mmcache-conformance run --quiet vllm:0.27.1 vllm:0.33.0 || true
	@echo
	@echo "$$(( $$(date +%s) - $(START) )) s in all, installation included"

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
