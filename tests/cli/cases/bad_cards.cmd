for options in "--model 920" "--hbm 1KiB" "--hbm 17MiB" "--cap 1KiB" "--peer 3-1"; do
    belay run $options --report r.json -- $PROGRAMS/linked; echo "status $?"
done
BELAY_MODEL=920 belay run -- $PROGRAMS/linked; echo "status $?"
echo "base 310P
memory lots" >mine.model
belay run --model mine.model -- $PROGRAMS/linked; echo "status $?"
ls
echo "base 310P
name mine" >mine.model
belay run --model mine.model --report none -- sh -c "cd /; $PROGRAMS/linked"; echo "status $?"
belay run --fail-host 1 --model 310P --report none -- true; echo "status $?"
