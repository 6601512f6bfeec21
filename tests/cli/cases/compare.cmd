# The same program with stock allocation and with the pool.
export TMPDIR="$PWD"
rows() { sed -E 's/[0-9]+\.[0-9]{3} s +[0-9]+\.[0-9]{3} s.*/TIME/'; }
belay compare --hbm 256MiB -- $PROGRAMS/linked | rows
belay compare --hbm 256MiB --no-smallest --json -- $PROGRAMS/linked | grep -E 'alloc"|peak|left|runs|smallest'
belay compare --no-smallest --html -- $PROGRAMS/linked > page.html
grep -c '<svg' page.html
grep -E -c 'http:|<script' page.html
# A program with a pool of its own.
belay compare --hbm 256MiB --no-smallest -- $PROGRAMS/pooled | rows
belay compare --hbm 256MiB --no-smallest --json -- $PROGRAMS/pooled | grep pools
# What a program said that failed stays.
belay compare --no-smallest -- $PROGRAMS/linked unused 2> said
sed -E 's|compare-[A-Za-z0-9]{6}|compare-FOLDER|' said
belay compare --no-smallest -- /bin/sh -c 'echo no more >&2; exit 3' 2> said
sed -E 's|compare-[A-Za-z0-9]{6}|compare-FOLDER|' said
output=$(sed -n 's|.* is in \(/.*/belay-compare-[A-Za-z0-9]*/stock.out\)$|\1|p' said)
cat "$output"
rm -r "$(dirname "$output")"
belay compare --hbm nothing -- true
belay compare --smalest -- true
belay compare
belay compare --html --json -- true
belay compare --hbm -- true
belay compare -- ./nothing
TMPDIR=/nonexistent belay compare -- true 2>&1 | sed -E 's|compare-[A-Za-z0-9]{6}|compare-FOLDER|'
ls
