belay doctor --json >doctor.json; echo "status $?"
python3 - doctor.json <<'P'
import json, sys
for c in json.load(open(sys.argv[1])):
    assert c["value"] and c["meaning"] and c["level"] in ("ok", "note", "problem"), c
    print(c["check"])
P
belay doctor | grep -A1 "^ok *library"
belay doctor | tail -1 | sed 's/[0-9]* notes*/N notes/'
# The guard, with and without protection keys: what they are is the machine's, what they mean is not.
for guard in auto on off alias; do
    echo "guard $guard: $(BELAY_GUARD=$guard belay doctor --json | python3 -c '
import json, sys
for c in json.load(sys.stdin):
    if c["check"] == "protection-keys":
        keys = c["value"] == "available"
        stopped = "is stopped" in c["meaning"]
        print("as documented" if stopped == ({"auto": keys, "off": False}.get(sys.argv[1], True)) and
              c["level"] == ("ok" if stopped else "note") else c)
' $guard)"
done
