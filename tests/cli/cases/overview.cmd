belay; echo "status $?"
belay --help | head -1
belay help | tail -3
belay --version
