# Recordings of real programs, explained: figures of O-14, O-19, O-08 and O-21.
export BELAY_HBM=1GiB
for story in waste orphans growth; do
    belay run --report r.txt --trace $story.trace -- $PROGRAMS/stories $story || echo "status $?"
done
echo '-- waste'
belay report waste.trace --json > waste.json
python3 - <<'PY'
import json
r = json.load(open('waste.json'))
w = r['waste']
print('normal', [w['normal'][k] for k in ('blocks', 'asked', 'by_rule', 'backed')])
print('huge', [w['huge'][k] for k in ('blocks', 'asked', 'by_rule', 'backed')])
for row in r['holders']:
    if row['saving']:
        print('saving', row['saving'], row['site'].split('/')[-1])
PY
belay report waste.trace | grep -A12 '^waste' | sed '/^calls took/,$d;/^$/d' | sed 's|> main.*/|> main .../|'
echo '-- orphans'
belay report orphans.trace | sed -n '/^refused/,$p' | sed -E 's/at [0-9.]+ s/at TIME/'
belay diagnose orphans.trace --json > orphans.json
python3 - <<'PY'
import json
for c in json.load(open('orphans.json'))['causes']:
    print(c['verdict'], c['cause'], c['bytes'])
PY
echo '-- growth'
belay report growth.trace | grep -A1 monotone
belay diagnose growth.trace --json | grep -A3 leaked-objects
echo '-- limits'
BELAY_CAP=400MiB BELAY_PIN_LIMIT=1MiB belay run --report r.txt --trace limits.trace -- $PROGRAMS/stories limits
belay diagnose limits.trace --json | grep -A3 '"applies"'
belay report limits.trace | grep -A3 '^refused' | sed -E 's/at [0-9.]+ s/at TIME/'
echo '-- race'
belay run --report r.txt --trace race.trace -- $PROGRAMS/stories race
belay diagnose race.trace --json | grep -A4 '"missing-sync"'
belay check race.trace | grep 'ERROR SUMMARY'
echo '-- diff'
belay diff waste.trace growth.trace -n 2
