/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: making, limits (O-07), waiting, attributes, allocators of the program. */
#include "acl_test.h"

TEST(create_and_destroy)
{
    aclrtStream stream = ANY_ADDRESS;
    CHECK_ACL(aclrtCreateStream(NULL), 100000);
    CHECK_ACL(aclrtCreateStream(&stream), 107002);
    CHECK(stream == ANY_ADDRESS);
    CHECK_ACL(aclrtDestroyStream(NULL), 100000);
    CHECK_ACL(aclrtDestroyStreamForce(NULL), 100000);
    CHECK_ACL(aclrtDestroyStream(ANY_ADDRESS), 107002);
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtDestroyStream(ANY_ADDRESS), 107017);
    OK(aclrtCreateStream(&stream));
    OK(aclrtDestroyStream(stream));
    CHECK_ACL(aclrtDestroyStream(stream), 107017);
    CHECK_ACL(aclrtSynchronizeStream(stream), 107017);
    CHECK_ACL(aclrtSynchronizeStream(&stream), 107017);
    OK(aclrtCreateStream(&stream));
    OK(aclrtDestroyStreamForce(stream));
}

TEST(streams_of_other_contexts)
{
    aclrtStream stream = NULL;
    aclrtContext context = NULL;
    aclrtEvent event = NULL;
    void *p = NULL;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtCreateEvent(&event));
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    CHECK_ACL(aclrtDestroyStream(stream), 107003);
    CHECK_ACL(aclrtMemsetAsync(p, 4096, 0, 4096, stream), 107003);
    CHECK_ACL(aclrtRecordEvent(event, stream), 107003);
    CHECK_EQ(aclrtGetLastError(0), 107003);
    OK(aclrtSynchronizeStream(stream)); /* any context may wait */
    OK(aclrtSetDevice(0));
    OK(aclrtDestroyStream(stream));
}

TEST(waiting)
{
    struct hold hold;
    aclrtStream stream = NULL;
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 0), 107000);
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, -2), 107000);
    OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
    CHECK_ACL(aclrtStreamQuery(stream, NULL), 100000);
    OK(aclrtStreamQuery(stream, &status));
    CHECK_EQ(status, ACL_STREAM_STATUS_COMPLETE);
    hold_stream(&hold, stream);
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 20), 507046);
    OK(aclrtStreamQuery(stream, &status));
    CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
    let_go(&hold);
    OK(aclrtSynchronizeStreamWithTimeout(stream, 1000 * TEST_SECONDS));
    OK(aclrtStreamQuery(NULL, &status));
    CHECK_EQ(status, 0);
}

TEST(destroy_waits_for_queued_work)
{
    aclrtStream stream = NULL;
    unsigned char *p = NULL, seen = 0;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&p, 64 * MIB, HUGE_FIRST));
    OK(aclrtMemsetAsync(p, 64 * MIB, 0x42, 64 * MIB, stream));
    OK(aclrtDestroyStream(stream));
    OK(aclrtMemcpy(&seen, 1, p + 64 * MIB - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(seen, 0x42);
}

TEST(properties)
{
    aclrtStream stream = NULL, main_stream = NULL;
    uint32_t priority = 99, flags = 99;
    int32_t id = -1, main_id = -1, least = -1, greatest = -1;
    OK(aclrtDeviceGetStreamPriorityRange(NULL, NULL));
    OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK_EQ(least, 7);
    CHECK_EQ(greatest, 0);
    CHECK_ACL(aclrtCtxGetCurrentDefaultStream(&main_stream), 107002);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStreamWithConfig(&stream, 200, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    OK(aclrtStreamGetPriority(stream, &priority));
    CHECK_EQ(priority, 7);
    OK(aclrtStreamGetFlags(stream, &flags));
    CHECK_EQ(flags, 3);
    OK(aclrtStreamGetId(stream, &id));
    OK(aclrtStreamGetId(NULL, &main_id));
    CHECK(id != main_id);
    OK(aclrtCtxGetCurrentDefaultStream(&main_stream));
    OK(aclrtStreamGetId(main_stream, &id));
    CHECK_EQ(id, main_id);
    OK(aclrtSynchronizeStream(main_stream));
    CHECK_ACL(aclrtStreamGetId(stream, NULL), 100000);
    CHECK_ACL(aclrtStreamGetPriority(stream, NULL), 100000);
    CHECK_ACL(aclrtStreamGetFlags(stream, NULL), 100000);
}

TEST(config_handles)
{
    aclrtStream stream = NULL;
    uint32_t priority = 3;
    size_t flag = ACL_STREAM_FAST_SYNC;
    aclrtStreamConfigHandle *config = aclrtCreateStreamConfigHandle();
    CHECK(config != NULL);
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtSetStreamConfigOpt(NULL, ACL_RT_STREAM_PRIORITY, &priority, 4), 100000);
    CHECK_ACL(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, NULL, 4), 100000);
    CHECK_ACL(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, 8), 100000);
    CHECK_ACL(aclrtSetStreamConfigOpt(config, (aclrtStreamConfigAttr)4, &priority, 4), 100000);
    CHECK_ACL(aclrtSetStreamConfigOpt(ANY_ADDRESS, ACL_RT_STREAM_PRIORITY, &priority, 4), 100000);
    OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof(priority)));
    OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, sizeof(flag)));
    uint32_t narrow = (uint32_t)flag;
    OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &narrow, sizeof(narrow)));
    CHECK_ACL(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &narrow, 2), 100000);
    CHECK_ACL(aclrtCreateStreamV2(NULL, config), 100000);
    CHECK_ACL(aclrtCreateStreamV2(&stream, ANY_ADDRESS), 100000);
    OK(aclrtCreateStreamV2(&stream, config));
    priority = 99;
    OK(aclrtStreamGetPriority(stream, &priority));
    CHECK_EQ(priority, 3);
    OK(aclrtCreateStreamV2(&stream, NULL));
    OK(aclrtStreamGetPriority(stream, &priority));
    CHECK_EQ(priority, 0);
    OK(aclrtDestroyStreamConfigHandle(config));
    CHECK_ACL(aclrtDestroyStreamConfigHandle(config), 100000);
    CHECK_ACL(aclrtDestroyStreamConfigHandle(NULL), 100000);
}

/* O-07: streams are gone, memory is not. */
TEST(streams_run_out)
{
    setenv("BELAY_STREAMS", "32", 1);
    setenv("BELAY_HBM", "1GiB", 1);
    aclrtStream streams[33] = {NULL};
    uint32_t left = 0;
    OK(aclrtSetDevice(0));
    size_t before = free_bytes(ACL_HBM_MEM);
    for (int i = 0; i < 32; i++)
        OK(aclrtCreateStream(&streams[i]));
    OK(aclrtGetStreamAvailableNum(&left));
    CHECK_EQ(left, 0);
    CHECK_ACL(aclrtCreateStream(&streams[32]), 207008);
    CHECK(streams[32] == NULL);
    CHECK_MESSAGE("32");
    CHECK_EQ(aclrtGetLastError(0), 207008);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    OK(aclrtDestroyStream(streams[7]));
    OK(aclrtGetStreamAvailableNum(&left));
    CHECK_EQ(left, 1);
    OK(aclrtCreateStream(&streams[7]));
}

TEST(attributes)
{
    aclrtStream stream = NULL;
    aclrtStreamAttrValue value = {.userCustomTag = 0xabcd};
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStreamWithConfig(&stream, 2, 0));
    CHECK_ACL(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, NULL), 100000);
    CHECK_ACL(aclrtSetStreamAttribute(stream, (aclrtStreamAttr)6, &value), 100000);
    CHECK_ACL(aclrtSetStreamAttribute(ANY_ADDRESS, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value),
              107017);
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
    value.userCustomTag = 0;
    OK(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
    CHECK_EQ(value.userCustomTag, 0xabcd);
    OK(aclrtGetStreamAttribute(NULL, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
    CHECK_EQ(value.userCustomTag, 0);
    OK(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, &value));
    CHECK_EQ(value.streamPriority, 2);
    value.failureMode = ACL_CONTINUE_ON_FAILURE;
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value));
    value.failureMode = ACL_STOP_ON_FAILURE;
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value));
    uint32_t flag = 9;
    OK(aclrtSetStreamOverflowSwitch(stream, 1));
    CHECK_ACL(aclrtSetStreamOverflowSwitch(stream, 2), 107000);
    OK(aclrtGetStreamOverflowSwitch(stream, &flag));
    CHECK_EQ(flag, 1);
}

static void *block_alloc(aclrtAllocator allocator, size_t size)
{
    (void)allocator, (void)size;
    return NULL;
}

static void block_free(aclrtAllocator allocator, aclrtAllocatorBlock block)
{
    (void)allocator, (void)block;
}

static void *block_address(aclrtAllocatorBlock block)
{
    return block;
}

TEST(allocators_of_the_program)
{
    aclrtStream stream = NULL;
    int object = 0;
    aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc(), found = NULL;
    aclrtAllocator found_object = NULL;
    aclrtAllocatorAllocFunc alloc_func = NULL;
    CHECK(desc != NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    CHECK_ACL(aclrtAllocatorSetObjToDesc(NULL, &object), 100000);
    CHECK_ACL(aclrtAllocatorSetObjToDesc(desc, NULL), 100000);
    CHECK_ACL(aclrtAllocatorSetAllocFuncToDesc(ANY_ADDRESS, block_alloc), 100000);
    CHECK_ACL(aclrtAllocatorRegister(NULL, desc), 100000);
    CHECK_ACL(aclrtAllocatorRegister(stream, NULL), 100000);
    CHECK_ACL(aclrtAllocatorRegister(stream, desc), 100000);
    OK(aclrtAllocatorSetObjToDesc(desc, &object));
    OK(aclrtAllocatorSetAllocFuncToDesc(desc, block_alloc));
    OK(aclrtAllocatorSetFreeFuncToDesc(desc, block_free));
    CHECK_ACL(aclrtAllocatorRegister(stream, desc), 100000);
    CHECK_MESSAGE("address function");
    OK(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, block_address));
    OK(aclrtAllocatorRegister(stream, desc));
    OK(aclrtAllocatorRegister(stream, desc));
    OK(aclrtAllocatorDestroyDesc(desc));
    CHECK_ACL(aclrtAllocatorDestroyDesc(desc), 100000);
    CHECK_ACL(aclrtAllocatorDestroyDesc(NULL), 100000);
    OK(aclrtAllocatorGetByStream(stream, &found, &found_object, &alloc_func, NULL, NULL, NULL));
    CHECK(found_object == &object && alloc_func == block_alloc);
    CHECK_ACL(aclrtAllocatorGetByStream(stream, NULL, NULL, NULL, NULL, NULL, NULL), 100000);
    OK(aclrtAllocatorUnregister(stream));
    OK(aclrtAllocatorUnregister(stream));
    OK(aclrtAllocatorUnregister(ANY_ADDRESS));
    CHECK_ACL(aclrtAllocatorUnregister(NULL), 100000);
    CHECK_ACL(aclrtAllocatorGetByStream(stream, &found, NULL, NULL, NULL, NULL, NULL), 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_and_destroy),
        cmocka_unit_test(streams_of_other_contexts),
        cmocka_unit_test(waiting),
        cmocka_unit_test(destroy_waits_for_queued_work),
        cmocka_unit_test(properties),
        cmocka_unit_test(config_handles),
        cmocka_unit_test(streams_run_out),
        cmocka_unit_test(attributes),
        cmocka_unit_test(allocators_of_the_program),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
