#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""corpus.py BELAY CHECK_PROGRAM CHECK_PROCESS - runs every case and prints what docs/check-corpus.md
holds: planted faults by kind and place, how many were found, and findings that were wrong."""
import sys

from case_runs import both, rows_of

LISTS = [("check_program", "faults_order", "streams"), ("check_program", "faults_memory", "streams"),
         ("check_program", "faults_free", "streams"), ("check_program", "faults_kinds", "streams"),
         ("check_program", "faults_graph", "graphs"),
         ("check_process", "faults_process", "processes"),
         ("check_process", "scenarios_memory", "scenarios"),
         ("check_process", "scenarios_things", "scenarios"),
         ("check_program", "correct_order", "streams"), ("check_program", "correct_memory", "streams"),
         ("check_program", "correct_kinds", "streams"), ("check_program", "correct_graph", "graphs"),
         ("check_process", "correct_process", "processes")]
PLACES = ["streams", "graphs", "processes", "scenarios"]
WAYS = ["live", "offline"]

belay = sys.argv[1]
programs = {"check_program": sys.argv[2], "check_process": sys.argv[3]}
planted, found, correct = {}, {}, {}
n_faulty = wrong = 0
for program, which, place in LISTS:
    for name, kinds, part, variables in rows_of(programs[program], which):
        list_ = [kind for kind in kinds.split(",") if kind]
        n_faulty += bool(list_)
        if not list_:
            correct[place] = correct.get(place, 0) + 1
        for kind in list_:
            planted[kind, place] = planted.get((kind, place), 0) + 1
        for way, kinds_found, n_wrong in both(name, belay, [programs[program], which, name], kinds,
                                              part, variables):
            wrong += n_wrong
            for kind in kinds_found:
                found[kind, way] = found.get((kind, way), 0) + 1

kinds = sorted({kind for kind, _ in planted})
total = sum(planted.values())
print("| kind | " + " | ".join(PLACES) + " | planted | found live | found offline |")
print("|---|" + "---|" * (len(PLACES) + 3))
for kind in kinds:
    row = [planted.get((kind, place), 0) for place in PLACES]
    print(f"| {kind} | " + " | ".join(str(n or "") for n in row) + f" | {sum(row)} | "
          + " | ".join(str(found.get((kind, way), 0)) for way in WAYS) + " |")
sums = [sum(planted.get((kind, place), 0) for kind in kinds) for place in PLACES]
print("| all | " + " | ".join(map(str, sums)) + f" | {total} | "
      + " | ".join(str(sum(found.get((kind, way), 0) for kind in kinds)) for way in WAYS) + " |")
print("| correct programs | " + " | ".join(str(correct.get(place, 0)) for place in PLACES)
      + f" | {sum(correct.values())} | | |")
got = sum(found.values())
print(f"\n{n_faulty} faulty programs with {total} faults, {sum(correct.values())} correct ones; each "
      f"live and offline: {got} of {2 * total} faults found, {wrong} findings wrong.")
