#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source file names its license in its first three lines.
cd "$(dirname "$0")/.." || exit 1
files=$(git ls-files '*.c') || exit 1
[ -n "$files" ] || { echo 'no files to check: not a git checkout?' >&2; exit 1; }
bad=$(git ls-files '*.c' '*.h' '*.S' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' Makefile .ci/run |
    while read -r f; do
        [ -e "$f" ] || continue
        head -n 3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f"
    done)
[ -z "$bad" ] && exit 0
echo "no SPDX line in:" >&2
echo "$bad" >&2
exit 1
