/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_engine.c - what differs between the engines that run kernels.
 */
#include "npu/kernel_inside.h"
#include "npu/task.h"

enum blyi_engine_kind blyi_kernel_engine_kind(bly_engine engine)
{
    switch (engine) {
    case BLY_ENGINE_AICPU:
        return BLYI_ENGINE_AICPU;
    case BLY_ENGINE_DVPP:
        return BLYI_ENGINE_DVPP;
    case BLY_ENGINE_COPY:
        return BLYI_ENGINE_COPY;
    case BLY_ENGINE_VECTOR:
    case BLY_ENGINE_CUBE:
        break;
    }
    return BLYI_ENGINE_AICORE;
}

const char *blyi_kernel_engine_name(bly_engine engine)
{
    switch (engine) {
    case BLY_ENGINE_CUBE:
        return "a cube core";
    case BLY_ENGINE_AICPU:
        return "an AI CPU";
    case BLY_ENGINE_DVPP:
        return "DVPP";
    case BLY_ENGINE_COPY:
        return "a copy engine";
    case BLY_ENGINE_VECTOR:
        break;
    }
    return "a vector core";
}

bly_status blyi_kernel_engine_status(bly_engine engine)
{
    switch (engine) {
    case BLY_ENGINE_VECTOR:
        return BLY_E_KERNEL_VECTOR;
    case BLY_ENGINE_CUBE:
        return BLY_E_KERNEL_CUBE;
    case BLY_ENGINE_AICPU:
        return BLY_E_KERNEL_AICPU;
    case BLY_ENGINE_DVPP:
    case BLY_ENGINE_COPY:
        break;
    }
    return BLY_E_FAULT;
}

bly_status blyi_kernel_engine_timeout(bly_engine engine)
{
    switch (engine) {
    case BLY_ENGINE_CUBE:
        return BLY_E_TIMEOUT_CUBE;
    case BLY_ENGINE_AICPU:
        return BLY_E_TIMEOUT_AICPU;
    case BLY_ENGINE_VECTOR:
        return BLY_E_TIMEOUT_VECTOR;
    case BLY_ENGINE_DVPP:
    case BLY_ENGINE_COPY:
        break;
    }
    return BLY_E_FAULT;
}

enum blyi_engine_kind blyi_kernel_engine(const struct blyi_task *task)
{
    return blyi_kernel_engine_kind((bly_engine)task->u.kernel.launch->engine);
}
