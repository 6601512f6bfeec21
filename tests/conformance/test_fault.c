/* SPDX-License-Identifier: Apache-2.0 */
/* Every host allocation and every wrapped system call of a scenario fails once. A call that
 * fails returns a code, has changed nothing, and works when it is made again. */
#include "acl_test.h"

#include <sys/mman.h>

#define TRIES_MAX 2000

static void add_one(void *arg)
{
    (*(int *)arg)++;
}

/* The call again after a failure: the fault happens once. */
#define STEP(call)                                                                                 \
    do {                                                                                           \
        aclError step_ = (call);                                                                   \
        if (step_ != 0) {                                                                          \
            failures++;                                                                            \
            OK(call);                                                                              \
        }                                                                                          \
    } while (0)

static int failures;

static void *make(void *(*create)(void))
{
    void *made = create();
    if (made == NULL) {
        failures++;
        made = create();
    }
    CHECK(made != NULL);
    return made;
}

static void *make_buffer(void)
{
    return aclCreateDataBuffer(&failures, sizeof(failures));
}

static void *make_desc(void)
{
    return aclrtAllocatorCreateDesc();
}

static void *make_config(void)
{
    return aclrtCreateStreamConfigHandle();
}

static void scenario(void)
{
    enum { SIZE = 3 << 20 };
    static char seen[SIZE];
    void *card = NULL, *small = NULL, *pinned = NULL;
    aclrtContext context = NULL;
    aclrtStream stream = NULL, other = NULL;
    aclrtEvent event = NULL, legacy = NULL;
    aclrtStreamAttrValue tag = {.userCustomTag = 5};
    int ran = 0;
    STEP(aclInit(NULL));
    STEP(aclrtSetDevice(0));
    size_t before = free_bytes(ACL_HBM_MEM);
    STEP(aclrtCreateStream(&stream));
    aclDataBuffer *buffer = make(make_buffer);
    aclrtAllocatorDesc desc = make(make_desc);
    aclrtStreamConfigHandle *config = make(make_config);
    STEP(aclrtCreateStreamV2(&other, config));
    STEP(aclrtSetStreamAttribute(other, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &tag));
    STEP(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    STEP(aclrtCreateEvent(&legacy));
    STEP(aclrtMalloc(&card, SIZE, HUGE_FIRST));
    STEP(aclrtMalloc(&small, 4096, NORMAL_ONLY));
    STEP(aclrtMallocHost(&pinned, SIZE));
    memset(pinned, 3, SIZE);
    STEP(aclrtMemcpyAsync(card, SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    STEP(aclrtRecordEvent(event, stream));
    STEP(aclrtRecordEvent(legacy, stream));
    STEP(aclrtStreamWaitEvent(other, event));
    STEP(aclrtStreamWaitEvent(other, legacy));
    STEP(aclrtMemsetD32Async(card, 4, 0x04040404, 1, other));
    STEP(aclrtLaunchHostFunc(other, add_one, &ran));
    int before_wait = failures;
    STEP(aclrtSynchronizeStream(stream));
    STEP(aclrtSynchronizeStream(other));
    bool is_whole = failures == before_wait; /* else queued work failed, and was told */
    CHECK_EQ(ran, 1);
    STEP(aclrtMemset(small, 4096, 1, 4096));
    STEP(aclrtMemcpy(seen, SIZE, card, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    if (is_whole) {
        CHECK_EQ(seen[0], 4);
        CHECK_EQ(seen[SIZE - 1], 3);
    }
    STEP(aclrtCreateContext(&context, 0));
    STEP(aclrtDestroyContext(context));
    STEP(aclrtSetDevice(0));
    STEP(aclrtFree(card));
    STEP(aclrtFree(small));
    STEP(aclrtFreeHost(pinned));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    STEP(aclrtDestroyEvent(event));
    STEP(aclrtDestroyEvent(legacy));
    STEP(aclrtDestroyStream(stream));
    STEP(aclrtDestroyStream(other));
    STEP(aclDestroyDataBuffer(buffer));
    STEP(aclrtAllocatorDestroyDesc(desc));
    STEP(aclrtDestroyStreamConfigHandle(config));
    STEP(aclrtResetDeviceForce(0));
    STEP(aclFinalize());
}

static const char *option;
static int nth;
static int *seen_failures; /* shared with the children */

static void once(void)
{
    char value[16];
    snprintf(value, sizeof(value), "%d", nth);
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_LOG", "error", 1);
    setenv(option, value, 1);
    scenario();
    *seen_failures += failures;
}

/* Ends when a long row of faults was met by nobody: the scenario is shorter. */
static void fail_each(const char *which)
{
    option = which;
    int last = 0;
    for (nth = 1; nth <= TRIES_MAX && nth - last <= 200; nth++) {
        char name[64];
        snprintf(name, sizeof(name), "%s=%d", which, nth);
        *seen_failures = 0;
        run_in_child(once, name);
        if (*seen_failures > 0)
            last = nth;
    }
    print_message("%s: the last fault that a call told was number %d\n", which, last);
    assert_true(last > 0);
}

static void host_allocations(void **state)
{
    (void)state;
    fail_each("BELAY_FAIL_HOST");
}

static void system_calls(void **state)
{
    (void)state;
    fail_each("BELAY_FAIL_SYSTEM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_allocations),
        cmocka_unit_test(system_calls),
    };
    seen_failures =
        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen_failures == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
