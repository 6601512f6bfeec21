LD_PRELOAD=$PROGRAMS/no_proc.so belay run --hbm 1GiB --report none -- $PROGRAMS/linked; echo "status $?"
cd $(dirname $BELAY)
LD_PRELOAD=$PROGRAMS/no_proc.so ./belay run --hbm 1GiB --report none -- $PROGRAMS/linked; echo "status $?"
