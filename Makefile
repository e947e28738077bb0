# Two commands are all a newcomer needs: `make up` and `make test`. Each sets up what it needs on first use.
VENV := .venv
BIN := $(VENV)/bin

.PHONY: up test test-full check reference lock clean

up: $(VENV)/.core ## from a bare machine to JupyterLab on a verified torch
	@$(BIN)/torchdeck up

test: $(VENV)/.dev ## every test; uses the engines and browsers that are there (under 25 minutes)
	@tools/test.sh -m "not full"

test-full: $(VENV)/.dev ## the long tests too: other stacks, other Pythons, mirrors, full disks
	@tools/test.sh

check: $(VENV)/.dev ## style, types, import rules, the catalogue's own consistency
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/reference.py --check

reference: $(VENV)/.dev ## write docs/reference from the program
	@$(BIN)/python tools/reference.py

lock: $(VENV)/.dev ## renew requirements/*.txt
	@tools/lock.sh

$(VENV)/.core: requirements/core.txt pyproject.toml tools/bootstrap.sh
	@tools/bootstrap.sh $(VENV) core

$(VENV)/.dev: requirements/core.txt requirements/dev.txt pyproject.toml tools/bootstrap.sh
	@tools/bootstrap.sh $(VENV) dev

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
