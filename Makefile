# Each recipe bootstraps what it needs: a Python environment in .venv with the native module
# built in release mode. Cargo and maturin share one target folder.

PYTHON ?= python3
ARGS ?=
FILES ?=
VENV := .venv
BIN := $(VENV)/bin
ARCH := $(shell uname -m)
# What confines users' programs lies beside the Python code that starts it.
SANDBOX = $(or $(CARGO_TARGET_DIR),target)/release/swathe-sandbox
SANDBOX_PROGRAM := python/swathe/sandbox/swathe-sandbox
EXTRAS := dev,portal
# The Python module has no tests of Rust, and is built by maturin.
TEST_RUST := cargo test --release --workspace --exclude swathe-python --quiet
PYTEST := $(BIN)/python -m pytest -q -rsR --reruns 1 --durations=20
# Many tests wait, so there are more of them at a time than processors.
QUICK := -n $$(($$(nproc) * 2)) --dist loadfile
# In the order of tests/conftest.py: the longest files first.
PARALLEL := $(QUICK) --no-loadscope-reorder
# Property tests try the same examples in everybody's run, in Rust as in Python. Plain `cargo test`
# tries new ones.
export PROPTEST_RNG_SEED ?= 20261126
# Without its own bytecode each process of a test would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
export SWATHE_TEST_DATA ?= $(abspath ../shared/data)

.PHONY: run test test-rust test-python test-more test-all lint fmt bench bench-tracing run-study order-study fuzz lock audit docs \
	wheel install-c bundles stars clean

run: $(VENV)/built
	$(BIN)/swathe demo --output build --overwrite $(ARGS) $(FILES)

# What a contributor runs. Tests of Rust mostly wait for servers that hang, so they run beside those
# of Python. A file of Python tests runs in one process, four files at once on two cores, since many
# tests wait. A machine that others use as well can stop any process for seconds: a test of Python
# that fails is tried once more, and the summary names it.
test: $(VENV)/built
	$(TEST_RUST) --no-run
	$(MAKE) --no-print-directory --jobs 2 test-rust test-python

# Without the flags of make: rustdoc would warn that it cannot join its job server.
test-rust:
	MAKEFLAGS= RUST_TEST_THREADS=$$(($$(nproc) * 2)) $(TEST_RUST)

test-python: $(VENV)/built
	$(PYTEST) -m "not more and not long" $(QUICK) $(ARGS)

# The rest: real servers, browsers, databases, batch systems and kills; then, alone, what asserts
# times; then a little fuzzing. ARGS=--hypothesis-profile=thorough tries more examples of properties,
# in `make test` as well; SWATHE_TEST_KILLS=100 and SWATHE_TEST_MANY=1 kill more and cut more.
test-more: $(VENV)/built
	$(PYTEST) -m "more and not long" $(PARALLEL) $(ARGS)
	$(PYTEST) -m long $(ARGS)
	fuzz/run $(or $(SECONDS_EACH),10)

test-all: test test-more

# Before anything is built: clippy and maturin make cargo build pyo3 anew for each other.
lint: $(VENV)/ready
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fmt: $(VENV)/built
	cargo fmt --all
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format -q .

# A comparison with peers; then each file of benches/ by its name, as `make bench-portal`.
bench bench-%: EXTRAS := dev,portal,bench
bench: $(VENV)/built
	$(BIN)/python benches/run.py $(ARGS)

bench-%: $(VENV)/built
	$(BIN)/python benches/$*.py $(ARGS)

# An application's run over five placements on stores with the rates of the multi-storage paper.
run-study: $(VENV)/built
	$(BIN)/python benches/run_study.py $(ARGS)

# Reductions of swaths under light and heavy load. As root.
order-study: $(VENV)/built
	$(BIN)/python benches/order_study.py $(ARGS)

bench-tracing: $(VENV)/built
	cargo test --release -p swathe-trace --test speed -- --ignored --nocapture
	$(BIN)/python benches/tracing.py $(ARGS)

fuzz:
	fuzz/run $(or $(SECONDS_EACH),30)

# The site of docs/, into build/docs. Its own packages are installed here only.
docs: $(VENV)/built $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

# A wheel for each Python from 3.11 and each Linux with glibc 2.17 or newer, into build/wheels. Zig
# links with that glibc. maturin refuses a library that needs more, and auditwheel shows what it needs.
# The folder is its own: where another linker was used, cargo would build all of it again.
WHEEL_TARGET = $(or $(CARGO_TARGET_DIR),$(abspath target))/wheel
wheel: $(VENV)/wheel
	rm -rf build/wheels
	mkdir -p build/zig
	printf '#!/bin/sh\nexec maturin zig cc -- -target %s-linux-gnu.2.17 "$$@"\n' $(ARCH) > build/zig/cc
	chmod +x build/zig/cc
	PATH="$(abspath $(BIN)):$$PATH" CARGO_TARGET_DIR=$(WHEEL_TARGET) cargo --config 'target.$(ARCH)-unknown-linux-gnu.linker="$(abspath build/zig/cc)"' \
		build --release --quiet -p swathe-sandbox --target $(ARCH)-unknown-linux-gnu
	install -s -m 755 $(WHEEL_TARGET)/$(ARCH)-unknown-linux-gnu/release/swathe-sandbox $(SANDBOX_PROGRAM)
	PATH="$(abspath $(BIN)):$$PATH" CARGO_TARGET_DIR=$(WHEEL_TARGET) maturin build --release --quiet --zig \
		--compatibility manylinux_2_17 --auditwheel check --out build/wheels
	$(BIN)/auditwheel show build/wheels/*.whl

# libswathe for programs in C and Fortran: header, shared and static library, file of pkg-config. It
# needs Rust alone. DESTDIR is put before PREFIX, as packagers want it.
PREFIX ?= /usr/local
C_VERSION = $(shell sed -n '/workspace.package/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
C_TARGET = $(or $(CARGO_TARGET_DIR),target)/release
C_LIB = $(DESTDIR)$(PREFIX)/lib

install-c:
	cargo build --release --quiet -p swathe-capi
	install -d $(DESTDIR)$(PREFIX)/include $(C_LIB)/pkgconfig
	install -m 644 crates/capi/include/swathe* $(DESTDIR)$(PREFIX)/include/
	install -m 755 $(C_TARGET)/libswathe.so $(C_LIB)/libswathe.so.$(C_VERSION)
	ln -sf libswathe.so.$(C_VERSION) $(C_LIB)/libswathe.so.0
	ln -sf libswathe.so.0 $(C_LIB)/libswathe.so
	install -m 644 $(C_TARGET)/libswathe.a $(C_LIB)/
	strip --strip-debug $(C_LIB)/libswathe.so.$(C_VERSION) $(C_LIB)/libswathe.a
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(C_VERSION)|' crates/capi/swathe.pc.in \
		> $(C_LIB)/pkgconfig/swathe.pc

# What the portal's pages take from npm (VTK, OpenSeadragon, d3-geo), bundled from the versions of
# web/bundles/package-lock.json. The result is a part of the sources: only who changes a version needs Node.
bundles:
	cd web/bundles && npm ci --ignore-scripts --no-audit --no-fund && \
		node build.mjs ../../python/swathe/portal/pages/static

# The table of star names, from the version of web/stars/package-lock.json. It is a part of the sources, too.
stars:
	cd web/stars && npm ci --ignore-scripts --no-audit --no-fund && \
		node build.mjs ../../python/swathe/files/targets/stars.tsv

# The versions that are installed, with their hashes; what CI and the tests use is dev.lock.
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command 'make lock'

lock: $(VENV)/ready
	$(LOCK) $(ARGS) --group installer --output-file requirements/installer.lock
	$(LOCK) pyproject.toml $(ARGS) --extra dev --extra portal --output-file requirements/dev.lock
	$(LOCK) pyproject.toml $(ARGS) --extra portal --output-file requirements/portal.lock
	$(LOCK) pyproject.toml $(ARGS) --extra cluster --output-file requirements/cluster.lock
	$(LOCK) pyproject.toml $(ARGS) --extra docs --constraint requirements/dev.lock --output-file requirements/docs.lock
	$(LOCK) $(ARGS) --group wheel --constraint requirements/dev.lock --output-file requirements/wheel.lock

# Not a part of CI: both ask for advisories in the internet, and fail where they get none.
audit: $(VENV)/ready
	$(BIN)/pip install -q pip-audit
	[ -x .tools/bin/cargo-audit ] || cargo install --quiet --locked cargo-audit --root .tools
	@python=0; rust=0; \
	for lock in requirements/*.lock; do \
		$(BIN)/pip-audit --disable-pip --require-hashes --strict -r $$lock || python=1; \
	done; \
	.tools/bin/cargo-audit audit || rust=1; \
	[ $$python$$rust = 00 ] || { echo "audit: FAILED: expected advisories to be read and none to" \
		"apply; either one applies, or they cannot be reached from here and nothing was" \
		"checked: see above" >&2; exit 1; }

clean:
	rm -rf $(VENV) build target

INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes

$(VENV)/ready: requirements/installer.lock requirements/dev.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r $<
	$(INSTALL) -r requirements/dev.lock
	touch $@

# Versions that dev.lock has, too, are the same in both.
$(VENV)/docs $(VENV)/wheel: $(VENV)/%: requirements/%.lock $(VENV)/ready
	$(INSTALL) -r $<
	touch $@

$(VENV)/docs: | $(VENV)/built

# Asked every time, cheap when nothing changed: cargo and pip know what is out of date.
$(VENV)/built: $(VENV)/ready FORCE
	@command -v cargo >/dev/null || { echo "Rust 1.95 or newer is needed: https://rustup.rs"; exit 1; }
	PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 VIRTUAL_ENV=$(abspath $(VENV)) \
		$(BIN)/maturin develop --release --quiet --extras $(EXTRAS)
	cargo build --release --quiet -p swathe-sandbox
	cmp -s $(SANDBOX) $(SANDBOX_PROGRAM) || install -m 755 $(SANDBOX) $(SANDBOX_PROGRAM)
	@touch $@

FORCE:
