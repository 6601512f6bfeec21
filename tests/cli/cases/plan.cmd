# Buffers to offsets, a trace to a step, and what is refused.
cat > buffers.csv <<'END'
id,lower,upper,size
b1,0,3,4
b2,3,9,4
b3,0,9,4
b4,9,21,4
b5,0,21,4
END
belay plan buffers.csv --capacity 12 --threads 1 -o -
belay plan buffers.csv --json | sed 's/"seconds": .*,/"seconds": S,/'
belay plan buffers.csv --align 8 --json | grep -E 'peak|bound|optimal'
belay plan buffers.csv --html | grep -c '<svg'
belay plan buffers.csv --html | grep -c 'tabindex.*b4: 4 B at 0, lives \[9, 21)'
echo id,lower,upper,size > empty.csv
belay plan empty.csv --html | grep -c 'There are no buffers'
belay plan buffers.csv --capacity 11
{
    printf 'time_us\top\tid\tbytes\tstream\ttag\n'
    i=0
    while [ $i -lt 60 ]; do
        printf '%d\ta\t%d\t%d\t0\t-\n' $i $((2 * i + 1)) $((512 * (i % 12 + 1)))
        printf '%d\ta\t%d\t%d\t0\t-\n' $i $((2 * i + 2)) 4096
        printf '%d\tf\t%d\t0\t0\t-\n%d\tf\t%d\t0\t0\t-\n' $i $((2 * i + 1)) $i $((2 * i + 2))
        i=$((i + 1))
    done
} > trace.tsv
belay plan trace.tsv --step --nodes 100 | grep -v 'found by'
sed 's/b3,0/b3,x/' buffers.csv > bad.csv
belay plan bad.csv
belay plan buffers.csv --deadline soon
belay plan nosuch.csv
belay plan
