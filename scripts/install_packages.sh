#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install_packages.sh build|test|check - installs the Debian packages of scripts/packages.txt
# that are missing for a purpose (each includes the ones before it). Says nothing and needs no
# root when nothing is missing.
set -eu
purpose=${1:-build}
list=$(dirname "$0")/packages.txt
case $purpose in
build) wanted=' build ' ;;
test) wanted=' build test ' ;;
check) wanted=' build test check ' ;;
*) echo "usage: install_packages.sh build|test|check" >&2; exit 2 ;;
esac

missing=
while read -r name use; do
    case $name in '' | '#'*) continue ;; esac
    case $wanted in *" $use "*) ;; *) continue ;; esac
    case $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true) in
    installed) ;;
    *) missing="$missing $name" ;;
    esac
done <"$list"
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "Belay needs these packages and apt-get is not here to install them:$missing" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Belay needs these packages; run as root or install them:$missing" >&2
        exit 1
    fi
    sudo=sudo
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$sudo apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 || {
    $sudo apt-get update >/dev/null
    $sudo apt-get install -y --no-install-recommends $missing >/dev/null
}
