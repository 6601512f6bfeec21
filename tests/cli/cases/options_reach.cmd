belay run --hbm=64MiB --report none -- $PROGRAMS/linked
BELAY_HBM=128MiB BELAY_REPORT= belay run -- $PROGRAMS/linked
BELAY_HBM=128MiB belay run --hbm 32MiB --report none -- $PROGRAMS/linked
