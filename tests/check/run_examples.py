#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_examples.py BELAY FOLDER - the checker over the examples: nothing is found in any but in those
that show a fault on purpose."""
import glob
import os
import sys

from case_runs import both

belay, folder = sys.argv[1:3]
SHOWN = {
    # It forgets the buffers of some requests.
    "detection_service": ("leak", "13473180 B (12.8 MiB) in 4 blocks of card 0"),
    # Readers that do not wait for the writer, once for the AI CPU and once for the copy engine.
    "engines": ("race,race", "write on stream 2 not ordered after read on stream"),
    # A graph runs after the block that two of its tasks name was freed.
    "graph_capture": ("use-after-free,use-after-free",
                      "copy on stream|reduction on stream|that was freed before a run"),
}
wrong = runs = 0
for path in sorted(glob.glob(os.path.join(folder, "*"))):
    name = os.path.basename(path)
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        continue
    kinds, part = SHOWN.get(name, ("", ""))
    variables = "BELAY_HBM= LD_LIBRARY_PATH=" + os.path.join(folder, "..", "lib64")
    for _, found, n_wrong in both(name, belay, [path], kinds, part, variables, has_lines=False):
        wrong += n_wrong + (len(found) != len([kind for kind in kinds.split(",") if kind]))
        runs += 1
print(f"examples: {runs} runs; {wrong} findings wrong or missing")
sys.exit(0 if wrong == 0 and runs > 0 else 1)
