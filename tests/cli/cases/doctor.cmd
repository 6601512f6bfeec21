belay doctor --json >doctor.json; echo "status $?"
python3 - doctor.json <<'P'
import json, sys
for c in json.load(open(sys.argv[1])):
    assert c["value"] and c["meaning"] and c["level"] in ("ok", "note", "problem"), c
    print(c["check"])
P
belay doctor | grep -A1 "^ok *library"
belay doctor | tail -1 | sed 's/[0-9]* notes*/N notes/'
