# Every target creates the environment it needs; only Python and make are required. `make demo` works with any 3.11 or
# newer, the tools of development from 3.11.5 on: soupsieve and pymdown-extensions in requirements-dev.txt do not before.
# All packages have known hashes and, but for two that `make records` builds, are wheels: nothing is downloaded unchecked.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What a user needs, without the tools of development.
BASE := $(VENV)-base

MINUTES ?= 5
ANSWERS ?= 2000
UV ?= uv
LOCK := $(UV) pip compile --universal --python-version 3.11.5 --generate-hashes --no-emit-index-url --no-header \
    --no-annotate --fork-strategy fewest --quiet $(UPGRADE)

# Else each of the programs that the tests start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

# Validators of the records that we write: Every Eval Ever, Hugging Face, CFF, CodeMeta, Croissant, BibTeX. Their
# requirements exclude ours and each other's, so they have an environment of their own with what they import.
RECORDS := $(VENV)-records
# Without wheels; built from the pinned source, with the pinned setuptools.
UNBUILT := codemetapy jsonpath-rw
# Required by these packages, and not imported by what we call: they would take 300 MB.
UNNEEDED := docopt hf-xet pandas-stubs scipy

.PHONY: demo test test-slow test-all check docs site records fuzz audit dist check-dist lock bench clean

demo: $(BASE)/.ready  ## install the package alone, and run simulated models on the built-in data; no API key
	$(BASE)/bin/propensitybench demo

test: $(READY)  ## the tests without the slow ones; no API key, no network beyond this machine
	$(BIN)/pytest -m "not slow"

test-slow: $(READY)  ## only the slow tests
	$(BIN)/pytest -m slow

test-all: $(READY)  ## all tests
	$(BIN)/pytest

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

site: $(READY)  ## build the documentation site into site/; a warning fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

records: $(READY) $(RECORDS)/.ready  ## write every record and validate it with its owner's validator; no network
	PYTHONPATH=tests $(BIN)/python -m records.write_records $(RECORDS)/written
	$(RECORDS)/bin/python tests/records/validate_records.py $(RECORDS)/written

fuzz: $(READY)  ## damaged run files for MINUTES, then ANSWERS of a hostile endpoint
	PYTHONPATH=tests $(BIN)/python -m hostile.run_file_fuzzer --minutes $(MINUTES) --seed $$(date +%s) --keep fuzz-findings
	$(BIN)/python perf/fuzz_endpoint.py --answers $(ANSWERS)

audit:  ## search the pinned packages for known vulnerabilities; asks the package index
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/pip install --quiet --disable-pip-version-check \
	    --require-hashes --no-deps --only-binary :all: -r requirements-audit.txt
	$(VENV)-audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements-dev.txt

dist: $(READY)  ## build the sdist and the wheel into dist/; the same commit gives the same bytes
	rm -rf dist
	$(BIN)/python release/build.py dist

check-dist: dist  ## check both, install the wheel without extras, run the demo there; asks the package index
	$(BIN)/python release/check.py dist $(if $(TAG),--tag $(TAG))

lock:  ## rewrite requirements-*.txt after a change of dependencies; needs uv; UPGRADE=--upgrade takes new versions
	$(LOCK) pyproject.toml --extra dev --output-file requirements-dev.txt
	$(LOCK) pyproject.toml --constraint requirements-dev.txt --output-file requirements.txt
	echo pip-audit | $(LOCK) - --output-file requirements-audit.txt
	printf '%s\n' cffconvert codemetapy mlcroissant pybtex 'huggingface-hub<2' pydantic 'rich<15' requests setuptools | \
	    $(LOCK) - $(UNNEEDED:%=--no-emit-package %) $(UNBUILT:%=--no-emit-package %) \
	    --output-file requirements-records.txt
	echo every-eval-ever | $(subst 3.11.5,3.12,$(LOCK)) - --no-deps >> requirements-records.txt
	printf '%s\n' $(UNBUILT) | $(LOCK) - --no-deps --output-file requirements-records-sources.txt

bench: $(READY)  ## measure the overhead of the harness; never fails
	$(BIN)/python perf/harness_cost.py

clean:
	rm -rf $(VENV) $(BASE) $(VENV)-audit $(RECORDS) dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis propensitybench-demo

$(READY): pyproject.toml requirements-dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5) and "make needs Python 3.11.5 or newer (make PYTHON=python3.12); with any 3.11: pip install .")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check \
	    --require-hashes --no-deps --only-binary :all: -r requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/pip check
	touch $(READY)

# Hatchling builds the package; it is not needed afterwards.
$(BASE)/.ready: pyproject.toml requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "PropensityBench needs Python 3.11 or newer: make demo PYTHON=python3.12")'
	$(PYTHON) -m venv $(BASE)
	$(BASE)/bin/pip install --quiet --disable-pip-version-check \
	    --require-hashes --no-deps --only-binary :all: -r requirements.txt
	$(BASE)/bin/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

# Every Eval Ever asks for Python 3.12; its validator works under 3.11.
$(RECORDS)/.ready: requirements-records.txt requirements-records-sources.txt
	$(PYTHON) -m venv --clear $(RECORDS)
	$(RECORDS)/bin/pip install --quiet --disable-pip-version-check --no-compile --ignore-requires-python \
	    --require-hashes --no-deps --only-binary :all: -r requirements-records.txt
	$(RECORDS)/bin/pip install --quiet --disable-pip-version-check --no-compile --no-build-isolation \
	    --require-hashes --no-deps -r requirements-records-sources.txt
	touch $@
