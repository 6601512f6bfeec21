#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_case.sh [--update] CASE.cmd: runs a case in an empty folder and compares. The environment
# names $BELAY (the command), $PROGRAMS (programs of this folder) and $LIB (our libraries).
set -u
update=no
if [ "$1" = --update ]; then
    update=yes
    shift
fi
case=${1%.cmd}
case=$(cd "$(dirname "$case")" && pwd)/$(basename "$case")
source=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for variable in $(env | sed -n 's/^\(BELAY_[A-Z_]*\)=.*/\1/p'); do
    unset "$variable"
done
PATH=$(dirname "$BELAY"):$PATH
export BELAY PROGRAMS LIB PATH
BELAY_STATE=$work/state # cards of its own
export BELAY_STATE

sh "$case.cmd" >"$work/.out" 2>&1 </dev/null
status=$?
sed -E -e "s|$PROGRAMS|PROGRAMS|g; s|$LIB|LIB|g; s|$work|WORK|g; s|$source|SOURCE|g" \
    -e 's/process [0-9]+ ====/process PID ====/; s/"pid": [0-9]+/"pid": PID/' \
    -e 's/0x[0-9a-f]{6,}/ADDRESS/g; s/Belay [0-9]+\.[0-9.]+/Belay VERSION/' \
    -e 's/^belay [0-9]+\.[0-9.]+$/belay VERSION/' "$work/.out" >"$work/.got"

if [ $update = yes ]; then
    cp "$work/.got" "$case.stdout"
    echo $status >"$case.exit"
    exit 0
fi
diff -u "$case.stdout" "$work/.got" || exit 1
if [ "$status" != "$(cat "$case.exit")" ]; then
    echo "exit status $status, not $(cat "$case.exit")"
    exit 1
fi
