#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""demo_notice.py REPORT.json - three lines that say what to notice in the demo's report.

Every figure is read from the report; exits 1 when the leak that the demo has is not in it.
"""
import json
import os
import sys


def mib(size):
    return f"{size / 2**20:.1f} MiB"


def place(site):
    return f"{os.path.basename(site['file'])}:{site['line']}" if site.get("file") else site["function"]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    card = report["cards"][0]
    leak = next((f for f in report["findings"] if f["kind"] == "leak"), None)
    if leak is None:
        print("the report has no leak: the demo should have one", file=sys.stderr)
        return 1
    peak = report["waste"]["at_peak"]
    saving = report["advice"][0]
    print("What to notice:")
    print(f"1. The leak: {leak['count']} blocks, {mib(leak['bytes'])}, allocated at "
          f"{place(leak['sites'][0])} and never freed: the service forgets them when a batch "
          "shows no object.")
    print(f"2. The waste: at the peak {mib(peak['backed'] - peak['asked'])} of pages lie beyond "
          f"the bytes asked for; {saving['use']} at {place(saving)} alone saves "
          f"{mib(saving['saves'])}.")
    print(f"3. The peak: {mib(card['peak_backed'])} of {mib(card['total'])}, held at one moment "
          f"by {len(report['holders'])} places in the source: this, not the sum of the "
          f"{report['process']['allocs']} allocations, is the card the service needs.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
