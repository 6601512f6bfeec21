# SPDX-License-Identifier: Apache-2.0
# A thin front for CMake. Each target works from a fresh clone on Debian 12 and installs the
# packages it needs (scripts/packages.txt).
PRESET ?= release
BUILD  := build/$(PRESET)
PREFIX ?= /usr/local

.PHONY: all demo test bench install check check-all lint asan tsan clang debug aarch64 clean \
        packages packages-test packages-check examples FORCE

all: $(BUILD)/build.ninja
	cmake --build $(BUILD)

packages:
	@scripts/install_packages.sh build
packages-test:
	@scripts/install_packages.sh test
packages-check:
	@scripts/install_packages.sh check

$(BUILD)/build.ninja: | packages
	cmake --preset $(PRESET) $(CMAKE_ARGS)

demo: all
	@scripts/demo.sh $(BUILD)

# make example-roundtrip, example-events, ...: one target for each program of examples/
example-peers: RUN_OPTIONS := --cards 2
example-%: all
	$(BUILD)/bin/belay run $(RUN_OPTIONS) -- $(BUILD)/examples/$*

# The tests of the README: checks of the tree, then every suite in debug and sanitized.
test: packages-test
	scripts/test.sh quick

check-all: packages-check
	scripts/test.sh all

bench: all
	@scripts/bench.sh $(BUILD)

lint: packages-test
	scripts/test.sh lint

debug asan tsan clang: packages-test
	scripts/test.sh preset $@
aarch64: packages-check
	scripts/test.sh build aarch64

install: all
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf build
