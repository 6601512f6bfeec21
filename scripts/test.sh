#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh quick | all | lint | preset NAME | build NAME - what `make test` and its kin run.
#   quick   checks of the tree, every test suite in debug (gcc) and with ASan and UBSan (gcc), and
#           with TSan (clang) the suites of code that has threads
#   all     quick, and what is too slow for every change: every suite with clang, clang's static
#           analyzer, the aarch64 build, long stress
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)

began=$(date +%s)

# With the seconds since the start.
say() { printf '\n== %s (%d s)\n' "$*" $(($(date +%s) - began)); }

build() {
    cmake --preset "$1" >/dev/null
    cmake --build "build/$1" -j "$jobs"
}

run_preset() {
    say "build and test: $1"
    build "$1"
    ctest --preset "$1" -j "$jobs" ${2:+-L "$2"}
}

sources() { git ls-files '*.c' '*.h' | grep -v '^include/\(acl\|base\)/' |
    grep -v '^tests/abi/acl_layout.c$' | grep -v '^src/face/acl/acl_symbols.h$'; }

lint() {
    sources | grep -q . || { echo "no files to check: not a git checkout?" >&2; exit 1; }
    say "include direction"
    scripts/check_layers.py
    say "generated files are fresh"
    scripts/gen_acl.py --check
    scripts/gen_pyacl.py --check
    say "SPDX lines"
    scripts/check_spdx.sh
    say "formatting"
    sources | xargs clang-format --dry-run --Werror
    say "public headers alone: C11, C17, C++17, gcc and clang"
    scripts/check_headers.sh
}

# tidy WITHOUT: the checks of .clang-tidy but for these.
tidy() {
    say "clang-tidy without $1"
    cmake --preset clang >/dev/null
    cmake --build build/clang --target belay_version_script >/dev/null
    git ls-files 'src/*.c' 'tools/*.c' 'python/*.c' |
        xargs -P "$jobs" -n 1 clang-tidy --quiet -p build/clang --checks="$1" 2>/dev/null
}

case ${1:-quick} in
lint) lint ;;
preset) run_preset "$2" ;;
build) say "build: $2"; build "$2" ;;
quick | all)
    lint
    run_preset debug
    say "exported symbols"
    build release
    scripts/check_exports.sh build/release
    run_preset asan
    run_preset tsan
    tidy "-clang-analyzer-*" # which takes as long as all the rest
    if [ "$1" = all ]; then
        run_preset clang
        tidy "-bugprone-*,-misc-*,-performance-*,-readability-*"
        say "build: aarch64"
        build aarch64
        say "the guard on an emulated processor with protection keys"
        scripts/check_guard_pku.sh build/debug || [ $? -eq 2 ] # 2: no kernel to be had here
        say "stress with other seeds"
        for seed in $(seq 1 40); do
            TEST_SEED=$seed ctest --preset debug -j "$jobs" -L stress >/dev/null ||
                { echo "stress failed with TEST_SEED=$seed" >&2; exit 1; }
        done
    fi
    say "all passed"
    ;;
*) sed -n '3,6p' "$0" >&2; exit 2 ;;
esac
