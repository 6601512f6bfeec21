#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A Java program, whose machine lives on SIGSEGV (null checks, safepoints, stack banging): it stays
# in peace, and its own crash report still comes when card memory is touched.
set -eu
for tool in java javac cc; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
home=$(java -XshowSettings:properties -version 2>&1 | sed -n 's/.*java.home = //p')
[ -f "$home/include/jni.h" ] || { echo "skipped: no jni.h in $home"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cc -std=c11 -fPIC -shared -o "$work/libguardjni.so" -I"$home/include" -I"$home/include/linux" \
    -I"$INCLUDE" "$here/java_glue.c" -L"$LIB" -lascendcl
javac -d "$work" "$here/GuardProgram.java"
cd "$work"
# The library is loaded when the machine's handlers are in place, as any JNI library is.
for guard in auto alias; do
    out=$(LD_LIBRARY_PATH=$LIB BELAY_GUARD=$guard java -Xint -Djava.library.path=. GuardProgram work 2>&1 &&
        LD_LIBRARY_PATH=$LIB BELAY_GUARD=$guard java -Djava.library.path=. GuardProgram work 2>&1) ||
        { echo "guard $guard: $out"; exit 1; }
    [ "$(echo "$out" | sort -u)" = "done" ] || { echo "false alarm, guard $guard: $out"; exit 1; }
done
out=$(LD_LIBRARY_PATH=$LIB BELAY_GUARD=alias java -Djava.library.path=. -XX:-CreateCoredumpOnCrash \
    GuardProgram touch 2>&1) && { echo "not stopped: $out"; exit 1; }
case $out in
*"host code read memory of card 0"*"touch"*"SIGSEGV"*) echo passed ;;
*) echo "not told by us and the Java machine: $out"; exit 1 ;;
esac
