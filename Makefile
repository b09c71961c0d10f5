# `make` alone prints the targets.
.DEFAULT_GOAL := help
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
CASE ?=
PACKETS ?=

help: ## print this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/asrd: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(BIN)/asrd

setup: $(BIN)/asrd ## a virtual environment with everything, in .venv

lint: setup ## ruff and pyright
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

test: setup ## the test suite
	$(BIN)/pytest -n 2

check: lint test ## everything CI runs

test-slow: setup ## the long schedules too
	$(BIN)/pytest -n 2 -m "not real and not browser"

test-real: setup ## real harness programs from npm against a scripted model
	$(BIN)/pytest -m real tests

test-ui: setup ## the page in headless Chromium, and asrd top
	command -v chromium >/dev/null || apt-get install -y chromium
	$(BIN)/pip install --quiet playwright
	npm install --silent --prefix $(VENV)/ui axe-core@4
	$(BIN)/pytest -m "browser or not browser" tests/ui tests/top

test-service: setup ## the service under a real systemd, in a machine of its own (root, debootstrap, user-mode-linux)
	$(BIN)/python -m tests.daemon.machine

bench-ui: setup ## frames, long tasks and layout shift of the page in headless Chromium, at 50,000 records (after make test-ui)
	$(BIN)/python -m tests.ui.speed

truth: setup ## what was recorded of every capture beside what really happened
	$(BIN)/python -m tests.truth

schedules: setup ## 200 random schedules with restarts, kills and power cuts
	$(BIN)/python -m tests.schedules 200

score: setup ## the 31 metrics of Session-Bench on our streams (PACKETS=folder adds the public packets)
	$(BIN)/python -m tests.score $(PACKETS)

pitfalls: setup ## the miscounts of other tools, as cases with the right figure
	$(BIN)/python -m tests.pitfalls

handoff-bench: setup ## share of known facts in a brief, beside the transcript's tail and whole
	$(BIN)/python -m tests.handoff.recall

faults: setup ## every fault as a figure, into docs/reliability.md
	$(BIN)/python -m tests.faults

fuzz: setup ## any bytes against recorders, framer, socket and validator, for a bounded time
	$(BIN)/python -m fuzz.run

bench: setup ## speed, memory and latency on a large home with known totals
	$(BIN)/python bench/bench.py

bench-search: setup ## search over 10,000 sessions
	$(BIN)/python bench/search.py

bench-scale: setup ## what grows with the store (bench/scale.py big|follow|backfill for more)
	$(BIN)/python bench/scale.py

bench-index: setup ## questions over an index of 10,000 streams and 2 million records
	$(BIN)/python bench/index.py

compare: setup ## ccusage's figures beside ours, with the reason of each difference
	$(BIN)/python bench/compare_ccusage.py bench/out/home-7-300-100 $(wildcard tests/captures/*/S*/home)

golden: setup ## make expected streams anew: make golden CASE=codex/S1
	$(BIN)/python -m tests.golden $(CASE)

docs: setup ## rewrite docs/harnesses.md, docs/errors.md and the samples of docs/format.md from the code and captures
	$(BIN)/python -m tests.samples

.PHONY: help setup lint test check test-slow test-real test-ui test-service truth schedules score pitfalls handoff-bench faults fuzz bench \
	bench-ui bench-search bench-scale bench-index compare golden docs
