#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A user's program under ThreadSanitizer: nothing is said of what is in order, the rest is reported.
set -eu
export TSAN_OPTIONS="exitcode=66 atexit_sleep_ms=0"
out=$("$PROGRAM" ordered 2>&1) || { echo "ordered, ended with $?: $out"; exit 1; }
[ "$out" = "done" ] || { echo "false alarm: $out"; exit 1; }
for n in 0 1 2 3 4; do
    code=0
    out=$("$PROGRAM" unordered $n 2>&1) || code=$?
    case "$code $out" in
    "66 "*"data race"*) ;;
    *) echo "unordered $n was not reported, ended with $code: $out"; exit 1 ;;
    esac
done
