#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The worked example of docs/planner.md: a trace, its step planned, then checkpointed at three
# budgets. usage: scripts/plan_example.sh [path of the command belay]
set -eu
belay=${1:-build/release/bin/belay}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
python3 "$here/gen_bert.py" trace > "$work/bert.tsv"
python3 "$here/gen_bert.py" chain > "$work/bert.chain.csv"
echo "--- the whole trace: what the stock allocator reserves, and a plan"
python3 "$here/caching_allocator.py" < "$work/bert.tsv"
"$belay" plan "$work/bert.tsv" --align 512 --nodes 100000 | grep -v 'found by'
echo "--- one step of it"
"$belay" plan "$work/bert.tsv" --align 512 --nodes 100000 --step | grep -v 'found by'
for budget in 100% 80% 60% 40%; do
    echo "--- checkpointed, budget $budget of saving everything"
    "$belay" checkpoint "$work/bert.chain.csv" --budget "$budget" | sed '/^steps/q'
done
