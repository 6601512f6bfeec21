belay options | head -12
BELAY_HBM=1GiB belay options | grep -A3 BELAY_HBM
belay options --json | python3 -c '
import json, sys
rows = {o["variable"]: o for o in json.load(sys.stdin)}
print(rows["BELAY_CARDS"])
print(rows["BELAY_ALLOC"])
print(all(o["help"] and o["flag"] == o["variable"][6:].lower().replace("_", "-") for o in rows.values()))'
