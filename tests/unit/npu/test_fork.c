/* SPDX-License-Identifier: Apache-2.0 */
/* A child of a process whose runtime is up gets an answer, never a hang. */
#include "order_test.h"

#include <sys/wait.h>

static pid_t parent;

#define check(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return __LINE__ % 250 + 1;                                                             \
    } while (0)

static void nothing(void *arg)
{
    (void)arg;
}

static int use_everything(void *stream, void *event, void *memory)
{
    struct blyi_context *context;
    void *handle;
    bool value;
    int card;
    char text[128];
    snprintf(text, sizeof(text),
             "process was forked after aclInit in parent %d; exec or spawn instead", (int)parent);
    check(blyi_context_here(&context) == BLY_E_FORKED);
    check(strcmp(blyi_fail_text(), text) == 0);
    check(blyi_device_set(0, 0) == BLY_E_FORKED);
    check(blyi_device_reset(0, true) == BLY_E_FORKED);
    check(blyi_device_get(&card) == BLY_E_FORKED);
    check(blyi_device_sync(0) == BLY_E_FORKED);
    check(blyi_context_create(0, 0, &handle) == BLY_E_FORKED);
    check(blyi_stream_create(0, 0, 0, &handle) == BLY_E_FORKED);
    check(blyi_stream_sync(stream, 0) == BLY_E_FORKED);
    check(blyi_stream_destroy(stream, true) == BLY_E_FORKED);
    check(blyi_stream_query(NULL, &value) == BLY_E_FORKED);
    check(blyi_event_sync(event, 0) == BLY_E_FORKED);
    check(blyi_event_destroy(event) == BLY_E_FORKED);
    check(blyi_copy_now(text, memory, 8) == BLY_E_FORKED);
    check(blyi_set_async(memory, 0, 8, stream, 0) == BLY_E_FORKED);
    check(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0) == BLY_E_FORKED);
    check(blyi_callback_host_func(NULL, nothing, NULL, 0) == BLY_E_FORKED);
    blyi_runtime_finalise();
    return 0;
}

static void children_are_told_and_the_parent_goes_on(void **state)
{
    (void)state;
    void *stream = new_stream(), *event = new_event(MODERN);
    char *memory = card_alloc(16 * MiB), *pinned = pinned_alloc(16 * MiB);
    parent = getpid();
    memset(pinned, 3, 16 * MiB);
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_copy_async(memory, pinned, 16 * MiB, stream, 0));
    assert_ok(blyi_event_record(event, stream, 0));
    for (int i = 0; i < 3; i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(600);
            int line = use_everything(stream, event, memory);
            if (i == 1)
                exit(line);
            _exit(line);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_ok(blyi_stream_resume(stream));
    assert_ok(blyi_event_sync(event, 0));
    memset(pinned, 0, 16 * MiB);
    assert_ok(blyi_copy_async(pinned, memory, 16 * MiB, stream, 0));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(pinned[16 * MiB - 1], 3);
}

static void a_fork_before_first_use_is_free(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t pid = fork();
    assert_ok(blyi_device_set(0, 0));
    void *memory = card_alloc(MiB);
    bly_status status = blyi_set_now(memory, 1, MiB);
    if (pid == 0)
        _exit(status != BLY_OK);
    assert_ok(status);
    int code = 0;
    waitpid(pid, &code, 0);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
}

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {
        bare_test(a_fork_before_first_use_is_free), /* first: nothing is up yet */
        order_test(children_are_told_and_the_parent_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
