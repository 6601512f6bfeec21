# A state folder that cannot be looked for is not an empty one; one that is not there is.
mkdir -p inner
BELAY_STATE=$PWD/inner/state belay smi
echo status $?
: >file
BELAY_STATE=$PWD/file/state belay smi
echo status $?
