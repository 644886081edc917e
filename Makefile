# timetrial: `make demo` and `make test` are all the set-up there is. `make help` lists the rest.
PYTHON ?= python3
TORCH ?= 1
FRAMEWORKS ?= 1
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CXX ?= g++
JOBS ?= $(shell nproc)
NATIVE_SOURCES := $(shell find cpp cmake -type f) CMakeLists.txt pyproject.toml
PYTHON_FILES := python tests benchmarks tools
TORCH_PIN = $(shell sed -n 's/.*"torch==\([0-9.]*\)".*/\1/p;T;q' python/timetrial/frameworks/pytorch/environment.toml)
APT_LINE := sudo apt install g++ make python3-dev python3-venv

export CXX
export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)

.PHONY: help demo test test-frameworks lint ctest pytest frameworks notebooks format stubs self dist clean machine
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/.installed $(VENV)/.demo  ## train LeNet-5 with every stack that is ready, in one table (TORCH=0: without torch)
	$(BIN)/timetrial run first-look

test: lint ctest pytest notebooks  ## everything that must be green (FRAMEWORKS=0: without installing frameworks)

machine:
	@missing=""; \
	version=$$($(CXX) -dumpversion 2>/dev/null | cut -d. -f1); \
	[ "$${version:-0}" -ge 12 ] 2>/dev/null || missing="$$missing  g++ 12 or newer: $(CXX) is $${version:-not there}\n"; \
	if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
	  missing="$$missing  Python 3.10 or newer: $(PYTHON) is $$($(PYTHON) --version 2>&1 | tail -n 1)\n"; \
	else \
	  header=$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include") + "/Python.h")'); \
	  [ -f "$$header" ] || missing="$$missing  Python headers: $$header is not there\n"; \
	  $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || missing="$$missing  the venv module of $(PYTHON)\n"; \
	fi; \
	if [ -n "$$missing" ]; then \
	  printf "timetrial needs, and did not find:\n$$missing\nOn Debian and Ubuntu:  $(APT_LINE)\n(another Python or compiler: make PYTHON=python3.12 CXX=g++-13 ...)\n" >&2; exit 1; \
	fi

# A torch that the chosen Python already has is used: the environment then sees that Python's packages.
$(VENV)/bin/python: | machine
	@if [ "$(TORCH)" != 0 ] && $(PYTHON) -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'; then \
	  echo "$(PYTHON) has torch: $(VENV) will use it."; $(PYTHON) -m venv --system-site-packages $(VENV); \
	else $(PYTHON) -m venv $(VENV); fi

$(VENV)/.build-tools: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --upgrade 'pip>=23'
	$(PIP) install --quiet $$($(BIN)/python tools/extras.py build)
	@touch $@

$(VENV)/.installed: $(NATIVE_SOURCES) | $(VENV)/.build-tools
	PATH="$(abspath $(BIN)):$$PATH" $(PIP) install --quiet --no-build-isolation --config-settings build-dir=build/editable --editable '.'
	@touch $@

$(VENV)/.demo: | $(VENV)/.installed
	$(PIP) install --quiet 'scikit-learn>=1.3'
	@$(MAKE) --no-print-directory torch
	@touch $@

.PHONY: torch
torch: | $(VENV)/bin/python
	@if [ "$(TORCH)" = 0 ]; then echo "TORCH=0: going on without torch."; \
	elif $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'; then :; \
	else \
	  echo "Installing torch==$(TORCH_PIN) into $(VENV): about 0.2 GB where pip's settings lead to a CPU build,"; \
	  echo "about 3 GB where they lead to the CUDA build. (make TORCH=0 does without it.)"; \
	  $(PIP) install --quiet torch==$(TORCH_PIN) || { echo "torch could not be installed. Without it: make demo TORCH=0" >&2; exit 1; }; \
	fi

$(VENV)/.test: pyproject.toml | $(VENV)/.installed
	$(PIP) install --quiet $$($(BIN)/python tools/extras.py test lint)
	@$(MAKE) --no-print-directory torch
	@touch $@

lint: $(VENV)/.installed $(VENV)/.test  ## ruff, mypy, clang-format, stripped notebooks, up-to-date stubs, file sizes
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/mypy
	git ls-files 'cpp/*.h' 'cpp/*.hpp' 'cpp/*.cpp' 'benchmarks/*.cpp' 'tests/*.cpp' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/nbstripout --verify notebooks/*.ipynb
	$(BIN)/python tools/stubs.py --check
	$(BIN)/python tools/sizes.py

ctest: $(VENV)/.test  ## GoogleTest: release with warnings as errors, then debug with sanitizers
	PATH="$(abspath $(BIN)):$$PATH" cmake --workflow --preset release
	PATH="$(abspath $(BIN)):$$PATH" cmake --workflow --preset debug

# Frameworks are installed once, into the user's data folder or $$TIMETRIAL_ENVIRONMENTS. What this machine has
# no interpreter for is left out; tests of what it could have run and did not fail the run (tests/required.py).
$(VENV)/.frameworks: $(wildcard python/timetrial/frameworks/*/environment.toml) | $(VENV)/.installed $(VENV)/.test
	$(BIN)/timetrial frameworks install --cheap
	@touch $@

ifeq ($(FRAMEWORKS),0)
frameworks:
	@echo "FRAMEWORKS=0: going on with the frameworks that are there."
pytest: REQUIRED :=
else
frameworks: $(VENV)/.frameworks  ## install the frameworks that tests use, each in an interpreter of its own
pytest: REQUIRED := TIMETRIAL_REQUIRE=cheap
endif

pytest: $(VENV)/.installed $(VENV)/.test frameworks  ## Python tests
	$(REQUIRED) $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not alone and not full"
	$(REQUIRED) $(BIN)/python -m pytest -m "alone and not full"

test-frameworks: $(VENV)/.installed $(VENV)/.test  ## install every framework that comes from packages, and test them all
	$(BIN)/timetrial frameworks install --all
	TIMETRIAL_REQUIRE=all $(BIN)/python -m pytest -n $(JOBS) tests/frameworks tests/runtime

notebooks: $(VENV)/.installed $(VENV)/.test  ## execute the notebooks
	TIMETRIAL_NOTEBOOK_QUICK=1 $(BIN)/python -m pytest --nbmake --nbmake-timeout=300 notebooks

format: $(VENV)/.test  ## format all code
	$(BIN)/ruff check --fix $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)
	git ls-files 'cpp/*.h' 'cpp/*.hpp' 'cpp/*.cpp' 'benchmarks/*.cpp' 'tests/*.cpp' | xargs $(BIN)/clang-format -i
	$(BIN)/nbstripout notebooks/*.ipynb

stubs: $(VENV)/.installed $(VENV)/.test  ## write python/timetrial/core/_core.pyi anew
	$(BIN)/python tools/stubs.py

self: $(VENV)/.installed $(VENV)/.demo $(VENV)/.test  ## timetrial measuring itself: the figures of the README
	PATH="$(abspath $(BIN)):$$PATH" cmake --preset release && PATH="$(abspath $(BIN)):$$PATH" cmake --build --preset release --target stamp_cost
	$(BIN)/python benchmarks/self/run.py

dist: $(VENV)/.test  ## wheel and source distribution in dist/
	$(BIN)/python -m build

clean:  ## remove what was built (results/ stays)
	rm -rf build dist $(VENV)
