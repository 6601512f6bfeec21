# How long calls took, of a file written by hand (docs/trace-format.md): figures, a bend, and files
# that do not tell.
cat > make.py <<'PY'
import struct, sys

TOOK = 1 << 11
ALLOC, FREE, MARK = 0, 1, 2  # as the file numbers them

def write(name, events, tells=True, unknown=False):
    """events: (kind, address, bytes, ns it took), one each microsecond from 1 s on."""
    start = 1000000000
    def record(kind, body):
        return struct.pack('<II', kind, len(body)) + body + bytes(-len(body) % 8)
    names = record(1, struct.pack('<I', ALLOC) + b'alloc') + record(1, struct.pack('<I', FREE) + b'free')
    names += record(1, struct.pack('<I', MARK) + b'mark')
    names += record(7, struct.pack('<II', 1, 0) + b'step\x1b[31m 2')
    names += record(10, struct.pack('<iIQQ', 0, 0, 1 << 30, 1 << 24))
    header = b'BLYTRACE' + struct.pack('<IIII', 1, 0x01020304, 4096, 4096)
    header += struct.pack('<QQQQ', 0, 1, start, 0) + struct.pack('<IIII', 7, 0, 0, 3) + b'by hand'
    header = header.ljust(2048, b'\0') + struct.pack('<Q', len(events))
    header = header.ljust(2120, b'\0') + struct.pack('<QI', start + 1000 * len(events), 1)
    out, body = header.ljust(4096, b'\0'), b''
    def chunk(kind, bytes_):
        return (struct.pack('<IIIIQQ', kind, 1, len(bytes_), 0, 0, 0) + bytes_).ljust(4096, b'\0')
    out += chunk(2, names)
    for seq, (kind, address, size, took) in enumerate(events, 1):
        if not body or len(body) > 3900:
            if body:
                out += chunk(1, body)
            body = struct.pack('<QQQQQ', 255 | 7 << 32, 0, seq, start + 1000 * seq, 1)
            base = seq
        mask = [(1, address), (3, size), (6, size)]
        if kind == MARK:
            mask = [(8, 1)]
        elif tells:
            mask.append((11, took))
        if unknown:
            mask.append((31, 12345))  # of a later Belay
        body += struct.pack('<QII', kind | sum(1 << b for b, _ in mask) << 32, seq - base, 1000 * (seq - base))
        body += struct.pack('<%dQ' % len(mask), *(v for _, v in mask))
    out += chunk(1, body)
    open(name, 'wb').write(out)

events = []
for i in range(400):
    if i == 300:
        events.append((MARK, 0, 0, 0))
    events.append((ALLOC, (i + 1) << 21, 65536, 900 + i if i < 300 else 7000 + i))
for i in range(10):
    events.append((FREE, (i + 1) << 21, 65536, 50))
    events.append((ALLOC, (i + 1) << 21, 4096 << i, 100000))
write('bend.trace', events)
write('later.trace', events, unknown=True)
write('old.trace', events, tells=False)
twice = [(ALLOC, 1 << 21, 64, 10), (FREE, 1 << 21, 64, 10), (FREE, 1 << 21, 64, 10), (ALLOC, 1 << 21, 64, 10), (ALLOC, 1 << 21, 64, 10)]
write('twice.trace', twice)
write('damaged.trace', [(ALLOC, 1 << 21, 64, 1 << 63), (ALLOC, 2 << 21, 64, 2 ** 64 - 1), (FREE, 1 << 21, 64, 0)])
PY
python3 make.py
belay report bend.trace | sed -n '/^calls took/,/^$/p'
belay report bend.trace --json > bend.json
belay report later.trace --json > later.json
python3 - <<'PY'
import json
bend, later = json.load(open('bend.json')), json.load(open('later.json'))
latency = bend['latency']
print('the same with fields of a later version:', latency == later['latency'])
print(latency['bends'][0])
print(latency['over_time'][0])
print(len(latency['over_time']), sum(w['count'] for w in latency['over_time'] if w['call'] == 'alloc'))
print(bend['blocks'])
PY
echo '-- kept by cut and convert'
belay trace cut bend.trace --events 290-310 -o cut.trace
belay report cut.trace | sed -n '/^calls took/,/^$/p'
echo '-- nothing is told, nothing is said'
belay report old.trace | grep -c '^calls took'
belay report old.trace --json | grep -A6 '"latency"'
printf 'Thread,Time,Action,Pointer,Size,Stream\n0,00:00:00.000001,allocate,0x10,64,0\n0,00:00:00.000002,free,0x10,64,0\n' > rmm.csv
belay report rmm.csv | grep -c '^calls took'
belay report damaged.trace | grep -c '^calls took'
echo '-- frees and blocks that do not go together'
belay report twice.trace | grep -A1 'live block\|given out'
belay report twice.trace --json | grep -A7 '"blocks": {'
echo '-- on the page'
belay view bend.trace -o bend.html
python3 - <<'PY'
import re
page = open('bend.html', encoding='utf-8').read()
part = page[page.index('How long calls took'):]
print(len(re.findall('<svg', part)), 'drawing,', part.count('class="p50"'), 'columns')
print(re.search('<title>(.*?)</title>', part).group(1))
print(re.search('<pre.*?>(.*?)</pre>', part, re.S).group(1))
PY
belay view old.trace -o - | grep -c 'How long calls took'
