#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The worked example of docs/planner.md: a recorded trace, its step planned, then checkpointed at
# three budgets. usage: scripts/plan_example.sh [path of the command belay]
set -eu
belay=${1:-build/release/bin/belay}
here=$(dirname "$0")
trace=$here/../examples/traces/bert_large_train.tsv.zst
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

echo "--- one step: stock and planned"
"$belay" plan "$trace" --step --nodes 100000 | grep -v 'found by'

# Batch 16, sequence 512, hidden size 1024: the note in the trace.
range=$("$belay" plan "$trace" --step --nodes 1 --json |
    sed -n 's/^ *"\(start\|length\)": \([0-9]*\),$/\2/p')
zstdcat "$trace" | python3 "$here/chain_of_trace.py" $range 8192 1024 512 > "$work/bert.chain.csv"
base=$(sed -n 's/^# \([0-9]*\) bytes are live when the step begins$/\1/p' "$work/bert.chain.csv")
echo "--- live when the step begins: $base B"

for budget in 100% 80% 60% 40%; do
    echo "--- checkpointed, budget $budget of saving everything"
    "$belay" checkpoint "$work/bert.chain.csv" --budget "$budget" | sed '/^steps/q' > "$work/out"
    cat "$work/out"
    sed -n 's/^packed peak *\([0-9]*\) .*/\1/p' "$work/out" |
        awk -v base="$base" '{printf "card         %.0f B (%.1f GB)\n", base + $1, (base + $1) / 1e9}'
done
