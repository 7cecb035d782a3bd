# The README's commands. `make run` and `make test` work on a machine with Python 3.11 or newer and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help run test unit lint types imports format bench clean
.DEFAULT_GOAL := help

help:            ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 18

$(READY): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

run: $(READY)    ## a conversation with tools in the terminal, played by the scripted model
	@$(BIN)/dragoman demo

test: lint types imports $(READY)    ## every check and every test
	@$(BIN)/pytest

unit: $(READY)   ## the fast tests alone
	@$(BIN)/pytest -m "not slow"

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY)
	@$(BIN)/mypy

imports: $(READY)
	@$(BIN)/lint-imports --no-cache

format: $(READY) ## let ruff mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY)  ## speed, as ratios against other frameworks in the same run
	@$(BIN)/python benchmarks/run.py

clean:           ## remove what make made
	@rm -rf $(VENV) .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis
