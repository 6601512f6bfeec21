# Programs of a launcher that uses no card itself share its cap, also one whose parent has ended.
hide() { sed -E 's/pid [0-9]+/pid PID/g; s/in the last [0-9]+ ms/in the last MS ms/; s/\+0x[0-9a-f]+/+OFFSET/g'; }
mkfifo in out
belay run --report none --cap 100MiB -- sh -c '
    sh -c "$PROGRAMS/holder 48 <in >out &" 3>&-
    exec 3>in
    cat out
    $PROGRAMS/holder 48 </dev/null
    exec 3>&-' | hide
belay run --report none --cap 100MiB -- sh -c 'case $BELAY_CAP_GROUP in *:104857600) echo told;; esac'
belay run --report none --cap 100MiB -- belay run --report none --cap 200MiB -- sh -c 'case $BELAY_CAP_GROUP in *,*) echo two;; *:104857600) echo one;; esac'
