look='import json; r = json.load(open("r.json")); print(r.get("unfinished"), r.get("pid", 0) > 0, r["message"] if "message" in r else r["cards"])'
belay run --report r.json -- $PROGRAMS/linked abort >/dev/null 2>&1; python3 -c "$look"
belay run --report r.json -- sh -c 'kill -9 $$' 2>/dev/null; python3 -c "$look"
belay run --report r.json -- true; python3 -c "$look"
belay run --report r.json,r.txt -- $PROGRAMS/linked unused; python3 -c "$look"; cat r.txt
belay run --report r.txt -- $PROGRAMS/linked abort >/dev/null 2>&1; wc -c <r.txt
