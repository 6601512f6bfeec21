#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plan_table.py BUILD [--folder DIR] [--seeds N] [--made N] - the tables of docs/planner.md.

Runs BUILD/bench/plan by its own CPU seconds (--cpu), one thread: the instances of DIR with N seeds of
the planner, and the made-up families with N seeds of their generator. Median and worst of each.
"""
import argparse
import datetime
import os
import re
import subprocess
import sys

ROW = re.compile(r"^ +(?P<name>\S+) +(?P<n>\d+) +cpu +(?P<cpu>\S+) worst +(?P<cpu_worst>\S+) .*"
                 r" (?P<ratio>[\d.]+) worst (?P<ratio_worst>[\d.]+) of the bound  peak (?P<peak>\d+),"
                 r" (?P<optimal>\d+) of (?P<runs>\d+) optimal")
FAILED = re.compile(r"^ +(?P<name>\S+) +\d+ of \d+ runs failed")
TOTAL = re.compile(r"MiniMalloc's instances together: .*")


def bench(build, *options):
    """What the benchmark prints, line by line."""
    command = [os.path.join(build, "bench", "plan"), "--cpu", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines() + done.stderr.splitlines()


def rows(lines, wanted):
    """The rows whose names are wanted; a run that failed ends it, since its figures are not there."""
    failed = [m["name"] for m in map(FAILED.match, lines) if m]
    if failed:
        sys.exit("runs failed: " + ", ".join(failed))
    return [m for m in map(ROW.match, lines) if m and wanted(m["name"])]


def ratio(row, key):
    """Ratio to the bound; for a capacity that was asked for, that it is kept."""
    if row["name"].startswith("minimalloc_") and int(row["n"]) > 10:
        return "fits 1,048,576" if key == "ratio" else ""
    proven = " (optimal)" if key == "ratio" and row["optimal"] == row["runs"] else ""
    return row[key] + proven


def table(found):
    print("| instance | buffers | peak over the bound | worst seed | CPU seconds | worst seed |")
    print("| --- | --- | --- | --- | --- | --- |")
    for r in found:
        print(f"| {r['name']} | {int(r['n']):,} | {ratio(r, 'ratio')} | {ratio(r, 'ratio_worst')} |"
              f" {r['cpu']} | {r['cpu_worst']} |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--folder", help="holds instances/*.csv; left out where not given")
    parser.add_argument("--seeds", default="5")
    parser.add_argument("--made", default="10")
    args = parser.parse_args()
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        machine = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")),
                       "unknown machine")
    print(f"{machine}, {datetime.date.today()}, load of {os.getloadavg()[1]:.0f} from other work before\n")
    table(rows(bench(args.build, "--made", args.made, "--folder", os.devnull), lambda name: True))
    if args.folder:
        lines = bench(args.build, "--seeds", args.seeds, "--folder", args.folder, "--quick")
        table(rows(lines, lambda name: name.startswith(("minimalloc_", "idealloc_", "syn_"))))
        print(next((m[0] for m in map(TOTAL.search, lines) if m), "MiniMalloc's instances are absent"))
    print(f"load at the end: {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
