belay run --hbm 1GiB -- $PROGRAMS/linked 3
