# `make run` and `make test` set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: help run test setup lint types unit coverage bench soak format requirements docs browser pictures measure walks clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: $(BIN)/iii-directory  ## run the directory here, on an engine of its own if none answers
	@$(BIN)/iii-directory up $(ARGS)

test: $(VENV)/.dev lint types unit  ## lint, types and tests

setup: $(BIN)/iii-directory  ## only set up .venv

$(VENV)/.base: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; found " + sys.version.split()[0] + ". Set PYTHON=… to another.") if sys.version_info < (3, 11) else 0'
	@$(PYTHON) -I src/iii_directory/cli/interpreter.py
	@echo "setting up $(VENV) (once, about a minute)"
	@$(PYTHON) -m venv $(VENV) || { echo "the venv module is missing: install it (on Debian: apt-get install python3-venv)"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(BIN)/iii-directory: $(VENV)/.base pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/iii-directory requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev
	@$(BIN)/pyright --warnings

# Tests start commands some thousand times; where bytecode is not written, each start would compile the source again.
unit coverage soak: export PYTHONDONTWRITEBYTECODE :=

unit: $(VENV)/.dev
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not soak" $(ARGS)

# Apart from `make test`, because counting takes two thirds of the time again. The floor is in pyproject.toml.
coverage: $(VENV)/.dev  ## run the tests and count the lines and branches they reach
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not soak" --cov --cov-report=term

bench: $(VENV)/.dev  ## one line per goal: name, ratio, bound
	@$(BIN)/python -m benchmarks $(ARGS)

soak: $(VENV)/.dev  ## long fuzz runs, simulations and churn
	@$(BIN)/python -m pytest -m soak --timeout=3600 $(ARGS)

format: $(VENV)/.dev  ## let ruff rewrite the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

browser:  ## install the Chromium that the tests of the web page drive (Debian)
	@command -v chromium >/dev/null || { command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium; } || echo "install Chromium with your package manager; the tests of the page are skipped without it"

pictures: $(VENV)/.dev  ## take the pictures of the web page in docs/pictures anew
	@$(BIN)/python -m tools.pictures $(ARGS)

measure:  ## size and readability of the source, beside the goals
	@$(PYTHON) -m tools.measure $(ARGS)

walks: $(VENV)/.dev  ## how many package borders each everyday request crosses
	@$(BIN)/python -m tools.walks $(ARGS)

docs: $(VENV)/.dev  ## write the reference anew from the tables of the code
	@$(BIN)/python -m docs.generate

requirements:  ## pin dependencies anew, with hashes and without index addresses (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-strip-extras --no-config requirements.in pyproject.toml -o requirements.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-strip-extras --no-config --group dev -c requirements.txt -o requirements-dev.txt

clean:  ## remove what was set up
	rm -rf $(VENV) .sdks .coverage .pytest_cache .ruff_cache .hypothesis dist
