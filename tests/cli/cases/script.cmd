printf '#!/bin/sh\nexec $PROGRAMS/linked 4\n' >script; chmod +x script
belay run --hbm 1GiB --report none -- ./script; echo "status $?"
printf '#!/usr/bin/env -S sh\nexec $PROGRAMS/linked 4\n' >script
PATH=.:$PATH belay run --hbm 1GiB --report none -- script; echo "status $?"
printf "#!$PROGRAMS/static_program\n" >script
belay run -- ./script; echo "status $?"
