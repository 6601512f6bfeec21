#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh BUILD - runs the detection service of examples/ on a software NPU of 2 GiB, with a
# memory report, and says in three lines what to notice in it.
set -eu
build=$1
report=$build/demo-report.json
"$build/bin/belay" run --hbm 2GiB --report "-,$report" -- "$build/examples/detection_service"
echo
exec python3 "$(dirname "$0")/demo_notice.py" "$report"
