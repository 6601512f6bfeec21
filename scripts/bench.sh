#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh BUILD [--json] [--quick] [name...] - runs the benchmarks of bench/ one after another.
set -eu
build=$1
shift
flags= names=
for word; do
    case $word in
    --*) flags="$flags $word" ;;
    *) names="$names $word" ;;
    esac
done
[ -n "$names" ] || names=$(cd "$build/bench" && ls)
for name in $names; do
    [ -f "$build/bench/$name" ] && [ -x "$build/bench/$name" ] || continue
    case $flags in
    *--json*) ;;
    *) printf '\n== bench/%s\n' "$name" ;;
    esac
    "$build/bench/$name" $flags || printf '   bench/%s could not measure\n' "$name" >&2
done
