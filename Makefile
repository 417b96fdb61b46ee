# Each target sets up what it needs: Python 3.11 or newer and make are enough.
PYTHON ?= python3
START := $(shell date +%s)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

# Where it is set, as in many containers, each of some hundred processes would compile every module.
unexport PYTHONDONTWRITEBYTECODE

# On all cores; whoever looks for a failure runs pytest alone.
PYTEST := $(BIN)/python -m pytest -q -n logical --dist worksteal

.PHONY: conformance-vllm live help prove lemmas test proofs lint bench mutants vectors docs clean

help:
	@echo "make prove    prove the spec, refute the unfiltered report, run the vectors"
	@echo "make lemmas   prove in Coq what the proofs take from outside of logic (needs coqc)"
	@echo "make test     the tests, but for the long proofs"
	@echo "make proofs   the long proofs: a second solver, the spec broken on purpose, the lemmas"
	@echo "make lint     format, lint, types, import walls"
	@echo "make bench    measure (alone on the machine, please; a quick look: make bench QUICK=--quick)"
	@echo "make mutants  change the reference, and see whether the vectors notice (GROUPS=judge ...)"
	@echo "make vectors  regenerate the vectors of managers, engines (with their seeds) and pairs"
	@echo "make conformance-vllm  the engine vectors on the scheduler of a vLLM for CPUs (3.5 GB)"
	@echo "make live     the engine vectors on a vLLM that runs, on this CPU (3.5 GB the first time)"
	@echo "make docs     regenerate the generated pages of docs/, theories of spec/lemmas/, and counts of vectors"

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
	@$(BIN)/mmcache-conformance run --quiet vllm:0.27.1 vllm:0.33.0 || [ $$? -ne 2 ]
	@echo
	@echo "$$(( $$(date +%s) - $(START) )) s in all, installation included"

lemmas: $(VENV)/.installed
	@$(BIN)/mmcache-spec lemmas --check spec/lemmas

test: $(VENV)/.installed-test
	@$(PYTEST) --ignore=tests/proofs -m "not slow"

proofs: $(VENV)/.installed-test
	@$(PYTEST) --ignore=tests/proofs -m slow
	@$(PYTEST) tests/proofs
	@$(BIN)/mmcache-spec variants --check --follow progress

lint: $(VENV)/.installed-test
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.installed-test
	@$(BIN)/python -m tests.tools.bench $(QUICK)

$(VENV)/.installed-strength: $(VENV)/.installed-test
	@$(PIP) --editable '.[test,strength]'
	@touch $@

mutants: $(VENV)/.installed-strength
	@$(BIN)/python -m tests.tools.mutants.run $(GROUPS)

vectors: $(VENV)/.installed
	@$(BIN)/mmcache-spec counterexamples
	@$(BIN)/python -m mmcache_spec.generate.engine_seeds --write
	@$(BIN)/python -m mmcache_conformance.engines.generate
	@$(BIN)/python -m mmcache_spec.generate.pairs

docs: $(VENV)/.installed-test
	@$(BIN)/mmcache-spec clauses --markdown > docs/clauses.md
	@$(BIN)/mmcache-spec coverage --markdown > docs/coverage.md
	@$(BIN)/mmcache-spec cores --markdown > docs/cores.md
	@$(BIN)/mmcache-spec lemmas --coq Statements > spec/lemmas/Statements.v
	@$(BIN)/mmcache-spec lemmas --coq Check > spec/lemmas/Check.v
	@$(BIN)/python -m tests.tools.as_shown --counts

VLLM_BIN := $(VENV)/vllm/bin
ENGINE_RUN := $(VLLM_BIN)/mmcache-conformance run --quiet

# The torchvision that comes with it does not fit its torch, and vLLM cannot be imported beside it.
$(VENV)/vllm/.installed: pyproject.toml
	@$(PYTHON) -m venv $(VENV)/vllm
	@$(VLLM_BIN)/python -m pip --disable-pip-version-check install --quiet --editable '.[vllm]'
	@$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

# As released it fails; with the repairs it must not. docs/vllm-scheduler.md has the table.
conformance-vllm: $(VENV)/vllm/.installed
	@$(ENGINE_RUN) vllm-scheduler vllm-scheduler:v2 || true
	@$(ENGINE_RUN) vllm-scheduler:withdraw:payload:skip vllm-scheduler:v2:withdraw:skip

live: $(VENV)/.installed
	@$(BIN)/mmcache-conformance live --environments $(VENV)/live

clean:
	rm -rf $(VENV) build dist
