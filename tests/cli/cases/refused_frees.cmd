belay run --report -,r.json -- $PROGRAMS/linked twice 2>&1 | grep "refused "
python3 -c 'import json; p = json.load(open("r.json"))["process"]; print(p["frees"], p["frees_refused"])'
