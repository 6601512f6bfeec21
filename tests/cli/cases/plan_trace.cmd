# Recorded traces: the step that repeats, what the stock allocator reserves, and no step.
traces=$(dirname "$0")/../../../examples/traces
for trace in bert_large_train gpt2s_train_gradacc fsdp_multistream bertbase_train_real; do
    belay plan "$traces/$trace.tsv.zst" --step --nodes 1000 --threads 1 | grep -v 'found by'
done
belay plan "$traces/fsdp_multistream.tsv.zst" --step --nodes 1000 --json | grep -A8 stock
# What lives on into the next step is in use at both ends of its own.
{
    printf 'time_us\top\tid\tbytes\tstream\ttag\n'
    i=0
    while [ $i -lt 60 ]; do
        printf '%d\ta\t%d\t%d\t0\t-\n' $i $((i + 1)) $((512 * (i % 12 + 1)))
        [ $i -gt 2 ] && printf '%d\tf\t%d\t0\t0\t-\n' $i $((i - 2))
        i=$((i + 1))
    done
} > overlap.tsv
belay plan overlap.tsv --step --nodes 100 -o step.csv | grep -v 'found by'
cat step.csv
belay plan step.csv --nodes 100 | grep peak
