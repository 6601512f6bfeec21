#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_exports.sh BUILD_DIR - the shared objects export what the lists say.
#
# libascendcl.so  exactly the names of src/face/acl/spec/implemented.txt, and no
#                 version nodes: programs linked against the vendor's library
#                 must run under ours and back
# libbelay.so     exactly the functions marked BLY_API in include/belay, and
#                 bly_acl_<name> for each implemented name
set -u
[ $# -eq 1 ] || { echo "usage: check_exports.sh BUILD_DIR" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
lib=$1
[ -e "$lib/libbelay.so" ] || lib=$1/lib64
LC_ALL=C
export LC_ALL

tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
    echo "check_exports: $*" >&2
    failed=1
}

# exported LIBRARY: names without versions; type A is a version node's own name
exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort
}

# api_names: functions declared with BLY_API, also over several lines
api_names() {
    sed 's|/\*.*\*/||' "$root"/include/belay/*.h |
        tr '\n' ' ' | grep -o 'BLY_API [^;({]*(' |
        sed 's/.*[ *]\(bly_[a-z0-9_]*\) *($/\1/' | grep '^bly_'
}

# same LIBRARY WANTED: report what is missing and what is too much
same() {
    exported "$1" >"$tmp/have"
    missing=$(comm -13 "$tmp/have" "$2")
    extra=$(comm -23 "$tmp/have" "$2")
    [ -z "$missing" ] || fail "$(basename "$1") lacks:" $missing
    [ -z "$extra" ] || fail "$(basename "$1") has too much:" $extra
}

for so in libascendcl.so libbelay.so; do
    [ -e "$lib/$so" ] || { echo "check_exports: no $so in $1" >&2; exit 2; }
done

"$root/scripts/gen_acl.py" --names | sort >"$tmp/acl" || exit 2
sed -i '/^$/d' "$tmp/acl"
{ sed 's/^/bly_acl_/' "$tmp/acl"; api_names; } | sort -u >"$tmp/belay"

same "$lib/libascendcl.so" "$tmp/acl"
same "$lib/libbelay.so" "$tmp/belay"

readelf -dW "$lib/libascendcl.so" >"$tmp/dynamic"
grep -q 'VERDEF' "$tmp/dynamic" && fail "libascendcl.so has version nodes"
grep -q 'SONAME.*\[libascendcl\.so\]' "$tmp/dynamic" || fail "libascendcl.so has another soname"
grep -q 'NEEDED.*\[libbelay\.so' "$tmp/dynamic" || fail "libascendcl.so does not need libbelay.so"
grep -q 'SYMBOLIC' "$tmp/dynamic" && fail "libascendcl.so is bound to itself (-Bsymbolic)"

# All of it comes out of the loader's static reserve in a program that opens the library (base/fail.c).
tls=$(readelf -lW "$lib/libbelay.so" | awk '$1 == "TLS" { print $6 }')
[ $((${tls:-0})) -le 512 ] || fail "libbelay.so has $((tls)) bytes of thread-local memory, more than 512"

[ $failed -eq 0 ] || exit 1
echo "check_exports: $(wc -l <"$tmp/acl") AscendCL and $(wc -l <"$tmp/belay") belay names: ok"
