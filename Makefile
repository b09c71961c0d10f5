# `make` alone prints the targets.
.DEFAULT_GOAL := help
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
CASE ?=
PACKETS ?=

help: ## print this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

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
	$(BIN)/pytest -n 2 -m "slow or not slow"

test-real: setup ## real harness programs from npm against a scripted model
	$(BIN)/pytest -m real tests

truth: setup ## what was recorded of every capture beside what really happened
	$(BIN)/python -m tests.truth

schedules: setup ## 200 random schedules with restarts, kills and power cuts
	$(BIN)/python -m tests.schedules 200

golden: setup ## make expected streams anew: make golden CASE=codex/S1
	$(BIN)/python -m tests.golden $(CASE)

score: setup ## the 31 metrics of Session-Bench on our streams (PACKETS=folder of the public packets adds those)
	$(BIN)/python -m tests.score $(PACKETS)

handoff-compare: setup ## ccusage's figures beside ours on the bench's home and the captures, with the reason of each difference
	$(BIN)/python bench/compare_ccusage.py bench/out/home-7-300-100 $(wildcard tests/captures/*/S*/home)

bench: setup ## share of known facts in a brief, beside the transcript's tail and whole
	$(BIN)/python -m tests.handoff.recall

docs: setup ## rewrite the samples of docs/format.md from the captures
	$(BIN)/python -m tests.samples

bench: setup ## speed, memory and latency on a large home with known totals
	$(BIN)/python bench/bench.py

.PHONY: help compare setup lint test score handoff-bench docs check test-slow test-real truth schedules golden bench
