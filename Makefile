# Every target does its own set-up: the first run creates .venv, later ones find a stamp in it and start at once.
# A stamp is out of date when pyproject.toml or constraints.txt is newer.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN    := .venv/bin
DEMO   := .venv/.installed-demo
DEV    := .venv/.installed-dev
DOCS   := .venv/.installed-docs

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-lowest lint format bench docs clean
.NOTPARALLEL:

help:
	@echo 'make demo    compare models on a bundled sample, write mauc-report/index.html'
	@echo 'make test    lint, then all tests and doctests'
	@echo 'make test-lowest   tests of the core with the lowest versions allowed'
	@echo 'make lint    ruff, mypy, import contracts'
	@echo 'make format  rewrite the code as ruff wants it'
	@echo 'make bench   speed and memory against peers'
	@echo 'make docs    guide, gallery, theory and API as HTML'
	@echo 'make clean   remove caches and stamps; .venv stays'

comma := ,

define install
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@echo 'Installing $(1) into .venv (only when pyproject.toml or constraints.txt changed)'
	@$(BIN)/pip install -qq --constraint constraints.txt --editable '$(1)'
endef

$(DEMO): pyproject.toml constraints.txt
	$(call install,.[cli])
	@touch $@

# dev contains cli, so this install serves the demo as well.
$(DEV): pyproject.toml constraints.txt
	$(call install,.[dev])
	@touch $(DEMO) $@

$(DOCS): pyproject.toml constraints.txt
	$(call install,.[dev$(comma)docs])
	@touch $(DEMO) $(DEV) $@

demo: $(DEMO)
	@$(BIN)/mauc demo

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One thread of linear algebra per worker: more would fight over the cores.
test: export OMP_NUM_THREADS := 1
test: export OPENBLAS_NUM_THREADS := 1
test: export MPLBACKEND := Agg
test: lint
	$(BIN)/pytest -n 2

# The core alone, with the lowest versions of what it needs; tests that need an extra skip, and say which.
LOWEST := .venv-lowest/.installed
CORE   := tests/linear tests/metrics tests/theory $(wildcard tests/test_*.py)

$(LOWEST): pyproject.toml constraints-lowest.txt
	@test -x .venv-lowest/bin/pip || $(PYTHON) -m venv .venv-lowest
	@.venv-lowest/bin/pip install -qq --constraint constraints-lowest.txt --editable . pytest hypothesis
	@touch $@

test-lowest: export OMP_NUM_THREADS := 1
test-lowest: export OPENBLAS_NUM_THREADS := 1
test-lowest: $(LOWEST)
	.venv-lowest/bin/pytest -q $(CORE)

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV)
	$(BIN)/python -m benchmarks

docs: export OMP_NUM_THREADS := 1
docs: export OPENBLAS_NUM_THREADS := 1
docs: export MPLBACKEND := Agg
docs: $(DOCS)
	$(BIN)/sphinx-build -W --keep-going -j 1 -b html docs docs/_build/html
	@echo 'Open docs/_build/html/index.html'

clean:
	rm -f $(DEMO) $(DEV) $(DOCS) $(LOWEST)
	rm -rf docs/api/generated docs/api/backreferences mauc-report
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache benchmarks/results build dist docs/_build docs/auto_examples
	find . -path "./.venv*" -prune -o -name __pycache__ -prune -exec rm -rf {} +
