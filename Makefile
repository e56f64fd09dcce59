# Everything here makes its own environment: Python 3.11 or newer and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check docs bench clean

demo: $(READY)  ## simulated models on the built-in data: no key, no network
	$(BIN)/propensitybench demo

test: $(READY)  ## the test suite; no key, no network beyond this machine
	$(BIN)/pytest

check: $(READY)  ## format, lint, types, import contracts, documents, data
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/propensitybench data validate

docs: $(READY)  ## rewrites the generated parts of the documents
	$(BIN)/python docs/generate.py

bench: $(READY)  ## cost of the harness; prints, never fails
	$(BIN)/python perf/harness_cost.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis propensitybench-demo

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)
