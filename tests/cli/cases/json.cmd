belay run --hbm 1GiB --report r.json -- $PROGRAMS/linked >/dev/null
python3 - r.json <<'P'
import json, sys
r = json.load(open(sys.argv[1]))
print(sorted(r))
print(r["cards"])
print(r["process"], r["waste"]["asked"], r["waste"]["by_rule"], r["waste"]["backed"])
for f in r["findings"]:
    print(f["kind"], f["message"], f["bytes"], f["count"], f["sites"][0]["function"])
P
