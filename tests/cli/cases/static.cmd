belay run -- $PROGRAMS/static_program; echo "status $?"
