# Every target does its own set-up: the first run creates .venv, later ones find a stamp in it and start at once.
# A stamp is out of date when pyproject.toml or constraints.txt is newer.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN    := .venv/bin
DEMO   := .venv/.installed-demo
DEV    := .venv/.installed-dev

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench clean
.NOTPARALLEL:

help:
	@echo 'make demo    evaluate a classifier on a bundled sample'
	@echo 'make test    lint, then all tests and doctests'
	@echo 'make lint    ruff, mypy, import contracts'
	@echo 'make format  rewrite the code as ruff wants it'
	@echo 'make bench   speed and memory against peers'
	@echo 'make clean   remove caches and stamps; .venv stays'

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

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV)
	$(BIN)/python -m benchmarks

clean:
	rm -f $(DEMO) $(DEV)
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache benchmarks/results build dist docs/_build docs/auto_examples
	find . -path ./.venv -prune -o -name __pycache__ -prune -exec rm -rf {} +
