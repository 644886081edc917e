# timetrial: `make demo` and `make test` are all the set-up there is. `make help` lists the rest.
PYTHON ?= python3
TORCH ?= 1
FRAMEWORKS ?= 1
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CXX ?= g++
JOBS ?= $(shell nproc)
NATIVE_SOURCES := $(shell find cpp cmake -type f -not -path 'cpp/tests/*') CMakeLists.txt pyproject.toml
PYTHON_FILES := python tests benchmarks tools docs
# Runs a command and adds its time to that of a stage, for the table at the end of `make test`.
STAGE = $(PYTHON) tools/times.py run
TIMES := $(CURDIR)/build/times
# make test-all: every test. make test: without those that are marked full, in pytest and in GoogleTest.
ifeq ($(FULL),1)
MARKED = $(1)
LABELS :=
REQUIRED_FRAMEWORKS := all
else
MARKED = $(1) and not full
LABELS := -LE full
REQUIRED_FRAMEWORKS := quick
endif
# Tests of several threads run beside others: threads that wait leave them the processors.
CTEST := OMP_WAIT_POLICY=passive OPENBLAS_THREAD_TIMEOUT=4 PATH="$(abspath $(BIN)):$$PATH" $(STAGE)
TORCH_PIN = $(shell sed -n 's/.*"torch==\([0-9.]*\)".*/\1/p;T;q' python/timetrial/frameworks/pytorch/environment.toml)
APT_LINE := sudo apt install g++ make python3-dev python3-venv

export CXX
# Where it is set every start of Python compiles every file anew, and tests start it thousands of times.
unexport PYTHONDONTWRITEBYTECODE
export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)

.PHONY: help demo test test-all stages lint ctest tidy pytest frameworks loaded notebooks notebooks-outputs docs format coverage stubs self dist clean machine
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/.installed $(VENV)/.demo  ## train LeNet-5 with every stack that is ready, in one table (TORCH=0: without torch)
	$(BIN)/timetrial run first-look

test:  ## what a change of ordinary size can break: lint, GoogleTest, pytest, notebooks (FRAMEWORKS=0: installs none)
	@$(PYTHON) tools/times.py start
	@$(MAKE) --no-print-directory stages; status=$$?; $(PYTHON) tools/times.py report; exit $$status

test-all:  ## everything, as long as it takes: every variant, every framework that comes from packages
	@$(MAKE) --no-print-directory test FULL=1

stages: lint ctest tidy pytest notebooks

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
	$(STAGE) install -- $(PIP) install --quiet --upgrade 'pip>=23'
	$(STAGE) install -- $(PIP) install --quiet $$($(BIN)/python tools/extras.py build)
	@touch $@

# The GoogleTest programs are made in the same build folder, from the same objects, when ctest asks for them.
# Warnings are errors with the compiler that they were mended for: a newer one knows more of them.
$(VENV)/.installed: $(NATIVE_SOURCES) | $(VENV)/.build-tools
	PATH="$(abspath $(BIN)):$$PATH" $(STAGE) build -- $(PIP) install --quiet --no-build-isolation --editable '.' \
	  --config-settings build-dir=build/editable --config-settings cmake.define.TIMETRIAL_TESTS=ON \
	  --config-settings cmake.define.TIMETRIAL_WERROR=$(if $(filter 12,$(shell $(CXX) -dumpversion)),ON,OFF)
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
	  $(STAGE) install -- $(PIP) install --quiet torch==$(TORCH_PIN) || { echo "torch could not be installed. Without it: make demo TORCH=0" >&2; exit 1; }; \
	fi

$(VENV)/.test: pyproject.toml | $(VENV)/.installed
	$(STAGE) install -- $(PIP) install --quiet $$($(BIN)/python tools/extras.py test lint docs)
	@$(MAKE) --no-print-directory torch
	@touch $@

lint: $(VENV)/.installed $(VENV)/.test  ## ruff, mypy, clang-format, outputs of notebooks, up-to-date stubs, file sizes
	$(STAGE) lint -- $(BIN)/ruff check $(PYTHON_FILES)
	$(STAGE) lint -- $(BIN)/ruff format --check $(PYTHON_FILES)
	$(STAGE) lint -- $(BIN)/mypy
	git ls-files 'cpp/*.h' 'cpp/*.hpp' 'cpp/*.cpp' 'benchmarks/*.cpp' 'tests/*.cpp' | $(STAGE) lint -- xargs $(BIN)/clang-format --dry-run --Werror
	$(STAGE) lint -- $(BIN)/python tools/notebooks.py check notebooks/*.ipynb
	$(STAGE) lint -- $(BIN)/python tools/stubs.py --check
	$(STAGE) lint -- $(BIN)/python tools/sizes.py

ctest: $(VENV)/.installed $(VENV)/.test  ## GoogleTest: as installed, then with sanitizers
	PATH="$(abspath $(BIN)):$$PATH" $(STAGE) "GoogleTest, build" -- cmake --build build/editable --target native_tests
	$(CTEST) "GoogleTest" -- ctest $(LABELS) --test-dir build/editable -j $(JOBS) --no-tests=error --output-on-failure \
	  --output-junit $(TIMES)/ctest.xml
	PATH="$(abspath $(BIN)):$$PATH" $(STAGE) "GoogleTest with sanitizers, build" -- sh -c 'cmake --preset debug && cmake --build --preset debug'
	$(CTEST) "GoogleTest with sanitizers" -- ctest $(LABELS) --preset debug -j $(JOBS) --output-junit $(TIMES)/ctest-sanitizers.xml
ifeq ($(FULL),1)
	PATH="$(abspath $(BIN)):$$PATH" $(STAGE) "ThreadSanitizer, build" -- sh -c 'cmake --preset threads && cmake --build --preset threads'
	$(CTEST) "ThreadSanitizer" -- ctest -LE full --preset threads -j $(JOBS) --output-junit $(TIMES)/ctest-threads.xml
endif

tidy: $(VENV)/.installed $(VENV)/.test  ## clang-tidy over our C++
	PATH="$(abspath $(BIN)):$$PATH" $(STAGE) "clang-tidy" -- sh -c 'cmake --preset debug >/dev/null && $(BIN)/python tools/tidy.py build/debug'

# Frameworks are installed once, into the user's data folder or $$TIMETRIAL_ENVIRONMENTS: three for `make test`, for
# `make test-all` every one that comes from packages. What this machine has no interpreter for is left out; tests of
# what it could have run and did not fail the run (tests/required.py).
$(VENV)/.frameworks-$(REQUIRED_FRAMEWORKS): $(wildcard python/timetrial/frameworks/*/environment.toml) tests/required.py | $(VENV)/.installed $(VENV)/.test
	names=$$($(BIN)/python tests/required.py $(REQUIRED_FRAMEWORKS)) && \
	{ [ -z "$$names" ] || $(STAGE) "frameworks, install" -- $(BIN)/timetrial frameworks install $$names; }
	@touch $@

ifeq ($(FRAMEWORKS),0)
frameworks:
	@echo "FRAMEWORKS=0: going on with the frameworks that are there."
pytest: REQUIRED :=
else
frameworks: $(VENV)/.frameworks-$(REQUIRED_FRAMEWORKS)  ## install the frameworks that tests use, each in an interpreter of its own
pytest: REQUIRED := TIMETRIAL_REQUIRE=$(REQUIRED_FRAMEWORKS)
endif

# What only tests that are marked full use, and takes more than 100 MB.
$(VENV)/.test-all: pyproject.toml | $(VENV)/.test
	$(STAGE) install -- $(PIP) install --quiet $$($(BIN)/python tools/extras.py mlflow)
	@touch $@
ifeq ($(FULL),1)
pytest: $(VENV)/.test-all
endif

# Those that need the processors for themselves come last.
PYTEST = $(BIN)/python -m pytest
pytest: $(VENV)/.installed $(VENV)/.test frameworks  ## Python tests
	$(REQUIRED) $(STAGE) "pytest, all cores" -- $(PYTEST) -n $(JOBS) --dist worksteal -m "$(call MARKED,not alone)" --junitxml=$(TIMES)/pytest.xml
	$(REQUIRED) $(STAGE) "pytest, one by one" -- $(PYTEST) -m "$(call MARKED,alone)" --junitxml=$(TIMES)/pytest-alone.xml

RUNS ?= 10
loaded: $(VENV)/.installed $(VENV)/.test frameworks  ## the everyday tests RUNS times on a busy machine: two suites side by side
	$(BIN)/python tools/loaded.py $(RUNS)

notebooks: $(VENV)/.installed $(VENV)/.test  ## execute the code of the notebooks, quickly
	TIMETRIAL_NOTEBOOK_QUICK=1 $(STAGE) notebooks -- $(PYTEST) --nbmake --nbmake-timeout=300 notebooks --junitxml=$(TIMES)/pytest-notebooks.xml

format: $(VENV)/.test  ## format all code
	$(BIN)/ruff check --fix $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)
	git ls-files 'cpp/*.h' 'cpp/*.hpp' 'cpp/*.cpp' 'benchmarks/*.cpp' 'tests/*.cpp' | xargs $(BIN)/clang-format -i

# The difference between the two reports is what everyday tests miss. Contenders get a clean environment: what runs
# in them only (adapters, timetrial/runtime) counts for C++ and not for Python. The framework tests of test-all, an hour
# of such, are left out of the second half.
COVERED = PATH="$(abspath $(BIN)):$$PATH" TIMETRIAL_NATIVE=$(CURDIR)/build/coverage/native
COVER = $(COVERED) TIMETRIAL_REQUIRE= $(BIN)/coverage run -m pytest -q
define COVERAGE_REPORT
	$(BIN)/coverage combine --quiet --append; $(BIN)/coverage report --skip-covered --sort=cover > build/coverage/python-$(1).txt; grep TOTAL build/coverage/python-$(1).txt
	$(BIN)/gcovr --root . --filter 'cpp/(?!tests/)' --gcov-ignore-parse-errors --txt build/coverage/cpp-$(1).txt --txt-summary build/coverage
endef
coverage: $(VENV)/.installed $(VENV)/.test frameworks  ## lines of C++ and Python that make test and make test-all cover, in build/coverage
	$(PIP) install --quiet $$($(BIN)/python tools/extras.py coverage)
	PATH="$(abspath $(BIN)):$$PATH" sh -c 'cmake --preset coverage && cmake --build --preset coverage'
	find build/coverage -name '*.gcda' -delete; $(BIN)/coverage erase
	-$(CTEST) "coverage" -- ctest -LE full --preset coverage -j $(JOBS)
	-$(COVER) -n $(JOBS) --dist worksteal -m "not full and not alone"
	-$(COVER) -m "alone and not full"
	$(call COVERAGE_REPORT,test)
	-$(CTEST) "coverage" -- ctest -L full --preset coverage -j $(JOBS)
	-$(COVER) -n $(JOBS) --dist worksteal -m "full and not alone" --ignore=tests/frameworks --ignore=tests/optimizers/test_in_backends.py
	-$(COVER) -m "alone and full"
	$(call COVERAGE_REPORT,test-all)

# On a quiet machine, with PyTorch: the outputs are what readers see. Long notebooks take folders of earlier runs from
# variables that their parameters name. NOTEBOOKS=notebooks/first-race.ipynb: only that one.
NOTEBOOKS ?= $(wildcard notebooks/*.ipynb)
notebooks-outputs: $(VENV)/.installed $(VENV)/.demo $(VENV)/.test  ## execute the notebooks for real and keep their outputs
	$(BIN)/python tools/notebooks.py run $(NOTEBOOKS)

docs: $(VENV)/.installed $(VENV)/.test  ## the site, with the reference from the code: build/docs/index.html
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html -d build/docs-trees docs build/docs

stubs: $(VENV)/.installed $(VENV)/.test  ## write python/timetrial/core/_core.pyi anew
	$(BIN)/python tools/stubs.py

self: $(VENV)/.installed $(VENV)/.demo $(VENV)/.test  ## timetrial measuring itself: the figures of the docs
	PATH="$(abspath $(BIN)):$$PATH" cmake --build build/editable --target self_programs
	$(BIN)/python benchmarks/self/run.py

dist: | $(VENV)/.build-tools  ## manylinux wheel and source distribution in dist/, for machines without a compiler
	$(PIP) install --quiet $$($(BIN)/python tools/extras.py dist)
	$(BIN)/python tools/dist.py dist

clean:  ## remove what was built (results/ stays)
	rm -rf build dist $(VENV)
