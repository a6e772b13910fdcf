# The front door: `make demo` and `make test` do all the set-up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.installed-for-demo

.PHONY: help setup demo test test-slow coverage lint audit docs format wheel clean

help:
	@echo "make demo       train on the embedded sample, write a report, serve the page"
	@echo "make test       run the tests (minutes)"
	@echo "make test-slow  run the slow tests"
	@echo "make coverage   run the tests and show which lines they miss"
	@echo "make lint       ruff and mypy"
	@echo "make docs       build the documentation as a site: site/index.html"
	@echo "make audit      look up known vulnerabilities of the pinned packages"

setup: $(STAMP)

# The demo needs the package and its page alone; setup adds what development needs.
$(DEMO_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[serve]'
	touch $(DEMO_STAMP)

$(STAMP): $(DEMO_STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@# fastText has no wheels: without a C++ compiler its tests are skipped, and all the rest works.
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[fasttext]' || echo "fasttext could not be built"
	touch $(STAMP)

# In a terminal it ends with the page, until Ctrl-C.
demo: $(DEMO_STAMP)
	@if [ -t 1 ]; then $(BIN)/nlpcapsule demo --output demo-output --serve; \
	else $(BIN)/nlpcapsule demo --output demo-output; fi

# Two at a time, a file's tests in one process; the tests themselves keep to one thread.
test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

# GPU kernels are tested in Triton's interpreter. Its package is kept apart: torch would use it everywhere.
.venv-triton:
	$(BIN)/python -m pip install --quiet --no-deps --target .venv-triton triton==3.6.0 || echo "no triton"

test-slow: $(STAMP) .venv-triton
	$(BIN)/python -m pytest -m slow --kills 100 -n 2 --dist loadfile
	$(BIN)/python -m pytest tests/faults --faults 1000 -n 2 --dist loadfile

coverage: $(STAMP)
	$(BIN)/python -m pytest --cov --cov-report=term-missing --cov-fail-under=90

lint: $(STAMP)
	$(BIN)/ruff check src benchmarks tests docs
	$(BIN)/ruff format --check src benchmarks tests docs
	$(BIN)/mypy

# In an environment of its own; no other target depends on it, since it asks the registry.
audit:
	.ci/audit $(PYTHON)

# In an environment of its own, too: the reference is read from the source, so torch is not needed.
docs:
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet -c constraints.txt $$($(PYTHON) -c \
	  "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	@echo "open site/index.html"

format: $(STAMP)
	$(BIN)/ruff check --fix src benchmarks tests docs
	$(BIN)/ruff format src benchmarks tests docs

wheel: $(STAMP)
	$(BIN)/python -m build --wheel --no-isolation

clean:
	rm -rf $(VENV) .venv-audit .venv-docs .venv-triton site demo-output dist build .pytest_cache .mypy_cache .ruff_cache
