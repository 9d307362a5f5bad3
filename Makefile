# Each target sets up its requirements in .venv. Start with `make demo` or `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
DEMO := out/demo
SITE := out/site
MACHINES := out/identical-machines
MACHINES_SOURCE ?= https://github.com/JayWestfield/pcmax
SAMPLE ?= 20
CASES ?= 600
SOAK ?= 5000
# Client libraries of `make implementations`; a missing runtime excludes its libraries.
LIBRARIES ?= available
GROUPS ?= 10000000
WORKERS ?= 2
# Tests of one group, such as all tests with Spark, run in one process; see tests/conftest.py.
PARALLEL := --numprocesses $(WORKERS) --no-loadscope-reorder
# Event streams of `make study`.
STREAMS ?= 100
CONFIGURATIONS := experiments/study/configurations

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 26

# ---- Environment ------------------------------------------------------------

# pyspark is a source package. Its build fills a package cache with about 1 GB, so the cache is
# temporary unless UV_CACHE_DIR is set.
ifndef UV_CACHE_DIR
export UV_CACHE_DIR := $(CURDIR)/$(VENV)/.packages
CLEAR_CACHE := rm -rf "$(UV_CACHE_DIR)"
else
CLEAR_CACHE := :
endif

# Without compression of the wheel, which is temporary, the build of pyspark takes half of the time.
NOT_COMPRESSED := --config-settings-package=pyspark:--build-option=--compression=stored

# Tests start many processes of Python. Without cached byte code, each one compiles all imports.
unexport PYTHONDONTWRITEBYTECODE

# uv accepts the certificates that the system and pip accept, as a proxy may need.
export UV_SYSTEM_CERTS := true
ifdef PIP_CERT
export SSL_CERT_FILE ?= $(PIP_CERT)
endif

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"kassay needs Python 3.11 or newer, found {v.major}.{v.minor}; set PYTHON=python3.x")'
	@echo "setting up $(VENV)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python $(NOT_COMPRESSED) -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@$(CLEAR_CACHE)
	@touch $@

EXTRAS := $(addprefix $(VENV)/., bench docs services)
$(EXTRAS): $(VENV)/.%: $(VENV)/.ready requirements-%.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-$*.lock
	@$(CLEAR_CACHE)
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## Create the virtual environment with pinned packages and a Java runtime

.PHONY: lock
lock: $(VENV)/.ready ## Update the lock files (name==version lines)
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra bench -c requirements.lock pyproject.toml | grep -vxFf requirements.lock > requirements-bench.lock
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra docs -c requirements.lock pyproject.toml | grep -vxFf requirements.lock > requirements-docs.lock
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra services -c requirements.lock pyproject.toml | grep -vxFf requirements.lock > requirements-services.lock

# ---- Use --------------------------------------------------------------------

.PHONY: demo
demo: setup ## Study captured groups and 600 seeded groups; write out/demo/report.html
	@mkdir -p $(DEMO)
	$(BIN)/kassay import examples/captures --subscriptions examples/captures/subscriptions.json --skip-empty -o $(DEMO)/groups.jsonl
	$(BIN)/kassay study --groups $(DEMO)/groups.jsonl --cases $(CASES) --output $(DEMO)
	$(BIN)/kassay report $(DEMO) --output $(DEMO)/report.html
	@echo "open $(DEMO)/report.html"

.PHONY: study
study: setup ## Run small versions of all parts of the published study; write reports in out
	$(BIN)/kassay study $(CONFIGURATIONS)/quick.yaml --output out/quick
	$(BIN)/kassay study --family trajectories --cases $(STREAMS) --output out/streams
	for part in quick streams; do $(BIN)/kassay report out/$$part; done

.PHONY: study-published
study-published: setup ## Run all parts of the published study (3 hours), and write its pages; pack its rows
	$(BIN)/kassay study $(CONFIGURATIONS)/trajectories.yaml --output out/trajectories
	$(BIN)/kassay study $(CONFIGURATIONS)/published.yaml --output out/study
	$(BIN)/kassay study $(CONFIGURATIONS)/racks.yaml --output out/racks
	for part in trajectories study racks; do $(BIN)/kassay report out/$$part; done
	$(BIN)/python -m tools.insert_published_numbers out/trajectories docs/results/event-streams.md
	$(BIN)/python -m tools.insert_published_numbers out/study docs/results/single-groups.md
	$(BIN)/python -m tools.insert_published_numbers out/racks docs/results/racks.md
	$(BIN)/python -m benchmarks.published_streams out/hindsight.jsonl --study out/trajectories --seeds 300 --max-size 500 --max-balance 0
	$(BIN)/python -m benchmarks.published_streams out/hindsight.jsonl --page docs/results/moves-over-time.md
	$(BIN)/python -m tools.insert_findings
	tar -czf out/published-rows.tar.gz -C out trajectories study racks

.PHONY: finite-families
finite-families: setup ## Compute the finite families again, and compare with the committed results
	$(BIN)/kassay study $(CONFIGURATIONS)/finite.yaml --output out/finite
	$(BIN)/kassay report out/finite --output out/finite/report.html --only results-by-family
	diff out/finite/report-data/results-by-family.csv experiments/study/finite_families.csv
	$(BIN)/python -m pytest tests/experiments/study/test_case_digests.py -m "long or not long"

.PHONY: study-implementations
study-implementations: setup ## Run the studies of installed libraries (hours), and write docs/results/implementations.md
	for part in implementations implementations-slow; do $(BIN)/kassay study $(CONFIGURATIONS)/$$part.yaml --output out/$$part; $(BIN)/python -m tools.insert_published_numbers out/$$part docs/results/implementations.md; done

.PHONY: study-kinds
study-kinds: setup ## Run the studies of share groups, Streams and Connect, and write docs/results/kinds.md
	for part in share streams connect; do \
	  $(BIN)/kassay study $(CONFIGURATIONS)/$$part.yaml --output out/$$part && \
	  $(BIN)/kassay report out/$$part && \
	  $(BIN)/python -m tools.insert_published_numbers out/$$part docs/results/kinds.md || exit 1; \
	done

.PHONY: findings
findings: setup ## Insert the numbers of docs/results into README.md and docs/findings.md, and draw the figures
	$(BIN)/python -m tools.insert_findings

.PHONY: commands
commands: setup ## Write docs/commands.md from the help of the commands
	$(BIN)/python -m tools.write_command_reference

.PHONY: site
site: $(VENV)/.docs ## Build the documentation site in out/site
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --conf-dir docs . $(SITE)
	@echo "open $(SITE)/docs/index.html"

# ---- Checks -----------------------------------------------------------------

.PHONY: test
test: setup ## Run the tests of every kind in at most four minutes, on WORKERS=2 processes
	$(BIN)/python -m pytest $(PARALLEL)

.PHONY: test-all
test-all: setup ## Run all tests that need neither Maven, a broker nor client libraries
	HYPOTHESIS_PROFILE=ci HOST_GROUPS=400 KASSAY_FUZZ=4000 EDITED_DOCUMENTS=3000 \
		$(BIN)/python -m pytest $(PARALLEL) -m "not kafka and not libraries and not services and not survival"

.PHONY: conformance
conformance: setup ## Compare the ports with Kafka's classes and a broker (needs JDK 17+ and Maven)
	SOAK=$(SOAK) $(BIN)/python -m pytest tests/conformance -m "kafka and not coordinator and not clients and not services"

.PHONY: conformance-clients
conformance-clients: setup ## Compare drivers with consumers of installed client libraries on a broker (after `make implementations`)
	$(BIN)/python -m pytest tests/conformance -m clients -rP --show-capture=stdout

.PHONY: conformance-coordinator
conformance-coordinator: setup ## Compare the simulated coordinator with a broker (needs JDK 17+ and Maven)
	$(BIN)/python -m pytest tests/conformance -m coordinator

.PHONY: implementations
implementations: setup ## Install one version of each client library, and test its assignors
	$(BIN)/kassay libraries install $(LIBRARIES)
	$(BIN)/python -m pytest tests/clients tests/experiments/implementations tests/experiments/simulation -m libraries

.PHONY: survival
survival: setup ## Test studies with KILLS=2 killed drivers, lost workers, full disks, and a cluster
	$(BIN)/python -m pytest tests/experiments/spark -m survival

.PHONY: services
services: $(VENV)/.services ## Test Spark with an S3 server, a cluster and Spark Connect (needs JDK 17+ and Maven)
	$(BIN)/python -m pytest tests/experiments/spark -m services

.PHONY: check
check: setup lint types architecture test ## Run lint, types, architecture and test

.PHONY: lint
lint: setup ## Check style and format with ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: types
types: setup ## Check types with mypy --strict
	$(BIN)/mypy

.PHONY: architecture
architecture: setup ## Check the import contracts with import-linter
	$(BIN)/lint-imports --no-cache

.PHONY: coverage
coverage: setup ## Measure the branch coverage of the tests
	$(BIN)/coverage run -m pytest -m "not kafka and not libraries and not services and not survival"
	$(BIN)/coverage report

# ---- Measurements ---------------------------------------------------------------

.PHONY: bench
bench: $(VENV)/.bench ## Run the benchmarks: kassay, Kafka's Java classes, other Python clients
	$(BIN)/python -m benchmarks

.PHONY: scale
scale: setup ## Measure time and memory of a study with GROUPS=10000000 synthetic groups
	$(BIN)/python -m benchmarks.study_scale $(GROUPS)

.PHONY: identical-machines
identical-machines: setup ## Fetch public instances of identical machines, and measure a sample
	@test -d $(MACHINES) || git clone --quiet --depth 1 $(MACHINES_SOURCE) $(MACHINES) || echo "cannot fetch $(MACHINES_SOURCE)" >&2
	$(BIN)/python -m benchmarks.identical_machines $(MACHINES) --sample $(SAMPLE)

.PHONY: answers
answers: setup ## Record the answers of the solver on 510 fixed groups, to compare two commits
	@mkdir -p out
	$(BIN)/python -m benchmarks.answers record out/answers.jsonl

.PHONY: ablation
ablation: setup ## Measure the solver without one method, search or bound after the other (10 minutes)
	@mkdir -p out
	$(BIN)/python -m benchmarks.ablation | tee out/ablation.md

.PHONY: exhaustive
exhaustive: setup ## Compare the solver with brute force on 700,000 small groups
	$(BIN)/python -m tests.exhaustive
	RANDOM_APPLICATIONS=20000 $(BIN)/python -m pytest tests/solver/test_stateful_tasks.py

.PHONY: adversary
adversary: setup ## Check values and bounds of 100,000 small groups with weights up to 2**62
	$(BIN)/python -m tests.adversary

.PHONY: recompute
recompute: setup ## Compute the rows of 2,000 groups of a study again, by an integer program
	RECOMPUTED_GROUPS=2000 $(BIN)/python -m pytest tests/experiments/study/test_recomputation.py

.PHONY: proofs
proofs: setup ## Check the statements of docs/proofs.md on 330,000 small groups
	LARGE_PROOFS=1 $(BIN)/python -m pytest tests/reference/assignors/test_proofs.py \
		tests/solver/trajectory/test_trajectory_proofs.py

.PHONY: forgeries
forgeries: setup ## Check 100,000 edited solution documents against brute force
	EDITED_DOCUMENTS=100000 $(BIN)/python -m pytest tests/forgeries

.PHONY: few-moves-bounds
few-moves-bounds: setup ## Check all proven bounds of benchmarks/few_moves (minutes)
	$(BIN)/python -m pytest tests/test_few_moves_benchmark.py -m "long or not long"

.PHONY: captures
captures: setup ## Record examples/captures and examples/lagging-group again (needs JDK 17+ and Maven)
	$(BIN)/python -m tests.conformance.captures
	$(BIN)/python -m tests.conformance.lagging_group

.PHONY: client-captures
client-captures: setup ## Record groups of eight client libraries again (needs JDK 17+, Maven, Go and Node.js)
	$(BIN)/python -m tests.conformance.client_captures

.PHONY: clean
clean: ## Remove the files created by the other targets
	rm -rf $(VENV) *.egg-info build .cache out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
