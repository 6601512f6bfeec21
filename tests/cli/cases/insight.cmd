# Files explained: report, diagnose, diff, top-ops, view; names that mean no good; what is refused.
t=$(printf '\t')
{
    echo "time_us op id bytes stream tag"
    echo "10 a 1 4096 0 preexisting"
    echo "10 e 0 0 0 trace_start"
    i=0
    while [ $i -lt 6 ]; do
        echo "$((20 + i * 10)) e 0 0 0 step$i"
        echo "$((21 + i * 10)) a $((100 + i)) 1000000 1 matmul"
        echo "$((22 + i * 10)) a $((200 + i)) $((1000 + i)) 1 keep"
        echo "$((23 + i * 10)) u $((100 + i)) 0 2 -"
        echo "$((24 + i * 10)) f $((100 + i)) 0 1 -"
        echo "$((25 + i * 10)) d $((100 + i)) 0 0 -"
        i=$((i + 1))
    done
} | sed "s/ /$t/g" > in.tsv
belay report in.tsv
belay diagnose in.tsv
belay top-ops in.tsv
belay top-ops in.tsv --by count -n 1
belay top-ops in.tsv --by=total --json | grep -A7 '"ops"'
sed '/keep/d' in.tsv > less.tsv
belay diff less.tsv in.tsv
belay diff in.tsv in.tsv
echo '-- a snapshot'
python3 - <<'PY'
import pickle
frames = [{'filename': 'c10.cpp', 'line': 1, 'name': 'c10::alloc'},
          {'filename': 'model.py', 'line': 33, 'name': 'forward'}]
def block(address, size, asked, state):
    return {'address': address, 'size': size, 'requested_size': asked, 'state': state, 'frames': frames}
MiB = 1 << 20
base = 0x7f0000000000
segments = [{'device': 0, 'address': base, 'total_size': 20 * MiB, 'stream': 0, 'blocks': [
                block(base, 4 * MiB, 4 * MiB - 100, 'active_allocated'),
                block(base + 4 * MiB, 1 * MiB, 1000000, 'active_pending_free'),
                block(base + 5 * MiB, 15 * MiB, 0, 'inactive')]},
            {'device': 0, 'address': base + 64 * MiB, 'total_size': 2 * MiB, 'stream': 0, 'blocks': [
                block(base + 64 * MiB, 2 * MiB, 0, 'inactive')]}]
trace = [{'action': 'alloc', 'addr': base, 'size': 4 * MiB - 100, 'stream': 0, 'frames': frames, 'time_us': 1000},
         {'action': 'oom', 'size': 64 * MiB, 'device_free': 50 * MiB, 'stream': 0, 'frames': frames, 'time_us': 1100}]
pickle.dump({'segments': segments, 'device_traces': [trace]}, open('s.pickle', 'wb'), 4)
PY
belay report s.pickle
belay diagnose s.pickle | sed -n '1,/cannot tell/p'
echo '-- a snapshot of PyTorch 2.0: who made a block stands in its history, and nowhere else'
python3 - <<'PY'
import pickle
MiB = 1 << 20
frames = [{'filename': 'flex.py', 'line': 190, 'name': 'allocate'}]
segments = [{'device': 0, 'address': 0x7f0000000000, 'total_size': 20 * MiB, 'stream': 0, 'blocks': [
    {'size': 8 * MiB, 'state': 'active_allocated',
     'history': [{'addr': 0x7f0000000000, 'real_size': 8 * MiB - 7, 'frames': frames},
                 {'addr': 0x7f0000000000, 'real_size': 1, 'frames': []}]},
    {'size': 12 * MiB, 'state': 'inactive'}]}]
pickle.dump({'segments': segments, 'device_traces': [[]]}, open('old.pickle', 'wb'), 4)
PY
belay report old.pickle | sed -n '/^card 0/p;/^live/,/^$/p'
echo '-- pages'
printf "time_us\top\tid\tbytes\tstream\ttag\n1\ta\t1\t4096\t0\t<script>alert(1)</script>\"'&\n5\ta\t2\t8192\t0\tb\377\376</script>\n7\te\t0\t0\t0\t</script><b>\n9\tf\t1\t0\t0\t-\n" > evil.tsv
belay view evil.tsv -o evil.html
belay view in.tsv -o - > in.html
head -1 in.tsv > empty.tsv
belay view empty.tsv -o empty.html
python3 - <<'PY'
import html.parser, json
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.data, self.inside, self.outside = [], '', False, []
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.inside = tag == 'script' and attributes.get('id') == 'data'
        self.outside += [v for k, v in attributes.items() if k in ('src', 'href', 'onload', 'onerror')]
    def handle_data(self, data):
        if self.inside:
            self.data += data
    def handle_endtag(self, tag):
        self.inside = False
for name in 'evil', 'in', 'empty':
    text = open(name + '.html', encoding='utf-8', errors='replace').read()
    page = Page()
    page.feed(text)
    print(name, page.tags.count('script'), 'scripts,', page.tags.count('canvas'), 'drawings, from outside:',
          page.outside, 'http:' in text or 'https:' in text)
    if page.data:
        data = json.loads(page.data)
        print(data['n'], len(data['ns']), data['n_blocks'], data['memories'][0]['most'][:4], data['stack']['bytes'][:3])
        print(data['labels'][1:3], data['marks'][:2])
PY
echo '-- refused'
belay report
belay report in.tsv less.tsv
belay report --jason in.tsv
belay report nosuch
belay diff in.tsv
belay top-ops in.tsv --by size
belay top-ops in.tsv -n 0
belay top-ops in.tsv -n
belay view in.tsv
belay view in.tsv -o in.tsv
belay view in.tsv -o /nonexistent/x.html
echo junk > junk
for command in report diagnose top-ops; do belay $command junk; done
belay diagnose in.tsv > /dev/full
