# A trace against allocators: figures by hand, capacity, hostile input.
trace() { printf 'time_us\top\tid\tbytes\tstream\ttag\n'; cat; }
# Three blocks of 3 MiB: alone two pages each; from one segment of 20 MiB; in one arena 10 MiB.
trace > three.tsv <<'END2'
0	a	1	3145728	0	-
1	a	2	3145728	0	-
2	a	3	3145728	0	-
3	f	2	0	0	-
4	a	4	1048576	0	-
END2
belay replay three.tsv | grep -v ^pool # whose figures are its own tests'
belay replay three.tsv --pad 32 --capacity min | grep -v ^pool
belay replay three.tsv --policy caching --capacity min --json
belay replay three.tsv --policy firstfit --capacity min --within 8MiB --json | grep min_capacity
belay replay three.tsv --policy stock --capacity 12MiB --json
belay replay three.tsv --policy stock --capacity 11MiB --json
belay replay three.tsv --capacity 21MiB --json 2>&1 | sed '/"pool"/,$d' | grep -E 'policy|reserved'
belay replay three.tsv --json > one.json
belay replay three.tsv --json | cmp - one.json && echo the same
belay replay three.tsv --time --json | grep -c '"ns_per_op": [0-9]'
belay replay three.tsv --html > page.html
grep -c '<polyline' page.html
grep -E -c 'http|<script' page.html
# A block that stream 1 uses too: back when it is told, or so many events after its free.
trace > used.tsv <<'END2'
0	a	1	2097152	0	-
1	u	1	0	1	-
2	f	1	0	0	-
3	a	2	2097152	0	-
4	e	0	0	0	x
5	f	2	0	0	-
6	a	3	2097152	0	-
END2
for lag in 1 2; do
    belay replay used.tsv --policy stock --lag $lag --json | grep peak_reserved
done
sed 's/^4.*/4	s	0	0	-1	-/; s/^3.*/&\n3	d	1	0	0	-/' used.tsv > told.tsv
belay replay told.tsv --policy stock --lag 1 --json | grep -E 'events|peak_reserved'
# The same out of a recording.
belay trace convert told.tsv -o told.trace
belay replay told.trace --json | sed 's/told.trace/told.tsv/' > from_trace.json
belay replay told.tsv --json | cmp - from_trace.json && echo the same
# Many streams, each with slabs of its own: a card without limit is large enough for that.
seq 600 | awk '{ printf "%d\ta\t%d\t512\t%d\t-\n", $1, $1, $1 }' | trace > streams.tsv
belay replay streams.tsv --policy pool --json | grep peak
# What is refused.
belay replay three.tsv --card 7
trace < /dev/null > empty.tsv
belay replay empty.tsv --capacity min --json | tail -17
belay replay three.tsv --policy pool --capacity min --threads 2 | tail -1 | cut -d' ' -f1
belay replay empty.tsv --html | grep -c 'no events'
: > nothing.tsv
belay replay nothing.tsv
printf '0\tf\t7\t0\t0\t-\n' | trace > unknown.tsv
belay replay unknown.tsv
printf '0\ta\t7\t1\t0\t-\n0\ta\t7\t1\t0\t-\n' | trace > twice.tsv
belay replay twice.tsv
printf '0\ta\t7\t9223372036854775808\t0\t-\n' | trace > large.tsv
belay replay large.tsv
printf '0\ta\t7\t9223372036854775807\t0\t-\n' | trace > larger.tsv
belay replay larger.tsv
printf '0\ta\t7\t281474976710656\t0\t-\n' | trace > largest.tsv
belay replay largest.tsv --policy expandable
printf "0\ta\t7\t281474976710657\t0\t-\n" | trace > card.tsv
belay replay card.tsv
belay replay three.tsv --capacity 0
belay replay three.tsv --capacity most
belay replay three.tsv --pad 16
belay replay three.tsv --threads 0
belay replay three.tsv --policy cashing
belay replay three.tsv --json --html
belay replay three.tsv --fast
belay replay nosuch.tsv
belay replay
