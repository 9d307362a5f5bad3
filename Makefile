# kassay: every target sets up what it needs. `make demo` and `make test` are the two to know.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
LINKS := .links
DEMO := out/demo
SITE := out/site
CASES ?= 1200
SOAK ?= 5000

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 26

# ---- Environment ------------------------------------------------------------

# pyspark comes as source: built in the user's cache it would leave a gigabyte there, and where the
# registry tells no unchanged file from a new one another with every clone.
ifndef UV_CACHE_DIR
export UV_CACHE_DIR := $(CURDIR)/$(VENV)/.packages
FORGET := rm -rf "$(UV_CACHE_DIR)"
else
FORGET := :
endif

$(VENV)/.ready: requirements.lock pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"kassay needs Python 3.11 or newer, found {v.major}.{v.minor}; set PYTHON=python3.x")'
	@echo "setting up $(VENV)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@$(FORGET)
	@touch $@

$(VENV)/.bench: $(VENV)/.ready requirements-bench.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-bench.lock
	@$(FORGET)
	@touch $@

$(VENV)/.docs: $(VENV)/.ready requirements-docs.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-docs.lock
	@$(FORGET)
	@touch $@

# The installed package as one folder, for tools that read files instead of importing them.
$(LINKS): $(VENV)/.ready
	@mkdir -p $(LINKS)/kassay
	@ln -sfn $(addprefix ../../,kassay/__init__.py kassay/__main__.py kassay/py.typed reference solver experiments) $(LINKS)/kassay/
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## Virtual environment with everything pinned, a Java runtime included

.PHONY: lock
lock: $(VENV)/.ready ## Pin the dependencies anew, as plain name==version lines
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra bench -c requirements.lock pyproject.toml | grep -vxFf requirements.lock > requirements-bench.lock
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra docs -c requirements.lock pyproject.toml | grep -vxFf requirements.lock > requirements-docs.lock

# ---- Use --------------------------------------------------------------------

.PHONY: demo
demo: setup ## Captured groups and 1,200 seeded ones through Spark to out/demo/report.html
	@mkdir -p $(DEMO)
	$(BIN)/kassay import examples/captures --subscriptions examples/captures/subscriptions.json --skip-empty -o $(DEMO)/groups.jsonl
	$(BIN)/kassay study --groups $(DEMO)/groups.jsonl --cases $(CASES) --out $(DEMO)
	$(BIN)/kassay report $(DEMO) --html $(DEMO)/report.html --markdown $(DEMO)/report.md
	@echo "open $(DEMO)/report.html"

.PHONY: site
site: $(VENV)/.docs ## The documentation as a site in out/site, with notebooks and API reference
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --conf-dir docs . $(SITE)
	@echo "open $(SITE)/docs/index.html"

# ---- Checks -----------------------------------------------------------------

.PHONY: test
test: setup ## Everything that needs neither Maven nor a broker
	$(BIN)/python -m pytest

.PHONY: conformance
conformance: setup ## The ports against the real Kafka classes and a real broker (needs a JDK 17+ and Maven)
	SOAK=$(SOAK) $(BIN)/python -m pytest tests/conformance -m "kafka and not coordinator"

.PHONY: conformance-coordinator
conformance-coordinator: setup ## The simulated coordinator against a real broker (needs a JDK 17+ and Maven)
	$(BIN)/python -m pytest tests/conformance -m coordinator

.PHONY: survival
survival: setup ## Studies whose workers, or drivers (KILLS=2 times), are killed; studies on a cluster
	$(BIN)/python -m pytest tests/experiments/spark -m survival

.PHONY: check
check: setup lint types architecture test ## Lint, types, architecture and tests

.PHONY: lint
lint: setup ## Ruff, format included
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: types
types: $(LINKS) ## mypy --strict over the three packages
	MYPYPATH=$(LINKS) $(BIN)/mypy

.PHONY: architecture
architecture: $(LINKS) ## The layers, by import-linter
	cd $(LINKS) && ../$(BIN)/lint-imports --config ../pyproject.toml --no-cache

.PHONY: coverage
coverage: setup ## Branch coverage of the tests
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

# ---- Evidence ---------------------------------------------------------------

.PHONY: bench
bench: $(VENV)/.bench ## Times as ratios within one run: kassay, Java's own classes, other Python ports
	$(BIN)/python -m benchmarks

.PHONY: exhaustive
exhaustive: setup ## 600,000 small groups against brute force
	$(BIN)/python -m tests.exhaustive

.PHONY: captures
captures: setup ## Make examples/captures again on a real broker (needs Maven)
	$(BIN)/python -m tests.conformance.captures

.PHONY: clean
clean: ## Remove everything that the other targets made
	rm -rf $(VENV) $(LINKS) *.egg-info build .cache out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
