# Each target makes the virtual environment it needs on first use; a machine with Python 3.11 to 3.13 and make is enough.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
USER_READY := $(VENV)/.installed-user
DEV_READY := $(VENV)/.installed-dev
OUT ?= quickstart

.PHONY: help quickstart test lint format bench lock clean

help:
	@echo "make quickstart   make a small dataset, train on it, evaluate, say where the results lie"
	@echo "make test         run the tests"
	@echo "make lint         ruff and pyright"
	@echo "make bench        measure speed on this machine (run nothing else meanwhile); PARTS=updates: a part of it"
	@echo "make lock         write constraints.txt from what is installed now"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(USER_READY): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[ogbench]'
	@touch $@

$(DEV_READY): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[ogbench,d4rl,minari,dev]'
	@touch $@ $(USER_READY)

quickstart: $(USER_READY)
	$(BIN)/astro-rl quickstart --out $(OUT)

test: $(DEV_READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(DEV_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(DEV_READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV_READY)
	$(BIN)/python -m benchmarks.speed $(PARTS)

# Versions only: no index addresses, no hashes.
lock: $(DEV_READY)
	$(BIN)/python -m pip freeze --exclude-editable | grep -E '^[A-Za-z0-9._-]+==' | sort -f > constraints.txt

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
