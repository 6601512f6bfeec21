# Memory in pools, of another process: how much there is, and what of it is in no block.
hide() { sed -E 's/^ +[0-9]+  holder/  PID  holder/; s/[0-9]+ s$/AGE s/; s/\+0x[0-9a-f]+/+OFFSET/'; }
mkfifo in1 out1
LD_LIBRARY_PATH=$LIB BELAY_ALLOC=pool BELAY_HBM=1GiB $PROGRAMS/holder 65 <in1 >out1 &
holder=$!
exec 3>in1
cat out1
belay smi | hide
belay smi --json | grep -E '"(live|pool_held|pool_idle)"'
exec 3>&-
wait $holder
