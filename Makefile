# Every target creates the environment it needs; only Python 3.11 or newer and make are required.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-all fuzz check docs bench clean

demo: $(READY)  ## simulated models on the built-in data; no API key, no network
	$(BIN)/propensitybench demo

test: $(READY)  ## the tests without the slow ones; no API key, no network beyond this machine
	$(BIN)/pytest -m "not slow"

test-all: $(READY)  ## all tests
	$(BIN)/pytest

fuzz: $(READY)  ## two hours of mutated run files
	PYTHONPATH=tests $(BIN)/python -m hostile.run_file_fuzzer --hours 2 --seed $$(date +%s) --keep fuzz-findings

check: $(READY)  ## format, lint, types, import contracts, documents, retired terms, data
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/python docs/check_terms.py
	$(BIN)/propensitybench data validate

docs: $(READY)  ## rewrite the generated parts of the documents
	$(BIN)/python docs/generate.py

bench: $(READY)  ## measure the overhead of the harness; never fails
	$(BIN)/python perf/harness_cost.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis propensitybench-demo

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is required: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)
