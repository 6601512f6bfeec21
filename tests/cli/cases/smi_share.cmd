# A block that two processes hold: who exported it, who has it open, and when its maker is gone.
hide() { sed -E 's/^ +[0-9]+  holder/  PID  holder/; s/[0-9]+ s$/AGE s/; s/\+0x[0-9a-f]+/+OFFSET/; s/pid [0-9]+/pid PID/g'; }
mkfifo in1 in2 out1 out2
LD_LIBRARY_PATH=$LIB BELAY_HBM=1GiB $PROGRAMS/holder 64 export <in1 >out1 &
maker=$!
exec 3>in1
{ read -r key; read -r word; } <out1
echo "${#key} characters, $word"
LD_LIBRARY_PATH=$LIB BELAY_HBM=1GiB $PROGRAMS/holder 32 "$key" <in2 >out2 &
importer=$!
exec 4>in2
cat out2
belay smi | hide
belay smi --json | grep -A10 '"exports"' | grep -E '"(asked|bytes|kind|freed_by_maker)"'
kill -9 $maker
wait $maker 2>/dev/null
belay smi | hide
exec 4>&-
wait $importer
belay smi
