# Kalarena's front door.  Everything is installed into a virtual environment beside this file.
#   make demo    play a small tournament of the sample bots
#   make cluster install what playing on several machines needs (docs/cluster.md)
#   make test    install what the tests need and run those that a person runs before each commit
#   make test-all  run all tests, tier by tier (docs/contributing.md): test, test-slow, test-load, test-postgresql
#   make test-vm  test in an emulated machine (tens of minutes); a part of test-all with KALARENA_REQUIRE_VM=1
#   make test-image  test the container image with rootless Podman (4 to 12 minutes); not a part of test-all
#   make test-lowest  test with the lowest versions of all dependencies (two minutes); not a part of test-all
#   make test-newest  test with the newest versions of all dependencies, as of today; not a part of test-all
#   make lint    formatting, style, types
#   make docs    build the documentation into build/docs
#   make dist    build the packages, an sdist and a wheel, into dist
#   make bench   compare the referee with one in C, in the same run; time the start, a large table, a large report, the strong players' searches
#   make fair-clock  compare what the fair clock charges with the CPU time that bots used, on a busy machine (takes an hour)
#   make overload  play 200 games beside 10 busy processes, and count those that the clock decided wrongly (an hour)
#   make ladder  measure how far apart the levels of the reference ladder are (takes ten minutes)
#   make solve   solve the published Kalah boards, at most a minute each
#   make load    load a server as 200 students do before a deadline, for five minutes, and judge it
#   make challenges   the time from the request of a challenge to its result, on a server without other work
#   make corpus  play 400 confined games between bots that behave as students' bots do, and count faults
#   make soak    play thousands of games with bots that misbehave, and count what is left behind
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO_OUT := results/demo
SOURCES := protocol referee sample_bots tournaments
# Each start of a bot, of a worker and of a command would compile what it imports anew: a fifth of its time.
unexport PYTHONDONTWRITEBYTECODE
# Processes of tests; ``auto`` is one more than there are cores, two more in the slow tier (tests/conftest.py).
WORKERS ?= auto
COMPILE := $(BIN)/python -m compileall -q $(SOURCES)

.PHONY: help demo install cluster test test-slow test-load test-postgresql test-lowest test-newest test-vm test-image test-all lint format docs dist bench fair-clock overload ladder solve load challenges corpus soak clean

help:
	@sed -n 's/^#   //p' Makefile

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Kalarena needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "no virtual environment could be made; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/installed: $(BIN)/python pyproject.toml constraints.txt referee/version.py
	@echo "installing Kalarena into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e '.[strong,xlsx]'
	@$(COMPILE)
	@touch $@

$(VENV)/installed-dev: $(BIN)/python pyproject.toml constraints.txt referee/version.py
	@echo "installing Kalarena and what its tests need into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e '.[test,lint]'
	@$(COMPILE)
	@# Compiles the tests, and the strong player's kernels, once for all processes of tests.
	@$(PYTEST) --collect-only -qq >/dev/null || true
	@$(BIN)/python -c 'from sample_bots.strong import kernels; kernels.prepare()' || true
	@touch $@ $(VENV)/installed

install: $(VENV)/installed

cluster: $(VENV)/installed
	@$(PIP) install -c constraints.txt -e '.[strong,xlsx,cluster]'

demo: $(VENV)/installed
	@rm -rf $(DEMO_OUT)
	@$(BIN)/kalarena tournament run tournaments/examples/demo.toml --out $(DEMO_OUT)

PYTEST := $(BIN)/python -m pytest
PARALLEL := -n $(WORKERS) --dist worksteal

test: $(VENV)/installed-dev
	$(PYTEST) $(PARALLEL)

# These tests wait for child processes longer than the quick ones do.
test-slow: export KALARENA_EXTRA_WORKERS ?= 2

test-slow: $(VENV)/installed-dev
	$(PYTEST) $(PARALLEL) -m "slow or attack or kill or fuzz or toolchain or browser or cluster"

test-load: $(VENV)/installed-dev
	$(PYTEST) -m load

test-postgresql: $(VENV)/installed-dev
	KALARENA_TEST_DATABASE=postgresql KALARENA_REQUIRE_POSTGRESQL=1 $(PYTEST) $(PARALLEL) -m "not (load or vm or image)"

# A machine is emulated on all cores: one test at a time.  See docs/contributing.md.
test-vm: $(VENV)/installed-dev
	$(PYTEST) -m vm

# As an ordinary user, or as root with KALARENA_IMAGE_USER: see docs/contributing.md.
test-image: $(VENV)/installed-dev
	$(PYTEST) -m image

# The parts that call other packages most: tables, ratings, records, databases, reports, pages.
LOWEST_TESTS := tests/analysis tests/config tests/course tests/database tests/engines tests/judge tests/reporting \
	tests/bots/test_manifest.py tests/cli/test_tournament_run.py tests/server/test_metrics.py \
	tests/web/test_api.py tests/web/test_pages.py tests/web/test_signing_in.py

.venv-lowest/installed: pyproject.toml constraints-lowest.txt
	@$(PYTHON) -m venv .venv-lowest
	@.venv-lowest/bin/python -m pip --disable-pip-version-check --quiet install -c constraints-lowest.txt -e '.[test]'
	@touch $@

test-lowest: .venv-lowest/installed
	.venv-lowest/bin/python -m pytest $(PARALLEL) $(LOWEST_TESTS)

# Not a part of test-all: a new release of a dependency can make these tests fail without a change here.
test-newest:
	@$(PYTHON) -m venv .venv-newest
	@.venv-newest/bin/python -m pip --disable-pip-version-check --quiet install \
		--upgrade --upgrade-strategy eager -e '.[test]'
	.venv-newest/bin/python -m pytest $(PARALLEL) $(LOWEST_TESTS)

# One after the other, also under `make -j`; the first tier that fails is the last that runs.
test-all: test
	$(MAKE) test-slow
	$(MAKE) test-load
	$(MAKE) test-postgresql
	$(if $(KALARENA_REQUIRE_VM),$(MAKE) test-vm)

# flake8 is there for what Trio's tasks may do wrong, and takes long: it reads the files that have such.
lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/flake8 $$(grep -rlEw --include='*.py' 'async|await|trio' $(SOURCES) tests benchmarks)
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/mypy

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/installed-docs: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing Kalarena and the generator of its documentation into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

# The variable switches off Material's advertisement of its successor.
docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file .mkdocs.yml
	@echo "the first page is build/docs/index.html; for its search: $(BIN)/mkdocs serve -f .mkdocs.yml"

# The wheel is built from the sdist, so that both are complete.
dist: $(VENV)/installed-dev
	@rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

bench: $(VENV)/installed
	$(BIN)/python benchmarks/bench_referee.py
	$(BIN)/python benchmarks/start_up.py
	$(BIN)/python benchmarks/bench_table.py
	$(BIN)/python benchmarks/bench_report.py
	$(BIN)/python -m benchmarks.bench_kalah_search
	$(BIN)/python -m benchmarks.bench_kalamala_search

fair-clock: $(VENV)/installed
	$(BIN)/python -m benchmarks.fair_clock

overload: $(VENV)/installed
	$(BIN)/python -m benchmarks.fair_clock.overload

ladder: $(VENV)/installed
	$(BIN)/python -m benchmarks.ladder

solve: $(VENV)/installed
	$(BIN)/python -m benchmarks.bench_solver

load: $(VENV)/installed
	$(BIN)/python -m benchmarks.load

challenges: $(VENV)/installed
	$(BIN)/python -m benchmarks.challenges

corpus: $(VENV)/installed-dev
	$(BIN)/python -m tests.corpus

soak: $(VENV)/installed-dev
	$(BIN)/python -m tests.soak

clean:
	rm -rf $(VENV) results build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
