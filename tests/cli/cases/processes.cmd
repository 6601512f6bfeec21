belay run --report r.json -- sh -c "$PROGRAMS/linked >/dev/null; $PROGRAMS/linked >/dev/null; true"
python3 -c 'import json; r = json.load(open("r.json")); print(len(r["children"]))'
belay run --report r-%p.json -- sh -c "$PROGRAMS/linked >/dev/null; $PROGRAMS/linked >/dev/null; true"
ls r-*.json | wc -l
belay run --report sub.txt -- sh -c "mkdir x; cd x; $PROGRAMS/linked >/dev/null"
grep -c SUMMARY sub.txt
belay run --report sub.txt -- $PROGRAMS/linked >/dev/null
grep -c "ERROR SUMMARY" sub.txt
