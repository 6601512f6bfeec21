#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh BUILD - runs the inference service of examples/ on a software NPU with a memory report.
set -eu
build=$1
exec "$build/bin/belay" run --model 910B --hbm 2GiB -- "$build/examples/detection_service"
