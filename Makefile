# `make` alone prints the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup setup-spark images pipeline demo compare run test test-fast soak test-pythons compiled bench dist site playground lint format clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.broker-sim-installed
SPARK_STAMP := $(VENV)/.broker-sim-spark-installed
NATIVE := $(CURDIR)/build/native
NATIVE_STAMP := $(NATIVE)/.built
FAST := "not (soak or real_kafka or clients or threads or spark or install)"
# What `make compiled` runs, and with which marks.
NATIVE_TESTS := tests/purgatory tests/properties/test_purgatory_properties.py tests/properties/test_timing_wheel_properties.py
MARKS := $(FAST)
# Tests run on all processors, whole files on each; in the order of LONGEST in tests/conftest.py.
PYTEST := -m pytest -n auto --no-loadscope-reorder
JAVA := $(or $(JAVA_HOME),$(shell command -v java))
# Types differ between Pythons.
NEWEST_PYTHON := 3.14
# The Pythons of test-pythons: all, or the newest one of this machine.
PYTHONS ?= all
# Compiled modules are kept, whatever the environment says: tests start hundreds of programs.
export PYTHONDONTWRITEBYTECODE :=
# Further arguments of a command: make test ARGS="-k purgatory"
ARGS ?=

help: ## Print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) \
	| while IFS='|' read -r target text; do printf '  make %-13s %s\n' "$$target" "$$text"; done

setup: ## Make .venv with both packages and all tools; nothing to do when it exists
	@$(BIN)/python -c '' 2> /dev/null || rm -f $(STAMP)
	@$(MAKE) -s --no-print-directory $(STAMP)

$(STAMP): pyproject.toml integration/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Python 3.11 or newer is needed: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
	    echo "python3-venv is missing: apt-get install -y --no-install-recommends python3-venv" >&2; exit 1; }
	@$(BIN)/python -c '' 2> /dev/null || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[dev]' -e ./integration
	@touch $@

setup-spark: setup ## Add Spark to .venv (a download of 500 MB), for the pipeline and its tests
	@$(MAKE) -s --no-print-directory $(SPARK_STAMP)

$(SPARK_STAMP): $(STAMP)
	@echo "installing Spark into $(VENV): 500 MB are downloaded, once"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[dev]' -e './integration[spark]'
	@touch $@

demo: setup ## Compare with a real Kafka what shows the point, in a minute, into out/demo
	$(BIN)/broker-sim-compare --demo --reference auto --out out/demo $(ARGS)

compare: setup ## Compare all scenarios, in some minutes: make compare ARGS="--reference jvm"
	$(BIN)/broker-sim-compare --reference auto --out out/compare $(ARGS)

pipeline: setup-spark ## Trace a cluster under load, run every job on Spark, leave out/pipeline/report.html
	$(BIN)/python -m broker_sim_integration.pipeline.demo $(ARGS)

run: setup ## Run a simulated cluster until ctrl-C: make run ARGS="--brokers 3"
	$(BIN)/broker-sim run $(ARGS)

# Spark's tests need Java; without it they are skipped, and so is the download.
test: setup $(if $(JAVA),setup-spark) ## Test every claim once, in ten minutes; what is missing here is skipped, with the remedy
	$(BIN)/python $(PYTEST) -m "not soak" $(ARGS)

test-fast: setup ## Test what needs neither other programs nor real time, in two minutes
	$(BIN)/python $(PYTEST) -m $(FAST) $(ARGS)

soak: setup $(if $(JAVA),setup-spark) ## Test everything, for hours: make soak ARGS="clients mutants", or --list
	$(BIN)/python -m tools.soak $(ARGS)

test-pythons: setup ## Run the fast tests on every other Python from 3.11 on that is here
	@$(BIN)/python -m tools.pythons $(PYTHONS) | while read -r version python; do \
	    test "$$python" != "$$(realpath -s $(BIN)/python)" || continue; \
	    echo "Python $$version"; \
	    "$$python" -m venv $(VENV)-$$version; \
	    $(VENV)-$$version/bin/python -m pip install --quiet --disable-pip-version-check \
	        -c constraints.txt -e '.[dev]' -e ./integration; \
	    $(VENV)-$$version/bin/python $(PYTEST) -m $(FAST) $(ARGS) < /dev/null; \
	done

$(NATIVE_STAMP): $(STAMP) hatch_build.py $(wildcard purgatory/broker_sim_purgatory/*.py)
	@echo "compiling the purgatory into build/native: half a minute"
	@rm -rf $(NATIVE) && mkdir -p $(NATIVE) && $(BIN)/python hatch_build.py $(NATIVE)
	@touch $@

compiled: setup $(NATIVE_STAMP) ## Compile the purgatory, run its tests on the native modules, in a minute
	PYTHONPATH=$(NATIVE) $(BIN)/python $(PYTEST) -m $(MARKS) $(NATIVE_TESTS) $(ARGS)

images: setup ## Make the image of a real Kafka that the comparison starts, if Docker has it not yet
	$(BIN)/python -m broker_sim_integration.reference.image

bench: setup ## Measure against the peers: make bench ARGS="client --kafka"
	$(BIN)/python tests/bench/run.py $(ARGS)

dist: setup ## Build the distributions of a release into dist and check their metadata; refuses if the address is empty
	@grep -q '^repository = "http' pyproject.toml || { \
	    echo "fill in the repository's address in pyproject.toml: [tool.hatch.metadata.hooks.custom] repository" >&2; exit 1; }
	rm -rf dist && $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build twine
	for directory in . integration purgatory; do $(BIN)/python -m build --outdir dist $$directory; done
	$(BIN)/python -m twine check --strict dist/*

site: setup ## Make the site of the documentation in out/site; a warning is an error
	@$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --jobs auto docs out/site

playground: setup ## Make the site that runs it all in a browser tab, in out/playground; ARGS=--serve shows it on loopback
	@$(BIN)/python -m tools.playground $(ARGS)

lint: setup site ## Check style, types, layers, and that the site can be made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --python-version $(NEWEST_PYTHON)
	$(BIN)/lint-imports

format: setup ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove what the targets made, except .venv
	rm -rf out build dist $(VENV)-* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
