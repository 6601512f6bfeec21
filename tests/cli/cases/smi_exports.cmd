# Many exports: the largest are told one by one, the others together; --json has all.
hide() { sed -E 's/pid [0-9]+/pid PID/g'; }
mkfifo in out
LD_LIBRARY_PATH=$LIB BELAY_HBM=1GiB $PROGRAMS/holder 64 export 12 <in >out &
holder=$!
exec 3>in
{ read -r key; read -r word; } <out
echo "${#key} characters, $word"
belay smi | grep export | hide
belay smi --json | grep -c '"exported_by"'
exec 3>&-
wait $holder
