#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_layers.py - includes point downwards only (docs/design/layers.md).

Every `#include "x/y.h"` in src, tools, tests, bench, examples and python is checked against ALLOWED.
Exits 1 and names file, line and rule when one points upwards or is not of this tree.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# folder -> folders whose headers it may include (besides its own and the public ones)
ALLOWED = {
    "src/base": set(),
    "src/npu": {"base"},
    "src/backend": {"base", "npu"},
    "src/pool": {"base", "backend"},
    "src/tier": {"base", "backend", "pool"},
    "src/link": {"base", "backend", "pool"},
    "src/observe": {"base"},
    "src/plan": {"base"},
    "src/replay": {"base"},
    "src/face/acl": {"base", "npu", "pool", "observe"},
    "src/face/preload": {"base", "npu", "pool", "observe", "backend"},
    "tools": {"base", "npu", "observe", "plan", "backend", "pool", "replay", "tools"},
    "tests": {"base", "npu", "observe", "plan", "backend", "pool", "replay", "face", "tests", "tools"},
    "bench": {"base", "npu", "observe", "plan", "backend", "pool", "bench"},
    "examples": set(),
    "python": {"python"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def folder_of(path):
    """The rule that governs a file: the longest folder in ALLOWED that holds it."""
    text = path.relative_to(ROOT).as_posix()
    fitting = [f for f in ALLOWED if text.startswith(f + "/")]
    return max(fitting, key=len) if fitting else None


def layer_of(target, source):
    """First path part of an include when it is a layer; None for a file beside the source."""
    if (source.parent / target).exists():
        return None
    return target.split("/")[0]


def check(path):
    rule = folder_of(path)
    if rule is None:
        return
    own = rule.split("/")[1] if rule.startswith("src/") else rule
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        layer = layer_of(found.group(1), path)
        if layer is None or layer == own or layer in ALLOWED[rule]:
            continue
        yield f'{path.relative_to(ROOT)}:{number}: {rule} may not include "{found.group(1)}"'


def main():
    files = [p for top in ("src", "tools", "tests", "bench", "examples", "python")
             for p in sorted((ROOT / top).rglob("*.[ch]"))]
    wrong = [text for path in files for text in check(path)]
    print("\n".join(wrong) if wrong else f"ok: includes of {len(files)} files point downwards")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
