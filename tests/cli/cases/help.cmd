for command in run doctor options symbolize version; do
    belay $command --help
    echo ----
done
belay help doctor | head -1
