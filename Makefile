# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Without what only tests, benchmarks and Spark need, which is large.
RUNTIME_STAMP := $(VENV)/.installed-runtime
# The versions that are tested; those for other versions of Python are chosen by pip.
PINNED = $(shell $(PYTHON) -c 'import sys; print("--constraint constraints.txt" * (sys.version_info[:2] == (3, 11)))')
PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check
SOURCES := pyproject.toml setup.py constraints.txt $(wildcard broker/*/*.c broker/*/*.h streams/*/*.c)

.PHONY: help install demo check test test-long bench wheel constraints clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

install: $(STAMP)  ## create .venv and install everything

$(STAMP): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) $(PINNED) --editable '.[dev]'
	touch $(RUNTIME_STAMP) $(STAMP)

$(RUNTIME_STAMP): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) $(PINNED) --editable .
	touch $(RUNTIME_STAMP)

demo: $(RUNTIME_STAMP)  ## the whole platform for some seconds: connectors, SQL, live results
	$(BIN)/python -m millstream demo

check: install  ## lint, types, import directions and the fast tests
	$(BIN)/python -m tests.check fast

test: install  ## everything: check, all tests, real peers
	$(BIN)/python -m tests.check full

test-long: install  ## the same with the long property runs, kills and fuzzing
	$(BIN)/python -m tests.check long

bench: install  ## measure broker, formats, connectors, streams, SQL and Spark, beside their peers if they can be had
	$(BIN)/python -m benchmarks broker
	$(BIN)/python -m benchmarks formats
	$(BIN)/python -m benchmarks connect
	$(BIN)/python -m benchmarks streams
	$(BIN)/python -m benchmarks sql
	$(BIN)/python -m benchmarks spark

wheel: install  ## build the source distribution and the wheel in dist
	$(BIN)/python -m build

constraints: install  ## upgrade all libraries, and write their versions to constraints.txt
	$(PIP_INSTALL) --upgrade --upgrade-strategy eager --editable '.[dev]'
	{ grep '^#' constraints.txt; $(BIN)/pip freeze --exclude-editable; } > .constraints
	mv .constraints constraints.txt

clean:  ## remove what the targets made
	rm -rf $(VENV) .cache build dist *.egg-info
