#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_headers.sh [HEADER...] - every public header compiles alone.
# Each file under include/ (or each one named, relative to include/) is compiled
# as C11, C17 and C++17 by gcc and clang with strict warnings as errors. A
# compiler that is not installed is left out, but one has to be there.
set -u
cd "$(dirname "$0")/.." || exit 2

warnings="-Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror"
include=-Iinclude
failed=0
compilers=0

# compile HEADER COMPILER LANGUAGE STANDARD
compile() {
    printf '#include <%s>\n' "$1" |
        "$2" -x "$3" -std="$4" $warnings $include -fsyntax-only - && return
    echo "check_headers: $1 fails as $4 with $2" >&2
    failed=$((failed + 1))
}

if [ $# -eq 0 ]; then
    set -- $(cd include && find . -name '*.h' | sed 's|^\./||' | LC_ALL=C sort)
fi

for cc in gcc clang; do
    command -v "$cc" >/dev/null 2>&1 || continue
    compilers=$((compilers + 1))
    for header in "$@"; do
        compile "$header" "$cc" c c11
        compile "$header" "$cc" c c17
        compile "$header" "$cc" c++ c++17
    done
done

[ $compilers -gt 0 ] || { echo "check_headers: no compiler found" >&2; exit 2; }
[ $failed -eq 0 ] || { echo "check_headers: $failed failures" >&2; exit 1; }
echo "check_headers: $# headers, $compilers compilers, C11 C17 C++17: ok"
