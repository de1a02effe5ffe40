# `make tune` is for users; the other targets are for developers of tuner.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

SERVER ?= apache
BIN := .venv/bin

export PYTHON
# Without compiled files every command would compile all of tuner first, which takes longer than many tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 29

.PHONY: tune
tune: ## Find better settings for SERVER (apache, nginx, …) on this machine
	@.ci/programs tune "$(SERVER)"
	@.ci/python run
	@mkdir -p tune
	@[ -e "tune/$(SERVER).yaml" ] || $(BIN)/tuner init "$(SERVER)" -o "tune/$(SERVER).yaml"
	@# Exit 1 of a finished study says that no gain is proven: a result and no failure. The whole JSON is read:
	@# a reader that ended early would end `tuner show` by SIGPIPE.
	@$(BIN)/tuner run "tune/$(SERVER).yaml" --preset quick || { code=$$?; [ $$code -eq 1 ] && \
		$(BIN)/tuner show "tune/$(SERVER).yaml" --json | $(BIN)/python -c '$(IS_FINISHED)' || exit $$code; }

IS_FINISHED := import json, sys; sys.exit(json.load(sys.stdin)["state"] != "finished")

.PHONY: setup
setup: ## Install what the other targets need: system packages and .venv
	@.ci/programs test
	@.ci/python dev
	@.ci/unpack

# These tests have targets of their own. Without a word of markers, pyproject.toml leaves out the same.
APART := tools or servers or deb
# CONTRIBUTING.md says what belongs there.
MORE := more or statistical

# More than processors: many tests wait for what happens in its own time. With three times as many, real servers
# and their load generators wait for each other, and tests of them fail that are right.
WORKERS = $$(($$(nproc) * 2))
TOGETHER = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: test
test: lint ## Run all checks, and a test of every rule
	@$(TOGETHER) -m "not (alone or $(MORE) or $(APART))"
	@$(BIN)/python -m pytest -m "alone and not ($(MORE) or $(APART))"

.PHONY: test-more
test-more: setup ## Run the long tests that `make test` leaves out, and more examples of each property
	@.ci/python ansible-lint
	@$(TOGETHER) -m "($(MORE) or hypothesis) and not (alone or $(APART))" --hypothesis-profile=all-examples
	@$(BIN)/python -m pytest -m "($(MORE)) and alone and not ($(APART))"

.PHONY: lint
lint: setup ## Run ruff and mypy (import-linter runs as a test)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

.PHONY: coverage
coverage: setup ## Run the tests and show the lines that they miss
	@$(BIN)/coverage run -m pytest
	@$(BIN)/coverage report

.PHONY: docs
docs: setup ## Build the documentation as a site (site/index.html); fails on a broken link
	@$(BIN)/python -m sphinx --fresh-env --builder html --quiet --fail-on-warning --doctree-dir build/doctrees docs site

.PHONY: session
session: setup ## Record what `tuner show` and `tuner explain` print about STUDY as pictures of the documentation
	@$(BIN)/python -m docs.generate.session "$(STUDY)" docs/images

.PHONY: pictures
pictures: setup ## Renew the pictures of the documentation from STUDY, a finished study
	@$(BIN)/python -m benchmarks.pictures "$(STUDY)"

.PHONY: tools
tools: .tools/bin/oha .tools/bin/k6 .tools/bin/vegeta .tools/bin/kubeconform ## Build oha, k6, vegeta and kubeconform, which Debian lacks (needs cargo and go; takes a while)

.tools/bin/oha:
	@type -P cargo >/dev/null || { echo "tools: cargo is missing. Install Rust, then run this again." >&2; exit 3; }
	@cargo install oha --locked --version 1.16.0 --root .tools

.tools/bin/k6:
	@type -P go >/dev/null || { echo "tools: go is missing. Install Go, then run this again." >&2; exit 3; }
	@GOBIN="$(CURDIR)/.tools/bin" go install go.k6.io/k6@v1.8.1

.tools/bin/vegeta:
	@type -P go >/dev/null || { echo "tools: go is missing. Install Go, then run this again." >&2; exit 3; }
	@GOBIN="$(CURDIR)/.tools/bin" go install github.com/tsenart/vegeta/v12@v12.13.0

.tools/bin/kubeconform:
	@type -P go >/dev/null || { echo "tools: go is missing. Install Go, then run this again." >&2; exit 3; }
	@GOBIN="$(CURDIR)/.tools/bin" go install github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0

.PHONY: test-tools
test-tools: setup tools ## Run the tests that need oha, k6, vegeta and kubeconform
	@PATH="$(CURDIR)/.tools/bin:$$PATH" $(BIN)/python -m pytest -m tools

.PHONY: test-servers
test-servers: setup ## Run one short study of every server to a confirmed winner (some minutes)
	@$(BIN)/python -m pytest -m servers

.PHONY: test-deb
test-deb: setup ## Build the Debian package, check it with lintian, install, use and remove it on a test host
	@.ci/programs deb
	@$(BIN)/python -m pytest -m deb

.PHONY: test-pythons
test-pythons: setup ## Run tests without servers under each Python 3.11 to 3.14 on the PATH, or PYTHONS (TESTS: fewer tests)
	@.ci/pythons $(PYTHONS)

export TESTS

.PHONY: bench
bench: setup ## Measure how well the main job works on this machine
	@$(BIN)/python -m benchmarks.main_job

.PHONY: bench-tune
bench-tune: setup ## Run `make tune` with a new study for each of RUNS (nginx:1 apache:2 …), results in TO (five minutes each)
	@$(BIN)/python -m benchmarks.fresh_tunes "$(TO)" $(RUNS)

.PHONY: bench-servers
bench-servers: setup ## Run a quick study of every server, or of ROWS, and write a table (ten minutes each)
	@$(BIN)/python -m benchmarks.servers --folder "$(SERVERS)" --rows "$(ROWS)"

SERVERS ?= bench-servers

.PHONY: bench-measure
bench-measure: setup ## Measure how far you can trust measurements, simulated and real
	@$(BIN)/python -m benchmarks.measure

.PHONY: bench-fleet
bench-fleet: setup ## Measure trials per hour of 1 to 64 hosts, a controller of 1,000, and the speed-up of 16 (an hour)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fleet.scaling --preset standard --seconds 120
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fleet.scaling --preset standard --seconds 120 --hosts 64 --there 1000
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fleet.many
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fleet.play
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fleet.decisions

.PHONY: bench-fleet-faults
bench-fleet-faults: setup ## Break ten studies of several hosts ten times each, and check the results (20 minutes)
	@$(BIN)/python -m benchmarks.fleet.faults

.PHONY: bench-report
bench-report: setup ## Time the page and the explanation of a study with 200 trials, or of STUDY (three minutes)
	@$(BIN)/python -m benchmarks.report $(if $(STUDY),"$(STUDY)")

.PHONY: bench-robust
bench-robust: setup ## Compare winners tuned on eight simulated hosts with winners tuned on one (an hour)
	@$(BIN)/python -m benchmarks.fleet.robust --workers "$$(nproc)"

.PHONY: bench-traffic
bench-traffic: setup ## Measure how fast access logs of 1 GiB are read in each format, and in how much memory (ten minutes)
	@$(BIN)/python -m benchmarks.traffic

.PHONY: bench-rates
bench-rates: setup ## Measure how h2load, oha and vegeta keep a rate: CPU time, lateness, bursts (two minutes)
	@$(BIN)/python -m benchmarks.rate_generators

.PHONY: bench-steady
bench-steady: setup ## Measure goodput over the age of a server, for nginx and Apache (25 minutes)
	@$(BIN)/python -m benchmarks.steady_state --json "$(WINDOWS)"

WINDOWS ?= steady.json

.PHONY: bench-faults
bench-faults: setup ## Break managed runs 300 times, and play 2,000 sequences of commands, edits, signals and losses
	@$(BIN)/python -m benchmarks.faults
	@$(BIN)/python -m benchmarks.faults.sequences

.PHONY: bench-exports
bench-exports: setup ## Apply ten random winners of each server with every tool that reads exports, and undo them (two hours)
	@EXPORTED_WINNERS=10 $(BIN)/python -m pytest -n $(WORKERS) -k random \
		tests/integration/test_exports_applied.py tests/integration/test_exports_by_consumers.py \
		tests/integration/test_role_sequences.py

.PHONY: bench-real-configs
bench-real-configs: setup ## Find, change and undo settings in a FOLDER of configurations that others wrote
	@$(BIN)/python -m benchmarks.real_configs "$(FOLDER)"

.PHONY: bench-real-logs
bench-real-logs: setup ## Make a load of each access log in a FOLDER, and compare it with what is sent
	@$(BIN)/python -m benchmarks.real_logs "$(FOLDER)"

.PHONY: bench-slow-clients
bench-slow-clients: setup ## Compare a quick study's winner with its baseline while slow clients are connected (SERVER, or STUDY=FILE)
	@$(BIN)/python -m benchmarks.slow_clients $(if $(STUDY),--study "$(STUDY)",--server "$(SERVER)")

.PHONY: bench-hostile
bench-hostile: setup ## Check 2,000 hostile study files, and what they open, add and cost
	@$(BIN)/python -m benchmarks.hostile_studies

.PHONY: bench-hostile-storages
bench-hostile-storages: setup ## Read 1,000 tampered studies, and check what they break, open and run (an hour)
	@$(BIN)/python -m benchmarks.hostile_storages

.PHONY: bench-optimizer
bench-optimizer: ## Compare the optimizer with its peers on recorded and synthetic surfaces (some gigabytes, hours)
	@.ci/python bench
	@.bench/bin/python -m benchmarks.optimizer --table benchmarks/optimizer-table.md

.PHONY: bench-campaign
bench-campaign: setup ## Play quick studies of 200 simulated servers and compare them with an earlier tuner (ten minutes)
	@$(BIN)/python -m benchmarks.campaign --arm ours --out "$(RESULTS)" --workers "$$(nproc)"
	@$(BIN)/python -m benchmarks.campaign --compare benchmarks/campaign/today.jsonl "$(RESULTS)"

RESULTS ?= ours.jsonl

.PHONY: bench-transfer
bench-transfer: setup ## Measure the effect of a corpus of 20 studies on a new one, right or wrong (an hour)
	@$(BIN)/python -m benchmarks.transfer --folder "$(CORPORA)" --workers "$$(nproc)"

CORPORA ?= bench-transfer

.PHONY: bench-time-left
bench-time-left: setup ## Compare predicted and real end of 40 quick studies of simulated servers (five minutes)
	@$(BIN)/python -m benchmarks.time_left --workers "$$(nproc)"

.PHONY: bench-advice
bench-advice: setup ## Cause 26 limits on test hosts, and print what `tuner advise` names first (three minutes)
	@$(BIN)/python -m benchmarks.advice

.PHONY: bench-advice-solved
bench-advice-solved: setup ## Follow the advice for five limits, and measure the load before and after (eight minutes)
	@$(BIN)/python -m benchmarks.advice_solved

.PHONY: bench-advice-time
bench-advice-time: setup ## Measure the seconds that `tuner advise` takes on a host and over SSH (a minute)
	@$(BIN)/python -m benchmarks.advice_time

.PHONY: bench-sweep
bench-sweep: setup ## Play 100 sweeps of simulated servers and compare the named values with the truth (five minutes)
	@$(BIN)/python -m benchmarks.sweeps.simulated --workers "$$(nproc)"

.PHONY: bench-warm-start
bench-warm-start: ## Measure the effect of an earlier study on a new one (ten minutes)
	@.ci/python bench
	@.bench/bin/python -m benchmarks.warm_start

.PHONY: dist
dist: setup ## Build wheel, source distribution, man page, completion, bill of materials and checksums into dist/
	@.ci/dist

.PHONY: release
release: ## Release VERSION: check, set the version, date the changelog, commit, tag, build dist/
	@.ci/release "$(VERSION)"
	@.ci/dist

.PHONY: deb
deb: setup ## Build a Debian package for this distribution, with all packages that tuner needs, into dist/
	@.ci/programs deb
	@.ci/deb

.PHONY: lock
lock: ## Renew requirements/ from pyproject.toml (needs uv)
	@$(COMPILE) pyproject.toml --group dev --extra dashboard --extra fleet --extra notebooks --extra websocket -o requirements/dev.txt >/dev/null
	@$(COMPILE) pyproject.toml --group build -c requirements/dev.txt -o requirements/run.txt >/dev/null
	@$(COMPILE) pyproject.toml --group build --group bench -c requirements/dev.txt -o requirements/bench.txt >/dev/null
	@echo ansible-lint | $(COMPILE) - -o requirements/ansible-lint.txt >/dev/null

# Hashes for every platform, and no word of where the packages come from.
COMPILE := uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-header --no-emit-index-url

.PHONY: clean
clean: ## Remove everything that these targets made, except tune/ and .tools/
	@rm -rf .venv .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist htmlcov site docs/project docs/reference
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
