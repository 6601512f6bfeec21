#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A Python program: threads, signals, forks, faulthandler; then a slice of card memory by mistake.
set -eu
python=$(command -v python3) || { echo "skipped: no python3"; exit 77; }
here=$(dirname "$0")
for guard in auto alias; do
    for order in before after; do
        out=$(LD_LIBRARY_PATH=$LIB BELAY_GUARD=$guard "$python" "$here/python_program.py" work "$order" 2>&1) ||
            { echo "guard $guard, $order: $out"; exit 1; }
        [ "$out" = "done" ] || { echo "false alarm, guard $guard, $order: $out"; exit 1; }
    done
done
for order in before after; do
    out=$(LD_LIBRARY_PATH=$LIB BELAY_GUARD=alias "$python" "$here/python_program.py" touch "$order" 2>&1) &&
        { echo "not stopped: $out"; exit 1; }
    # Python's own handler tells as well, where Python has one.
    case $out in
    *"Fatal Python error: Segmentation fault"*"in touch"*) ;;
    *) echo "faulthandler, enabled $order us, did not speak: $out"; exit 1 ;;
    esac
    if [ "$order" = before ]; then
        case $out in
        *"host code read memory of card 0"*"4096 B (4 KiB) asked"*) ;;
        *) echo "not told: $out"; exit 1 ;;
        esac
    fi
done
echo passed
