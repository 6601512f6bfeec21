# A recording looked at, cut, and in every other form; what is refused. Times are those of the file.
t=$(printf '\t')
sed "s/ /$t/g" > in.tsv <<'TSV'
time_us op id bytes stream tag
10 a 7 4096 0 preexisting
10 e 0 0 0 trace_start
20 a 9 1000 1 matmul
30 u 9 0 2 -
40 f 9 0 0 -
50 d 9 0 0 -
55 e 0 0 0 step;2
60 a 12 2000 1 -
70 s 0 0 -1 -
80 f 7 0 0 -
90 z 0 0 0 later
TSV
belay trace info in.tsv
for form in tsv chrome folded rmm memscope; do
    echo "-- $form"
    belay trace convert in.tsv --to $form
done
belay trace convert in.tsv -o in.pickle
belay trace convert in.tsv -o in.trace
belay trace info in.trace | grep -v '^format'
zstd -q in.trace && belay trace info in.trace.zst | grep events
for weight in leaked total; do
    belay trace convert in.trace --to folded --weight $weight
done
echo '-- from a snapshot and a log'
belay trace convert in.pickle --to tsv
belay trace convert in.tsv --to rmm > in.csv
belay trace convert in.csv --to tsv
echo '-- cut'
belay trace cut in.trace --from 40us --to 60us -o part.trace
belay trace info part.trace | grep -v '^format'
belay trace cut in.trace --events 6- -o part.trace
belay trace convert part.trace --to tsv
echo '-- plan'
belay plan in.trace --json | grep -E 'buffers|peak'
echo '-- python'
python3 - <<'PY'
import json, pickle, pickletools, subprocess
snapshot = pickle.load(open('in.pickle', 'rb'))
# What the viewer's own reader knows.
known = set('PROTO FRAME EMPTY_DICT EMPTY_LIST EMPTY_TUPLE MARK TUPLE TUPLE1 TUPLE2 TUPLE3 LIST DICT APPEND '
            'APPENDS SETITEM SETITEMS BININT BININT1 BININT2 LONG1 BINFLOAT NONE NEWTRUE NEWFALSE '
            'SHORT_BINUNICODE BINUNICODE BINGET LONG_BINGET BINPUT LONG_BINPUT MEMOIZE STOP'.split())
print({op.name for op, _, _ in pickletools.genops(open('in.pickle', 'rb'))} - known)
for entry in snapshot['device_traces'][0]:
    print(entry['action'], entry['size'], [f['name'] for f in entry['frames']])
for segment in snapshot['segments']:
    at = segment['address']
    for block in segment['blocks']:
        assert block['address'] == at
        at += block['size']
        print(block['state'], block['size'])
    assert at == segment['address'] + segment['total_size']
# As the viewer shows its states: from the end, each entry taken back.
def play_back(snapshot):
    segments = {s['address']: s['total_size'] for s in snapshot['segments']}
    blocks = {b['address']: b['state'] for s in snapshot['segments'] for b in s['blocks']
              if b['state'] != 'inactive'}
    for entry in reversed(snapshot['device_traces'][0]):
        at, action = entry.get('addr'), entry['action']
        if action == 'alloc':
            assert blocks.pop(at) == 'active_allocated', entry
        elif action == 'free_completed':
            assert at not in blocks, entry
            blocks[at] = 'active_pending_free'
        elif action == 'free_requested':
            assert blocks[at] == 'active_pending_free', entry
            blocks[at] = 'active_allocated'
        elif action == 'segment_alloc':
            assert segments.pop(at) == entry['size'], entry
        elif action == 'segment_free':
            assert at not in segments, entry
            segments[at] = entry['size']
        elif action == 'segment_map':
            start = max(s for s in segments if s <= at)
            end = start + segments.pop(start)
            assert at + entry['size'] <= end, entry
            segments.update({s: n for s, n in ((start, at - start),
                (at + entry['size'], end - at - entry['size'])) if n > 0})
        elif action == 'segment_unmap':
            segments[at] = entry['size']
            for s in sorted(segments)[1:]:
                before = max(b for b in segments if b < s)
                if before + segments[before] == s:
                    segments[before] += segments.pop(s)
        for block in blocks:
            assert any(s <= block < s + size for s, size in segments.items()), (entry, block)
    return len(segments), len(blocks)
print(play_back(snapshot))
# There and back: a segment from before with a block, one that is taken, a block that waits.
MiB = 1 << 20
def segment(address, *blocks):
    return {'device': 0, 'address': address, 'total_size': 2 * MiB, 'stream': 0, 'blocks': [
        {'address': address + at, 'size': size, 'requested_size': asked, 'state': state, 'frames': []}
        for at, size, asked, state in blocks]}
def entry(action, address, size):
    return {'action': action, 'addr': address, 'size': size, 'stream': 0, 'time_us': 5, 'frames': []}
one, two = 64 * MiB, 96 * MiB
mine = {'segments': [segment(one, (0, MiB, MiB - 5, 'active_allocated'), (MiB, MiB, 0, 'inactive')),
                     segment(two, (0, MiB, MiB - 7, 'active_pending_free'), (MiB, MiB, 0, 'inactive'))],
        'device_traces': [[entry('segment_alloc', two, 2 * MiB), entry('alloc', two, MiB - 7),
                           entry('free_requested', two, MiB - 7)]]}
pickle.dump(mine, open('mine.pickle', 'wb'))
subprocess.run(['belay', 'trace', 'convert', 'mine.pickle', '-o', 'again.pickle'])
again = pickle.load(open('again.pickle', 'rb'))
print([e['action'] for e in again['device_traces'][0]], play_back(again))
# An expandable segment grows, and gives its middle back.
grown = segment(one, (0, MiB, MiB, 'active_allocated'), (MiB, MiB, 0, 'inactive'))
tail = segment(one + 4 * MiB, (0, 2 * MiB, 2 * MiB, 'active_allocated'))
for s in grown, tail:
    s['is_expandable'] = True
mine = {'segments': [grown, tail], 'device_traces': [[
    entry('segment_map', one + 2 * MiB, 2 * MiB), entry('segment_map', one + 4 * MiB, 2 * MiB),
    entry('alloc', one + 4 * MiB, 2 * MiB), entry('segment_unmap', one + 2 * MiB, 2 * MiB)]]}
pickle.dump(mine, open('mine.pickle', 'wb'))
subprocess.run(['belay', 'trace', 'convert', 'mine.pickle', '-o', 'more.pickle'])
more = pickle.load(open('more.pickle', 'rb'))
print([e['action'] for e in more['device_traces'][0]], play_back(more),
      [(s['address'] - one, s['total_size'], s['is_expandable']) for s in more['segments']])
for s in again['segments']:
    print([(b['size'], b['requested_size'], b['state']) for b in s['blocks']],
          s['allocated_size'], s['active_size'], s['requested_size'])
page = subprocess.run(['belay', 'trace', 'convert', 'in.trace', '--to', 'chrome'],
                      capture_output=True).stdout
# As Chrome and Perfetto read it: lives from b to e by one name, numbers that count up.
def check(events):
    open_, named = {}, set()
    for e in events:
        assert e['ts'] >= 0 and isinstance(e['name'], str), e
        key = (e['pid'], e.get('cat'), e.get('id'))
        if e['ph'] == 'M':
            named.add((e['pid'], e['tid']) if e['name'] == 'thread_name' else e['pid'])
            continue
        assert e['pid'] in named and (e['ph'] == 'C' or (e['pid'], e['tid']) in named), e
        if e['ph'] == 'b':
            assert key not in open_, e
            open_[key] = e['name']
        elif e['ph'] == 'e':
            assert open_.pop(key) == e['name'], e
        elif e['ph'] == 'C':
            assert all(isinstance(v, int) for v in e['args'].values()), e
    return len(events), len(open_)
print(check(json.loads(page)['traceEvents']))
open('odd.tsv', 'wb').write(b'time_us\top\tid\tbytes\tstream\ttag\n1\ta\t1\t4096\t0\tb\xff"\\\x01\n')
odd = subprocess.run(['belay', 'trace', 'convert', 'odd.tsv', '--to', 'chrome'], capture_output=True).stdout
print([e['name'] for e in json.loads(odd)['traceEvents'] if e['ph'] == 'b'])
class Evil:
    def __reduce__(self):
        return print, ('run',)
for protocol in 2, 4:
    pickle.dump({'segments': Evil()}, open('evil%d.pickle' % protocol, 'wb'), protocol)
pickle.dump([1], open('list.pickle', 'wb'))
PY
echo '-- refused'
belay trace info evil2.pickle
belay trace info evil4.pickle
belay trace info list.pickle
sed 's/2000/x/' in.tsv > bad.tsv
belay trace info bad.tsv
sed 's/00:00:00/25:00:00/' in.csv > bad.csv
belay trace info bad.csv
head -c 5000 in.trace > torn.trace
belay trace info torn.trace | grep -E 'events|damaged'
head -c 100 in.trace > torn.trace
belay trace info torn.trace
echo text > text
belay trace info text
belay trace info nosuch
belay trace cut in.trace -o in.trace
belay trace cut in.trace --from soon -o x
belay trace convert in.trace -o in.trace
belay trace convert in.trace --to xml
belay trace convert in.trace -o /nonexistent/x.tsv
belay trace convert in.tsv --to belay
belay trace covert in.tsv
belay trace
echo '-- record'
belay trace record --help | head -3
belay trace record -o here.trace --report none -- "$PROGRAMS/linked" >linked.out; echo "status $?"
belay trace info here.trace | grep -E '^(format|state)'
belay trace record --report none -o "%p.trace" "$PROGRAMS/linked" >linked.out
ls ./*[0-9].trace | sed 's/[0-9][0-9]*/PID/'
belay trace record -o; echo "status $?"
belay trace record -o one.trace --report none -o two.trace -- "$PROGRAMS/linked"; echo "status $?"
