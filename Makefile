# Every target does its own set-up: the first run creates .venv, later ones find a stamp in it and start at once.
# A stamp is out of date when pyproject.toml or constraints.txt is newer.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN    := .venv/bin
DEMO   := .venv/.installed-demo
DEV    := .venv/.installed-dev
DOCS   := .venv/.installed-docs
# Two workers; the tests of a file go to one of them, so that a model or browser that they share starts once.
PYTEST := $(BIN)/pytest -n 2 --dist loadfile

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test quick lint format coverage fuzz kills bench docs screenshots package release-notes test-lowest test-newest nightly clean
.NOTPARALLEL:

help:
	@echo 'make demo    compare models on a bundled sample, write mauc-report/demo.html'
	@echo 'make test    lint, then tests and doctests, without those marked slow'
	@echo 'make quick   lint by ruff, then the tests of the core: while you work'
	@echo 'make nightly the slow tests, and the tests of the experiments'
	@echo 'make kills   kill commands at random moments, look at what they leave (KILLS=40)'
	@echo 'make lint    ruff, mypy, import contracts'
	@echo 'make format  rewrite the code as ruff wants it'
	@echo 'make fuzz    random hostile cases against the definitions; CASES=1000000 for the long run'
	@echo 'make bench   speed and memory against peers'
	@echo 'make docs    guide, gallery, theory and API as HTML'
	@echo 'make package wheel and sdist into dist/, installed and tested in an empty environment'
	@echo 'make clean   remove caches and stamps; .venv stays'
	@echo 'also: coverage, screenshots, test-lowest, test-newest (PYTHON=python3.13), release-notes (TAG=v0.1.0)'

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

# One thread of linear algebra per worker, for more would fight over the cores; and no windows.
TESTED := test quick nightly coverage fuzz kills test-lowest test-newest docs package
$(TESTED): export OMP_NUM_THREADS := 1
$(TESTED): export OPENBLAS_NUM_THREADS := 1
$(TESTED): export MPLBACKEND := Agg

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

test: lint
	$(PYTEST)

nightly: $(DEV)
	$(PYTEST) -m slow
	$(PYTEST) experiments

# What to run while working on the core: under a minute on two idle cores. No pages, no programs, no torch.
NOT_QUICK := docs examples experiments fuzz gallery kills outliers own_surrogates package readme
quick: $(DEV)
	$(BIN)/ruff check .
	$(PYTEST) -k 'not torch and not tensors' tests/kernels tests/linear tests/metrics $(filter-out $(NOT_QUICK:%=tests/test_%.py),$(wildcard tests/test_*.py))

# In the newest versions that PYTHON can have; torch as pinned, for its newest build is gigabytes of CUDA.
# Without torch (EXTRAS=test) the modules that import it skip. TESTS=tests/metrics runs a part.
test-newest:
	@test -x .venv-newest/bin/pip || $(PYTHON) -m venv .venv-newest
	@grep '^torch==' constraints.txt > .venv-newest/torch.txt
	.venv-newest/bin/pip install -qq --upgrade --constraint .venv-newest/torch.txt --editable '.[$(or $(EXTRAS),test,torch)]'
	.venv-newest/bin/pytest -n 2 --dist loadfile --doctest-ignore-import-errors $(TESTS)

coverage: export COVERAGE_FILE := $(CURDIR)/.coverage
coverage: $(DEV)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 --dist loadfile
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

CASES ?= 20000
fuzz: $(DEV)
	PYTHONPATH=tests $(BIN)/python -m fuzz --cases $(CASES)
	MAUC_HYPOTHESIS=explore $(BIN)/pytest -n 2 -m hypothesis

kills: $(DEV)
	$(BIN)/python tests/kills.py $(or $(KILLS),40) $(SEED)

# The core with the lowest versions of what it needs, and of pandas and matplotlib; tests of other extras skip.
LOWEST := .venv-lowest/.installed
# What leans on the libraries' own ways; formulas and kernels give the same in every version. TESTS=tests runs all.
CORE   := tests/kernels tests/linear/test_classifier.py tests/linear/test_estimator_checks.py tests/linear/test_solver.py \
          tests/metrics/test_display.py tests/metrics/test_scores.py tests/test_model_selection.py tests/test_package.py \
          tests/test_partition.py tests/test_plugin.py tests/test_validation.py tests/theory/test_bayes.py

$(LOWEST): pyproject.toml constraints-lowest.txt
	@test -x .venv-lowest/bin/pip || $(PYTHON) -m venv .venv-lowest
	@.venv-lowest/bin/pip install -qq --constraint constraints-lowest.txt --editable '.[plot]' pandas pytest hypothesis
	@touch $@

test-lowest: $(LOWEST)
	.venv-lowest/bin/pytest -q $(or $(TESTS),$(CORE))

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV)
	$(BIN)/python -m benchmarks

docs: $(DOCS)
	$(BIN)/sphinx-build -W --keep-going -j 1 -b html docs docs/_build/html
	@echo 'Open docs/_build/html/index.html'

# Pictures of the report, the terminal and the pages for docs/_static; needs Chromium.
screenshots: docs
	$(BIN)/python docs/readme_picture.py
	$(BIN)/python docs/screenshots.py

# The package as a user gets it: only what it needs, and the tests of the sdist, of which those of an extra skip.
package: $(DEV)
	rm -rf dist build/package
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv build/package/venv
	build/package/venv/bin/pip install -qq --constraint constraints.txt dist/*.whl pytest hypothesis
	tar -xzf dist/*.tar.gz -C build/package
	cd build/package/mauc-*/ && ../venv/bin/python -m pytest -q $(or $(TESTS),tests)
	! build/package/venv/bin/mauc --help 2> build/package/no-extra.txt
	grep -qx "mauc: .* is not installed: pip install 'mauc\[cli\]'" build/package/no-extra.txt
	@echo 'dist/ holds the wheel and the sdist'

# The section of the changelog whose heading names the version: `## [0.1.0] – 2026-12-01`, `## [Unreleased] – 0.1.0`.
VERSION = $(patsubst v%,%,$(TAG))
release-notes:
	@grep -qx 'version = "$(VERSION)"' pyproject.toml || { echo 'TAG must be v and the version in pyproject.toml, got "$(TAG)"'; exit 1; }
	@grep -qx 'version: $(VERSION)' CITATION.cff || { echo 'CITATION.cff is not of version $(VERSION)'; exit 1; }
	@mkdir -p dist
	@awk '/^## / { gsub(/[][]/, ""); on = index($$0 " ", " $(VERSION) "); next } on' CHANGELOG.md > dist/release-notes.md
	@grep '[^[:space:]]' dist/release-notes.md || { echo 'CHANGELOG.md has no section of version $(VERSION)'; exit 1; }

clean:
	rm -f $(DEMO) $(DEV) $(DOCS) $(LOWEST)
	rm -rf docs/api/generated docs/api/backreferences mauc-report
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache benchmarks/results build dist docs/_build docs/auto_examples
	find . -path "./.venv*" -prune -o -name __pycache__ -prune -exec rm -rf {} +
