#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a host access prints, what the report has of it, and how the program ends."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host_access.c")
LINES = open(SOURCE).read().split("\n")


def line_of(text):
    return next(i for i, line in enumerate(LINES, 1) if text in line)


def run(case, guard, report):
    env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
    env.update(BELAY_GUARD=guard, BELAY_REPORT=report)
    for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"):  # their handlers are a program's own, see "handled"
        env[name] = env.get(name, "") + " handle_segv=0"
    return subprocess.run([os.environ["HOST_ACCESS"], case], env=env, text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check(cond, *what):
    if not cond:
        print("FAILED", *what)
        sys.exit(1)


def check_sites(sites, got):
    check([s["role"] for s in sites] == ["use", "alloc"], sites)
    if not sites[0]["file"]:
        print("no debug information could be read: files and lines not compared")
        return
    check(sites[0]["file"].endswith("host_access.c"), sites)
    check(sites[1]["line"] == line_of("aclrtMalloc(&block, SIZE"), sites)
    check("make_block" in got.stderr and "host_access.c:" in got.stderr, got.stderr)


def check_stopped(case, guard, verb, function):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.json")
        got = run(case, guard, path)
        check(got.returncode == -signal.SIGSEGV, case, guard, got)
        check(re.search(rf"host code {verb} memory of card 0 at 0x[0-9a-f]+", got.stderr), got.stderr)
        check("40 bytes into block 0x" in got.stderr and "1000000 B" in got.stderr, got.stderr)
        check(f"#0 {function}" in got.stderr, got.stderr)
        report = json.load(open(path))
        check([f["kind"] for f in report["findings"]] == ["host-access"], report["findings"])
        finding = report["findings"][0]
        check(finding["count"] == 1 and finding["card"] == 0, finding)
        check(hex(finding["address"]) in got.stderr, finding, got.stderr)
        check(f"of process {report['pid']}\n" in got.stderr, report["pid"], got.stderr)
        check_sites(finding["sites"], got)


def check_mode(guard):
    check_stopped("write", guard, "wrote to", "write_host")
    check_stopped("read", guard, "read", "read_host")
    check_stopped("thread", guard, "wrote to", "write_host")
    check_stopped("callback", guard, "wrote to", "write_host")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.json")
        got = run("handled", guard, path)
        check(got.returncode == 0 and got.stdout == "faults 2, byte 7\n", got)
        findings = json.load(open(path))["findings"]
        check([(f["kind"], f["count"]) for f in findings] == [("host-access", 2)], findings)
    got = run("freed", guard, "")
    check("no live block is there; freed " in got.stderr and "main" in got.stderr, got.stderr)


check_mode("alias")
got = run("write", "off", "")
check(got.returncode == 0 and got.stderr == "", got)
if run("write", "auto", "").returncode == 0:
    print("skipped the same with protection keys: this machine has none")
else:
    check_mode("on")
print("passed")
