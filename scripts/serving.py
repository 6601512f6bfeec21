#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serving.py BUILD [--quick] [--json] - the service of examples/serving with each allocator.

Each row is a run of its own; peak and leaks are the card's, from the report at exit, the rest is the
service's own word. Runs alternate between allocators, and each figure is the median of the runs.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ALLOCATORS = ("stock", "caching", "pool")


def run(build, allocator, concurrent, requests):
    """One run: what the service prints, and peak, left and findings of the report."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        program = [build / "examples" / "serving", "--allocator", allocator, "--concurrent",
                   str(concurrent), "--requests", str(requests)]
        done = subprocess.run([build / "bin" / "belay", "run", "--state", "private", "--hbm", "12GiB",
                               "--report", report, "--", *program], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"serving --allocator {allocator} --concurrent {concurrent} ended with "
                     f"{done.returncode}:\n{done.stdout}{done.stderr}")
        words = done.stdout.split()
        figures = dict(zip(words[0::2], words[1::2]))
        told = json.loads(report.read_text(encoding="utf-8"))
    card = told["cards"][0]
    return {"peak": card["peak_taken"], "left": card["taken"], "findings": len(told["findings"]),
            "per_second": float(figures["per_second"]), "p50_ms": float(figures["p50_ms"]),
            "p99_ms": float(figures["p99_ms"]), "wrong": int(figures["wrong"])}


def measure(build, concurrent, requests, rounds):
    runs = {allocator: [] for allocator in ALLOCATORS}
    for _ in range(rounds):
        for allocator in ALLOCATORS:
            runs[allocator].append(run(build, allocator, concurrent, requests))
    return [{"allocator": allocator, "concurrent": concurrent, "requests": requests, "rounds": rounds}
            | {key: statistics.median(one[key] for one in runs[allocator]) for key in runs[allocator][0]}
            for allocator in ALLOCATORS]


def show(rows):
    stock = rows[0]
    print(f"\n{stock['concurrent']} requests in flight, {stock['requests']} in all, "
          f"median of {stock['rounds']}")
    print("allocator      peak            requests/s        p50 ms   p99 ms   left   findings")
    for row in rows:
        peak = f"{row['peak'] / 2**20:7.0f} MiB {row['peak'] / stock['peak'] - 1:+6.0%}"
        rate = f"{row['per_second']:8.1f} {row['per_second'] / stock['per_second'] - 1:+6.0%}"
        print(f"{row['allocator']:9} {peak}   {rate}   {row['p50_ms']:9.1f} {row['p99_ms']:8.1f} "
              f"{row['left']:6.0f} {row['findings']:10.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="100 in flight, 500 in all, once")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sizes = [(100, 500, 1)] if arguments.quick else [(200, 4000, 3), (500, 10000, 3)]
    tables = [measure(arguments.build, *size) for size in sizes]
    if arguments.json:
        print(json.dumps([row for table in tables for row in table], indent=1))
        return
    for table in tables:
        show(table)


if __name__ == "__main__":
    main()
