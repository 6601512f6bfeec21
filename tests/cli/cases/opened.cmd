belay run --report none -- $PROGRAMS/opened
