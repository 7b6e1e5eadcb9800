# Needs only Python 3.11+, make and git. Every target makes the virtual environment when it is absent.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.installed-run
DEV := $(VENV)/.installed-dev
DEEP := $(VENV)/.installed-deep
MUTATION := $(VENV)/.installed-mutation
BENCH := $(VENV)/.installed-bench
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
JOBS ?= 2
REDOCLY_VERSION := 2.77.0
REDOCLY := build/redocly-$(REDOCLY_VERSION)/node_modules/@redocly/cli/bin/cli.js

.DEFAULT_GOAL := help
.PHONY: help serve demo test test-all bench bench-quick mutation lint fix docs lock clean

help:  ## shows the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

serve: $(RUN)  ## starts Charon with an embedded Lethe on loopback; flags go into ARGS="..."
	$(BIN)/charon serve $(ARGS)

demo: $(RUN)  ## plays the sixteen steps over real processes in a disposable directory
	$(BIN)/charon demo $(ARGS)

test: $(DEV)  ## the fast suite, under ten minutes with the first installation
	$(BIN)/python -m pytest -m "not deep" -n $(JOBS) $(ARGS)

test-all: test $(DEEP) $(REDOCLY)  ## the fast suite, then the deep one: a Node of its own for MCP clients and redocly, pinned clients from their registries, ten times the examples
	REDOCLY=$(CURDIR)/$(REDOCLY) NODE=$(CURDIR)/$(BIN)/node $(BIN)/python -m pytest -m deep -n $(JOBS) $(ARGS)
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest tests/property --timeout 3600 -n $(JOBS) $(ARGS)

mutation: $(MUTATION)  ## mutants of the domain against its tests, hours of them; MODULES="proof trie" takes some (docs/MUTATION.md)
	for module in $(or $(MODULES),"*"); do \
		HYPOTHESIS_PROFILE=mutation nice -n 19 $(BIN)/mutmut run --max-children $(JOBS) "memory_git.domain.$$module.*" || exit 1; \
	done

bench: $(BENCH)  ## all benchmarks beside their peers, up to a million memories: bench/results.json; NAMEs go into ARGS="..."
	$(BIN)/python -m bench $(ARGS)

bench-quick: $(BENCH)  ## the same up to 100k memories, within five minutes: bench/results-quick.json
	$(BIN)/python -m bench --quick $(ARGS)

lint: $(DEV)  ## ruff, mypy strict, the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(DEV)  ## what ruff can mend by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV)  ## writes docs/CLI.md anew and checks links, commands, settings and error codes
	$(BIN)/python -m memory_git.cli.reference > docs/CLI.md.new
	mv docs/CLI.md.new docs/CLI.md
	$(BIN)/python -m pytest tests/docs

lock:  ## writes the lock files anew from pyproject.toml (uv in a throw-away environment)
	tools/lock

clean:  ## removes the virtual environment and every cache; memory is elsewhere and stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN): pyproject.toml requirements.lock | $(BIN)/python
	$(PIP) install --require-hashes -r requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUN) requirements-dev.lock
	$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

$(MUTATION): $(DEV) requirements-mutation.lock
	$(PIP) install --require-hashes -r requirements-mutation.lock
	@touch $@

$(DEEP): $(DEV) requirements-deep.lock
	$(PIP) install --require-hashes -r requirements-deep.lock
	@touch $@

$(REDOCLY): | $(DEEP)
	mkdir -p build/redocly-$(REDOCLY_VERSION)
	cd build/redocly-$(REDOCLY_VERSION) && PATH="$(CURDIR)/$(BIN):$$PATH" npm install --silent --no-audit --no-fund --no-package-lock --prefix . @redocly/cli@$(REDOCLY_VERSION)
	@touch $@

$(BENCH): $(DEV) requirements-bench.lock
	$(PIP) install --require-hashes -r requirements-bench.lock \
		|| echo "a peer can't be installed here: its figures will say so" >&2
	@touch $@
