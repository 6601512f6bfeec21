BELAY_HBN=1GiB belay doctor | grep -A2 variables; 
BELAY_HBM=much belay doctor >out; echo "status $?"; grep -A2 variables out; tail -1 out | sed 's/[0-9]* notes*/N notes/'
mkdir vendor; cp $LIB/libascendcl.so vendor
LD_LIBRARY_PATH=vendor belay doctor | grep -A4 other-library
BELAY_MODEL=920 belay doctor | grep -A3 variables
