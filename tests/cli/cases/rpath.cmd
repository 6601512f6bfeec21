$PROGRAMS/rpath; echo "without us: status $?"
belay run --hbm 1GiB --report none -- $PROGRAMS/rpath
