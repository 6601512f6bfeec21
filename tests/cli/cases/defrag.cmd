# Two processes whose memory lies in each other's way, gathered from outside.
hide() { sed -E 's/pid [0-9]+/pid PID/'; }
belay defrag 0
belay defrag
belay defrag 64
belay defrag 0 --want much
export BELAY_HBM=256MiB
mkfifo in1 in2 out1 out2
LD_LIBRARY_PATH=$LIB $PROGRAMS/scatter 32 <in1 >out1 &
first=$!
exec 3>in1 5<out1
read -r line <&5
echo $line
LD_LIBRARY_PATH=$LIB $PROGRAMS/scatter 40 <in2 >out2 &
second=$!
exec 4>in2 6<out2
read -r line <&6
echo $line
echo >&3
cat <&5
echo >&4
cat <&6
belay defrag 1
belay defrag 0 --want 1MiB
belay defrag 0 --want 128MiB | hide
belay defrag 0 | hide
belay defrag 0 --want 1GiB >/dev/null
echo status $?
belay defrag 0 --json | grep -v pid
kill -STOP $second
while grep -h '^State:' /proc/$second/task/*/status | grep -qv 'T (stopped)'; do :; done
belay defrag 0 | hide
kill -CONT $second
exec 3>&- 4>&-
wait $first
echo first $?
wait $second
echo second $?
