PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# -qq: pip reports errors only.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
INPUTS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench docs clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-8s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.apps-stamp ## Take a tour on embedded data
	$(BIN)/python -m gengs_experiments.demo

test: lint ## Lint, check the types, run all tests
	$(BIN)/python -m pytest

lint: $(VENV)/.dev-stamp ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: | $(BIN)/python ## Benchmark the sampler
	$(PIP) -e '.[bench]'
	$(BIN)/python -m benchmarks.sampler

docs: $(VENV)/.dev-stamp ## Build the site, warnings as errors
	$(BIN)/python -m sphinx -q -W --keep-going -c docs . build/docs
	@echo "open build/docs/index.html"

clean: ## Remove the environment, caches and build products
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gengs needs Python 3.11 or newer; try: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The interpreter is order-only: its timestamp is that of the system's Python.
$(VENV)/.apps-stamp: $(INPUTS) | $(BIN)/python
	$(PIP) -e '.[apps]'
	@touch $@

$(VENV)/.dev-stamp: $(INPUTS) | $(BIN)/python
	$(PIP) -e '.[dev]'
	@touch $@
