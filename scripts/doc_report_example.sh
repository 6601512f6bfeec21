#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the example of docs/report.md: the report of the demo, as it is printed now.
# Usage: scripts/doc_report_example.sh [BUILD-FOLDER]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
report=$(mktemp --suffix=.txt)
page=$(mktemp)
trap 'rm -f "$report" "$page"' EXIT

"$build/bin/belay" run --report "$report" -- "$build/examples/detection_service" >/dev/null
{
    sed '/^<!-- begin example/q' docs/report.md
    echo '```'
    sed -e "s|$PWD/$build/examples/||; s|process [0-9]* ====|process 4711 ====|" "$report"
    echo '```'
    sed -n '/^<!-- end example/,$p' docs/report.md
} >"$page"
cp "$page" docs/report.md
