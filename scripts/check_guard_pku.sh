#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_guard_pku.sh [BUILD [PROGRAM...]] - runs test programs of a build (default: build/debug,
# those of the guard and of what it touches) on an emulated processor with protection keys, for
# machines whose own has none. Debian's kernel, a file system of busybox and the programs, no disk.
# Needs qemu-system-x86, busybox-static, cpio and gzip; fetches the kernel's package, unless KERNEL
# names an image. Times mean nothing here: emulation makes a change of rights 50 times slower.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/debug}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- unit_npu_guard unit_npu_memory unit_npu_stream unit_npu_event unit_npu_fork \
    unit_npu_pinned unit_npu_engine unit_npu_kernel unit_npu_vmm unit_npu_defrag acl_vmm stress_vmm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

for tool in qemu-system-x86_64 busybox cpio gzip; do
    command -v $tool >/dev/null || { echo "check_guard_pku: $tool is missing" >&2; exit 2; }
done

kernel=${KERNEL:-}
if [ -z "$kernel" ]; then
    package=$(apt-cache depends linux-image-cloud-amd64 |
        sed -n 's/.*Depends: \(linux-image-.*-cloud-amd64\)$/\1/p' | head -1)
    (cd "$work" && apt-get download "$package" >/dev/null 2>&1 && dpkg-deb -x ./*.deb kernel) ||
        { echo "check_guard_pku: no kernel: apt-get download $package" >&2; exit 2; }
    kernel=$(echo "$work"/kernel/boot/vmlinuz-*)
fi

# A program and the libraries it is loaded with.
add() {
    cp "$1" "$root/t/"
    ldd "$1" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -nL "$library" "$root$library"
    done
}

mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/t" "$root/lib64"
cp "$(command -v busybox)" "$root/bin/busybox"
for name in "$@"; do add "$build/tests/$name"; done
# backtrace() loads it when it is called.
for library in /lib/*/libgcc_s.so.1; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
{
    echo '#!/bin/busybox sh'
    for step in 'mount -t proc p /proc' 'mount -t sysfs s /sys' 'mount -t devtmpfs d /dev' \
        'mount -t tmpfs t /tmp'; do echo "/bin/busybox $step"; done
    echo '/bin/busybox grep -q -w ospke /proc/cpuinfo && echo "protection keys: yes"'
    echo 'cd /t'
    for name in "$@"; do echo "./$name; echo \"check_guard_pku: $name ended with \$?\""; done
    echo '/bin/busybox poweroff -f'
} >"$root/init"
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd"

timeout 600 qemu-system-x86_64 -accel tcg -cpu max -m 4G -smp 2 -nographic -no-reboot \
    -kernel "$kernel" -initrd "$work/initrd" \
    -append "console=ttyS0 quiet panic=-1 loglevel=3" </dev/null | tr -d '\r' >"$work/out"
sed -n '/protection keys: yes/,$p' "$work/out"
grep -q "protection keys: yes" "$work/out" || { echo "check_guard_pku: no keys in there" >&2; exit 1; }
good=$(grep -c "^check_guard_pku: .* ended with 0$" "$work/out" || true)
[ "$good" -eq $# ] || { echo "check_guard_pku: $good of $# programs passed" >&2; exit 1; }
echo "check_guard_pku: $# programs passed"
