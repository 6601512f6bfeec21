belay run --report - -- $PROGRAMS/linked abort >/dev/null 2>&1; echo "status $?"
