# Every target sets up what it needs. On a fresh machine: Python >= 3.11, git and make are enough.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.stamp
CORE    := $(VENV)/.stamp-core
# Tests mostly wait for processes: two workers per core, at most eight.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); n=$$((n * 2)); echo $$((n > 8 ? 8 : n)))
# A real CLI uses a core while it starts, and up to 700 MB.
REAL_WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); n=$$((n + 1)); echo $$((n > 6 ? 6 : n)))
# Programs that the tests use, as command:package.
TOOLS   := tmux:tmux bwrap:bubblewrap strace:strace jq:jq zsh:zsh fish:fish git:git ip:iproute2 unshare:util-linux setpriv:util-linux systemd-analyze:systemd chromium:chromium gh:gh nsenter:util-linux openssl:openssl curl:curl mkfs.ext4:e2fsprogs mount:mount
CHECKED := $(wildcard src tests benchmarks contracts)
ARGS    ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help setup tools demo test check lint types layers quick format requirements crash \
	mutants hostile chaos chaos-smoke \
	conformance conformance-smoke conformance-setup mcp-setup screenshots bench clean distclean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  ARGS='...' is passed to pytest, or to the program that the target runs."
	@echo "  WORKERS=n sets the number of test processes."

setup: $(STAMP) tools  ## Make .venv with everything for development

# holdfast with top and serve, without the development tools.
$(CORE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is older than Python 3.11; hint: make PYTHON=python3.12 setup" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "error: no venv module; hint: apt-get install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV)"
	@$(BIN)/pip install --quiet --editable '.[tui,web]'
	@touch $@

$(STAMP): pyproject.toml $(CORE)
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

tools:
	@missing=; for t in $(TOOLS); do command -v $${t%%:*} >/dev/null || missing="$$missing $${t##*:}"; done; \
	test -z "$$missing" && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing$$missing"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; } >/dev/null \
			|| echo "could not install$$missing: tests that need them are skipped (with CI=true they fail)"; \
	else \
		echo "missing:$$missing (install them with your package manager; tests that need them are skipped)"; \
	fi

demo: $(CORE)  ## Run a short demo; it costs nothing
	@$(BIN)/holdfast demo

# worksteal: a worker that has finished takes tests from the others.
test: setup  ## Run all tests, but only part of the crash run
	$(BIN)/pytest -n $(WORKERS) --dist worksteal tests $(ARGS)

check: setup lint types layers quick  ## Format, lint, types, layers, unit and property tests

lint: setup
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)

types: setup
	$(BIN)/pyright

layers: setup
	$(BIN)/lint-imports --no-logo

quick: setup  ## Run unit and property tests only
	$(BIN)/pytest -n $(WORKERS) $(wildcard tests/unit tests/property) $(ARGS)

format: setup  ## Format the code and apply automatic fixes
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

requirements: setup  ## List requirements and the tests that cover them
	$(BIN)/python -m tests.support.requirements

crash: setup  ## Kill in every situation, restart, compare
	$(BIN)/python -m tests.crash -n $(WORKERS) $(ARGS)

hostile: setup  ## Attack with hostile files and processes; writes a page
	HOLDFAST_HOSTILE_FULL=1 HOLDFAST_HOSTILE_WRITE=1 $(BIN)/pytest -n $(WORKERS) -p tests.hostile.report tests/hostile $(ARGS)

mutants: setup  ## Plant each listed bug and check that its test fails
	$(BIN)/python -m tests.mutants -n $(WORKERS) $(ARGS)

chaos: setup  ## Run 500 tasks while processes are killed at random
	$(BIN)/python -m tests.chaos --tasks 500 --slots 8 $(ARGS)

chaos-smoke: setup  ## The same with 60 tasks in 6 slots
	$(BIN)/python -m tests.chaos --tasks 60 --slots 6 --within 240 $(ARGS)

conformance: conformance-setup  ## Run the real CLIs; writes docs/conformance.md
	$(BIN)/python -m tests.conformance -n $(REAL_WORKERS) $(ARGS)

conformance-smoke: conformance-setup  ## The four most telling scenarios, and one pipeline
	$(BIN)/python -m tests.conformance --smoke -n $(REAL_WORKERS) $(ARGS)

conformance-setup: setup  ## Install the pinned CLIs (npm, 1.7 GB)
	@$(BIN)/python -m tests.conformance.install

mcp-setup: setup  ## Install MCP clients and axe-core for tests
	@$(BIN)/python -m tests.support.mcp_setup

screenshots: setup  ## Write the pictures of the README
	$(BIN)/python -m tests.screenshots $(ARGS)

bench: setup  ## Measure, next to a baseline built in the same run
	$(BIN)/python -m benchmarks $(ARGS)

clean:  ## Remove caches and build results
	rm -rf dist build .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean  ## Remove the virtual environment too
	rm -rf $(VENV)
