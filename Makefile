# perhop: everything a reader or a developer types. Needs Python >= 3.11, stable Rust, make and a C compiler; no root.
#
#   make reproduce ARGS='kim-table1 --runs 12'     arguments go to `perhop reproduce`
#   make reproduce PYTHON=python3.13               another interpreter for .venv
#   make fast                                      an engine that is optimized as that of a wheel: some minutes more, and 15 % faster
#
# All that is built lies in .venv, target and python/perhop/_engine.*.so; what is current is not built again.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
ENGINE := python/perhop/_engine.abi3.so
# The stamps lie in the environment, so they vanish with it.
RUNTIME := $(VENV)/.installed-runtime
DEV := $(VENV)/.installed-dev
SITE := $(VENV)/.installed-site

# Directories are listed too: their time changes when a file in them comes or goes.
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -type d -o -type f 2>/dev/null)
# Tests and commands start Python hundreds of times: it keeps what it has compiled, which the installation leaves to it.
unexport PYTHONDONTWRITEBYTECODE

# A PyO3 crate links against no Python by itself, so plain cargo builds of it cannot run; pytest tests it.
RUST_PACKAGES := --workspace --exclude perhop-python
PYTHON_SOURCES := python tests tools benches
export PYTHON

.PHONY: help
help: ## Show this help
	@printf 'usage: make TARGET\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: reproduce
reproduce: $(ENGINE) ## Rerun the papers' tables and figures (ARGS='STUDY… --runs N --out DIR')
	@$(BIN)/perhop reproduce $(ARGS)

.PHONY: papers
papers: $(ENGINE) ## Rerun everything and write docs/papers, docs/today.md and docs/workloads.md (many minutes)
	@$(BIN)/perhop reproduce --all
	@$(BIN)/python -m tools.papers papers results
	@$(BIN)/python -m tools.papers today results
	@$(BIN)/python -m tools.papers workloads results

.PHONY: today
today: $(ENGINE) ## Hold the papers' mechanisms against today's and write docs/today.md (some minutes)
	@$(BIN)/perhop reproduce today --out results/today
	@$(BIN)/python -m tools.papers today results/today

.PHONY: workloads
workloads: $(ENGINE) ## Run the papers' mechanisms under users and write docs/workloads.md (some minutes)
	@$(BIN)/perhop reproduce workloads --out results/workloads
	@$(BIN)/python -m tools.papers workloads results/workloads

.PHONY: validity
validity: $(ENGINE) $(DEV) ## Measure perhop beside theory, ns-2, ns-3 and the kernel, and write docs/project/validity.md (20 minutes)
	$(BIN)/python -m tools.validity $(ARGS)

.PHONY: kernel-rows
kernel-rows: $(ENGINE) $(DEV) ## Measure perhop beside a kernel testbed's published rows, into docs/project/validity.md (some minutes)
	$(BIN)/python -m tools.validity --only testbed

.PHONY: soundness
soundness: cargo ## Hold the bounds of ten thousand random networks against simulations of them (a minute)
	@cargo test --locked --package perhop-bounds --test all -- --ignored

.PHONY: coverage
coverage: $(ENGINE) $(DEV) ## Try how often intervals contain what they are for, and write it into docs/project/validity.md (five hours of a core)
	$(BIN)/python -m tools.coverage --write $(ARGS)
	$(BIN)/python -m tools.coverage.stopped --write
	$(BIN)/python -m tools.coverage.warmed --write
	$(BIN)/python -m tools.coverage.splitting --write
	$(BIN)/python -m tools.validity --render

# The engine comes first: perhop works while the explorer is still being compiled.
.PHONY: build
build: $(ENGINE) ## Set up .venv with perhop in it; then the explorer, if Node.js and its Rust target are there
	@tools/explorer.sh --optional $(EXPLORER)

.PHONY: engine
engine: $(ENGINE) ## The same without the explorer

# Where this engine is there already, cargo compiles nothing.
.PHONY: fast
fast: $(RUNTIME) ## Compile the engine with all optimization, as for a wheel: 15 % faster, and some minutes more to compile
	@$(MAKE) --always-make --assume-old=$(RUNTIME) PROFILE=release $(ENGINE)

# Packages are installed while Rust compiles, which uses all processors, but not all of the time.
.PHONY: test
test: ## Run the tests, Rust and Python
	@$(MAKE) --jobs 2 test-rust $(DEV)
	@$(MAKE) test-python

.PHONY: test-all
test-all: test test-long ## The same, and what takes long by nature

.PHONY: test-rust
test-rust: cargo
	cargo test --locked $(RUST_PACKAGES) --lib --bins --tests

# What takes long by nature, and examples in the documentation, which are all compiled for themselves.
.PHONY: test-long
test-long: $(ENGINE) $(DEV)
	cargo test --locked $(RUST_PACKAGES) --doc
	$(BIN)/python -m pytest -m long $(PYTEST_JOBS) $(PYTEST_ARGS)

# Several processes; tests/python/conftest.py says which tests stay together. Some wait for a clock or a disk, so there is
# one more process than processors.
PYTEST_JOBS ?= --numprocesses $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 8 ? n + 1 : 8))) --dist loadgroup

# The server of commands loads what all of them need, and ends where nobody asks it for one: so one process compiles the
# packages, and not all at once.
.PHONY: test-python
test-python: $(ENGINE) $(DEV)
	@$(BIN)/python -m tests.python.processes </dev/null
	$(BIN)/python -m pytest $(PYTEST_JOBS) $(PYTEST_ARGS)

# Seeds follow one another from PERHOP_FAULTS_SEED (1); another range tries others.
FAULTS ?= 10000

.PHONY: faults
faults: $(ENGINE) $(DEV) ## Run commands on a file system that fails, 10 000 times (half an hour; FAULTS=N)
	PERHOP_FAULTS=$(FAULTS) $(BIN)/python -m pytest tests/python/stores/test_faults.py --timeout 7200 $(ARGS)

.PHONY: lint
lint: lint-rust lint-python lint-words lint-generated ## Check formats, lints, types, words and generated files

.PHONY: lint-rust
lint-rust: cargo $(RUNTIME)
	cargo fmt --all --check
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo clippy --locked --workspace --all-targets -- --deny warnings

.PHONY: lint-python
lint-python: $(DEV)
	$(BIN)/ruff check $(wildcard $(PYTHON_SOURCES))
	$(BIN)/ruff format --check $(wildcard $(PYTHON_SOURCES))
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --no-warn-unreachable python/perhop

.PHONY: lint-words
lint-words: $(DEV)
	$(BIN)/python -m tools.doc_words

.PHONY: lint-generated
lint-generated: $(ENGINE) $(DEV)
	$(BIN)/python -m tools.generate --check

.PHONY: generate
generate: $(ENGINE) $(DEV) ## Write the files that are generated from the engine
	$(BIN)/python -m tools.generate

.PHONY: book
book: cargo $(RUNTIME) ## Write the developers' book: what the Rust modules say of themselves (target/doc)
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo doc --locked --workspace --no-deps --document-private-items

.PHONY: site
site: $(ENGINE) $(SITE) ## Build the documentation site, with its pictures (target/site/html; about two minutes)
	@if [[ -z $$(command -v node) || -z $$(command -v npm) ]]; then echo "no Node.js: the explorer is not built"; \
	else tools/explorer.sh $(EXPLORER) || { status=$$?; [[ $$status == 3 ]] && echo "the explorer is left out"; }; fi
	@$(BIN)/python -m tools.documentation

.PHONY: format
format: cargo $(DEV) ## Put all sources into their standard format
	cargo fmt --all
	$(BIN)/ruff check --fix $(wildcard $(PYTHON_SOURCES))
	$(BIN)/ruff format $(wildcard $(PYTHON_SOURCES))

.PHONY: bench
bench: fast ## Measure blocks, runs beside other simulators where they are installed, growth, and searches (half an hour)
	cargo bench --locked $(RUST_PACKAGES) --bench '*' -- --max-time 1
	$(BIN)/python -m benches.blocks
	$(BIN)/python -m benches.peers.compare
	$(BIN)/python -m benches.python_blocks
	$(BIN)/python -m benches.matrix
	$(BIN)/python -m benches.growth
	$(BIN)/python -m benches.flows
	$(BIN)/python -m benches.sweep
	$(BIN)/python -m benches.questions
	$(BIN)/python -m benches.tuning
	$(BIN)/python -m benches.stepping
	$(BIN)/python -m benches.data_plane

.PHONY: router
router: cargo ## Build perhop-router, for real packets on Linux (target/release/perhop-router)
	cargo build --locked --release --package perhop-router

# All targets in turn, each for so many seconds (FUZZ_SECONDS=1800 for half an hour).
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= parse frame plane reload run_loop scenario engines router_config request capture replay
FUZZ_PYTHON_TARGETS ?= sweep tune plan configuration export scenario_file runs measures record endpoint

.PHONY: fuzz
fuzz: cargo $(ENGINE) $(DEV) ## Feed every input whatever bytes there are (a minute for each target; FUZZ_SECONDS=N)
	@tools/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)
	@for target in $(FUZZ_PYTHON_TARGETS); do \
		$(BIN)/python -m tools.fuzz_python $$target -max_total_time=$(FUZZ_SECONDS) -max_len=4096 || exit; \
	done

# With debug assertions, and one story after the other (SOAK_SECONDS=60 for a minute each).
SOAK_SECONDS ?= 600

.PHONY: soak
soak: cargo ## Keep perhop-router in service under attack, reloads, kills, jumps of the clock and a full disk (an hour, as root)
	PERHOP_SOAK=$(SOAK_SECONDS) cargo test --locked --package perhop-router --test soak -- --nocapture --test-threads 1

# Their tools stand in an environment of their own, which nothing that is built or tested sees.
AUDIT := target/audit
AUDIT_TOOLS := $(AUDIT)/.installed

$(AUDIT_TOOLS): requirements-audit.lock
	@mkdir -p target
	@tools/venv.sh $(AUDIT) $< $@

# Their tools stand in an environment of their own, too.
WHEELS := target/wheel-tools
WHEEL_TOOLS := $(WHEELS)/.installed
TARGETS ?=

$(WHEEL_TOOLS): requirements-wheels.lock
	@mkdir -p target
	@tools/venv.sh $(WHEELS) $< $@

.PHONY: wheels
wheels: cargo $(WHEEL_TOOLS) ## Build wheels for Linux, macOS and Windows, and an sdist, into target/wheels (TARGETS='T…' for some)
	@$(WHEELS)/bin/python -m tools.wheels $(WHEELS)/bin $(TARGETS)

.PHONY: try-wheel
try-wheel: ## Install the wheel of this machine where there is no Rust, and run the commands of the README and the tour
	@$(WHEELS)/bin/python -m tools.try_wheel $(ARGS)

# In place of compiling the engine once more: what is tested is then what the wheel holds.
.PHONY: engine-of-wheel
engine-of-wheel: $(RUNTIME) ## Take the engine of the wheel of this machine that `make wheels` built
	@$(BIN)/python -m tools.engine_of_wheel target/wheels/*linux*$$(uname -m).whl
	@touch $(ENGINE)

.PHONY: audit
audit: cargo $(AUDIT_TOOLS) ## Hold the dependencies against deny.toml and the databases of known weaknesses
	@$(AUDIT)/bin/python -m tools.audit $(AUDIT)/bin/pip-audit

.PHONY: sbom
sbom: cargo $(AUDIT_TOOLS) ## Write bills of materials (CycloneDX) of crates and packages to target/sbom
	@tools/sbom.sh $(AUDIT)

.PHONY: mutants
mutants: cargo $(ENGINE) $(DEV) ## Change the code in small ways and list what no test notices (hours; docs/project/mutants.md)
	@tools/mutants.sh rust
	@tools/mutants.sh python

.PHONY: wasm
wasm: cargo ## Check that core and simulator need no operating system (WebAssembly without imports)
	@tools/wasm.sh

# The page, its worker and the gallery, where `perhop explore` looks for them.
EXPLORER := python/perhop/explorer

.PHONY: explorer
explorer: cargo ## Build the explorer for the browser into the package (needs Node.js)
	@tools/explorer.sh $(EXPLORER)

.PHONY: test-explorer
test-explorer: explorer ## Test the explorer in Node and, if there is Chromium, in a browser
	@tools/test_explorer.sh $(EXPLORER)

.PHONY: lock
lock: ## Refresh the lock files from pyproject.toml (ARGS=--upgrade for the newest versions)
	tools/lock.sh $(ARGS)

.PHONY: clean
clean: ## Remove everything that was built or installed here
	rm -rf $(VENV) $(VENV).unfinished target python/perhop/_engine.*.so $(EXPLORER) explorer/node_modules
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find python tests tools benches -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.PHONY: cargo
cargo:
	@command -v cargo >/dev/null || { echo 'error: no cargo found; install stable Rust (https://rustup.rs)' >&2; exit 2; }

# An environment that has lost its interpreter, or whose set-up was cut short, is made anew from here.
$(shell test -x $(BIN)/python -a ! -e $(VENV).unfinished || rm -f $(RUNTIME) $(DEV) $(SITE))

$(RUNTIME): requirements.lock | cargo
	$(eval COMPILED := $(MEANWHILE))
	@tools/venv.sh $(VENV) $< $@ $(MEANWHILE)

$(DEV): requirements-dev.lock $(RUNTIME)
	@tools/venv.sh $(VENV) $< $@

$(SITE): requirements-site.lock $(RUNTIME)
	@tools/venv.sh $(VENV) $< $@

# The profile of Cargo.toml that the engine is compiled with.
PROFILE ?= first

.PHONY: compile
compile:
	@echo 'compiling the engine: two or three minutes on two cores when it is the first time (Ctrl-C keeps the crates that are compiled)'
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --locked --profile $(PROFILE) --skip-install

# An environment that is made for the engine is filled while the engine compiles, as soon as maturin is in it.
$(ENGINE): MEANWHILE = maturin $(MAKE) compile

# Builds in place, with the locked maturin: first with the progress that cargo shows, which pip would hide. Nothing is fetched but
# crates: the lock has installed every dependency, and `pip check` says so if pyproject.toml asks for one beyond it.
$(ENGINE): pyproject.toml $(RUST_SOURCES) $(RUNTIME)
	$(if $(COMPILED),,@$(MAKE) compile)
	@PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--config-settings=build-args=--profile=$(PROFILE) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip --disable-pip-version-check check --quiet
	@touch $@
