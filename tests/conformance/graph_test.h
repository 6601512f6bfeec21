/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_test.h - what tests of graphs share: two streams, a card buffer of 64 bit words, kernels.
 */
#ifndef GRAPH_TEST_H
#define GRAPH_TEST_H

#include "acl_test.h"

#define WORDS  1024
#define GLOBAL ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
#define THREAD ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL
#define RELAX  ACL_MODEL_RI_CAPTURE_MODE_RELAXED
#define D2D    ACL_MEMCPY_DEVICE_TO_DEVICE
#define D2H    ACL_MEMCPY_DEVICE_TO_HOST
#define H2D    ACL_MEMCPY_HOST_TO_DEVICE

static aclrtStream first, second;
static uint64_t *words, *pinned;

static inline void open_all(void)
{
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&first));
    OK(aclrtCreateStream(&second));
    OK(aclrtMalloc((void **)&words, WORDS * sizeof(uint64_t), HUGE_FIRST));
    OK(aclrtMemset(words, WORDS * sizeof(uint64_t), 0, WORDS * sizeof(uint64_t)));
    OK(aclrtMallocHost((void **)&pinned, WORDS * sizeof(uint64_t)));
    memset(pinned, 0, WORDS * sizeof(uint64_t));
}

static inline uint64_t get(int i)
{
    uint64_t got;
    OK(aclrtMemcpy(&got, sizeof(got), words + i, sizeof(got), D2H));
    return got;
}

static inline void put(int i, uint64_t value)
{
    OK(aclrtMemcpy(words + i, sizeof(value), &value, sizeof(value), H2D));
}

static inline void copy_word(int to, int from, aclrtStream stream)
{
    OK(aclrtMemcpyAsync(words + to, 8, words + from, 8, D2D, stream));
}

static inline void run(aclmdlRI graph, aclrtStream stream)
{
    OK(aclmdlRIExecuteAsync(graph, stream));
    OK(aclrtSynchronizeStream(stream));
}

static inline aclrtEvent sync_event(void)
{
    aclrtEvent event;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    return event;
}

#ifdef TEST_KERNELS
static aclrtBinHandle binary;

static inline aclrtFuncHandle function(const char *name)
{
    aclrtFuncHandle found = NULL;
    if (binary == NULL)
        OK(aclrtBinaryLoadFromFile(TEST_KERNELS, NULL, &binary));
    OK(aclrtBinaryGetFunction(binary, name, &found));
    return found;
}

static inline aclError launch(const char *name, void *pointer, aclrtStream stream)
{
    return aclrtLaunchKernelWithHostArgs(function(name), 1, stream, NULL, &pointer, sizeof(pointer),
                                         NULL, 0);
}
#endif

#endif
