#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh BUILD [--json] [--quick] [name...] - runs the benchmarks of bench/ one after another, and
# last `serving`: the service of examples/ with each allocator.
# bench.sh BUILD --instructions - what is counted by callgrind: a block's allocation and free, of one
# size, among a thousand to a million blocks, and of random sizes with how often they leave the fast
# path; and recording an event.
set -eu
build=$1
shift

# Instructions of a program of bench/ and its arguments; its profile goes to a file: count FILE
# PROGRAM ARGUMENT...
# Valgrind leaves no room for large windows.
count() {
    out=$1 program=$2
    shift 2
    BELAY_STATE=private BELAY_GUARD=off BELAY_WINDOW=16GiB BELAY_VMM_WINDOW=16GiB \
        valgrind --tool=callgrind --callgrind-out-file="$out" "$build/bench/$program" "$@" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
# Instructions of a pair: count_pair PAIRS MODE...
count_pair() {
    pairs=$1
    shift
    few=$(count /dev/null pool "$@" 1000) many=$(count "$profile" pool "$@" $((pairs + 1000)))
    echo $(((many - few) / pairs))
}
# How often each of these functions was called in a thousand of so many pairs, the first ones
# included: calls PAIRS FUNCTION...
calls() {
    pairs=$1
    shift
    for name; do
        awk -v pairs="$pairs" -v name="$name" '
            /^cfn=/ { id = $1; sub(/^cfn=/, "", id); if (NF > 1) named[id] = $2 }
            /^fn=/ { own = $1; sub(/^fn=/, "", own); if (NF > 1) named[own] = $2 }
            /^calls=/ { sub(/^calls=/, "", $1); n[id] += $1 }
            END { for (id in n) if (named[id] == name) sum += n[id]
                  printf "    %6.1f in 1000 pairs: %s\n", 1000 * sum / pairs, name }' "$profile"
    done
}
if [ "${1:-}" = --instructions ]; then
    profile=$(mktemp)
    trap 'rm -f "$profile"' EXIT
    for size in 512 4096 65536 524288 1048576 20971520; do
        printf '%9d bytes: %d instructions a pair, calls included\n' $size \
            "$(count_pair 10000 --pair $size)"
    done
    for blocks in 1000 10000 100000 1000000; do
        printf '%9d blocks of 512 B to 8 KiB: %d instructions a pair\n' $blocks \
            "$(count_pair 40000 --crowd $blocks)"
    done
    printf '%9d blocks of 512 B to 512 KiB: %d instructions a pair\n' 2000 \
        "$(count_pair 40000 --steady)"
    calls 43000 alloc_slow free_other blyi_arena_take blyi_front_raise
    for kind in record alloc ring; do
        few=$(count /dev/null trace --events $kind 2) many=$(count /dev/null trace --events $kind 12)
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
