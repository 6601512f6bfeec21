# Two processes hold memory; a third one looks, and is not seen.
hide() { sed -E 's/^ +[0-9]+  holder/  PID  holder/; s/[0-9]+ s$/AGE s/; s/\+0x[0-9a-f]+/+OFFSET/'; }
belay smi
mkfifo in1 in2 out1 out2
LD_LIBRARY_PATH=$LIB BELAY_HBM=1GiB $PROGRAMS/holder 384 <in1 >out1 &
first=$!
LD_LIBRARY_PATH=$LIB BELAY_HBM=1GiB $PROGRAMS/holder 64 <in2 >out2 &
second=$!
exec 3>in1 4>in2
cat out1 out2
belay smi | hide
belay smi --card 1
belay smi --json | grep -cE '"(live|free|function)"'
belay smi --json | grep -E '"function"'
kill -9 $first
wait $first 2>/dev/null
belay smi | hide
exec 4>&-
wait $second
belay smi
belay smi --cards
