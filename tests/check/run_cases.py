#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_cases.py BELAY PROGRAM LIST [NAME...] - the checker against a list of small programs.

Each runs once with the checker in its processes and recorded, each recording checked afterwards.
What is found in all processes of a case must be exactly what the list says: kinds, how many, and
pieces of what is told. Prints how many planted faults were found and how many findings were wrong;
exits 1 when either is not all.
"""
import sys

from case_runs import both, rows_of

belay, program, which = sys.argv[1:4]
only = set(sys.argv[4:])
found = planted = wrong = runs = 0
for name, kinds, part, variables in rows_of(program, which):
    if only and name not in only:
        continue
    for _, kinds_found, n_wrong in both(f"{which} {name}", belay, [program, which, name], kinds,
                                        part, variables):
        found, planted = found + len(kinds_found), planted + len([k for k in kinds.split(",") if k])
        wrong, runs = wrong + n_wrong, runs + 1
print(f"{which}: {runs} runs; {found} of {planted} planted faults found; {wrong} findings wrong")
sys.exit(0 if found == planted and wrong == 0 else 1)
