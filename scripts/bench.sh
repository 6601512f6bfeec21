#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh BUILD [--json] [--quick] [name...] - runs the benchmarks of bench/ one after another, and
# last `serving`: the service of examples/ with each allocator.
# bench.sh BUILD --instructions - what a block's allocation and free, and recording an event take, counted by
# callgrind.
set -eu
build=$1
shift

# Instructions of the whole program with so many pairs. Valgrind leaves no room for large windows.
count() {
    BELAY_STATE=private BELAY_GUARD=off BELAY_WINDOW=16GiB BELAY_VMM_WINDOW=16GiB \
        valgrind --tool=callgrind --callgrind-out-file=/dev/null "$build/bench/$1" "$2" "$3" "$4" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
if [ "${1:-}" = --instructions ]; then
    for size in 512 4096 65536 524288 1048576 20971520; do
        few=$(count pool --pair $size 1000) many=$(count pool --pair $size 11000)
        printf '%9d bytes: %d instructions a pair, calls included\n' $size $(((many - few) / 10000))
    done
    for kind in record alloc ring; do
        few=$(count trace --events $kind 2) many=$(count trace --events $kind 12)
        printf '%9s: %d instructions an event, probe and stamp included\n' $kind $(((many - few) / 200000))
    done
    exit
fi
flags= names=
for word; do
    case $word in
    --*) flags="$flags $word" ;;
    *) names="$names $word" ;;
    esac
done
# Nobody else's cards, whatever else runs on the machine.
[ -n "${BELAY_STATE:-}" ] || export BELAY_STATE=private
[ -n "$names" ] || names="$(cd "$build/bench" && ls) serving"
for name in $names; do
    if [ "$name" = serving ]; then
        python3 "$(dirname "$0")/serving.py" "$build" $flags
        continue
    fi
    [ -f "$build/bench/$name" ] && [ -x "$build/bench/$name" ] || continue
    case $flags in
    *--json*) ;;
    *) printf '\n== bench/%s\n' "$name" ;;
    esac
    "$build/bench/$name" $flags || printf '   bench/%s could not measure\n' "$name" >&2
done
