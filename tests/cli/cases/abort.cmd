belay run --report - -- $PROGRAMS/linked abort 2>/dev/null; echo "status $?"
