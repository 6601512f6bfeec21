#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh BUILD [name...] - runs the benchmarks of bench/ one after another.
set -eu
build=$1
shift
[ $# -gt 0 ] || set -- $(cd "$build/bench" && ls)
for name; do
    [ -x "$build/bench/$name" ] || continue
    printf '\n== bench/%s\n' "$name"
    "$build/bench/$name"
done
