#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh BUILD - runs the detection service of examples/ on a software NPU of 2 GiB, with a
# memory report, and says in three lines what to notice in it. Then the same kind of service under
# load, with three ways to get memory.
set -eu
build=$1
report=$build/demo-report.json
"$build/bin/belay" run --hbm 2GiB --report "-,$report" -- "$build/examples/detection_service"
echo
scripts=$(dirname "$0")
python3 "$scripts/demo_notice.py" "$report"
printf '\nThe service under load, its memory from the card, from a caching allocator as frameworks have, and from the pool:\n'
exec python3 "$scripts/serving.py" --quick "$build"
