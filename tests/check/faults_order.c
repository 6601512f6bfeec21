/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_order.c - accesses in no order.
 */
#include "check_case.h"

static void two_writes(void)
{
    set(w.x, SIZE, w.a);
    set(w.x, SIZE, w.b);
}

static void write_read(void)
{
    set(w.x, SIZE, w.a);
    get(w.pinned, w.x, SIZE, w.b);
}

static void read_write_held(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    get(w.pinned, w.x, SIZE, w.a);
    set(w.x, SIZE, w.b);
    let_go(&gate);
}

static void part_of_block(void)
{
    set(w.x, 4096, w.a);
    set(w.x + 4095, 10, w.b);
}

static void kernel_copy(void)
{
    touch(w.x, SIZE, BLY_WRITE, w.a);
    get(w.pinned, w.x, SIZE, w.b);
}

static void kernel_kernel(void)
{
    touch(w.x, 64, BLY_READ, w.a);
    touch(w.x, SIZE, BLY_WRITE, w.b);
}

static void kernel_set(void)
{
    touch(w.y, SIZE, BLY_READ | BLY_WRITE, w.a);
    set(w.y + 512, 512, w.b);
}

static void reduce_copy(void)
{
    OK(aclrtReduceAsync(w.x, w.y, 4096, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, w.a, NULL));
    put(w.x, w.pinned, 4096, w.b);
}

static void card_to_card(void)
{
    OK(aclrtMemcpyAsync(w.y, SIZE, w.x, SIZE, D2D, w.a));
    set(w.x, SIZE, w.b);
}

static void rows(void)
{
    OK(aclrtMemcpy2dAsync(w.x, 1024, w.pinned, 512, 512, 8, H2D, w.a));
    set(w.x + 1024, 10, w.b);
}

static void record_too_early(void)
{
    record(w.event, w.a);
    set(w.x, SIZE, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
}

static void record_too_early_legacy(void)
{
    aclrtEvent event = legacy_event();
    record(event, w.a);
    set(w.x, SIZE, w.a);
    wait_for(event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyEvent(event));
}

static void wait_too_late(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    get(w.pinned, w.x, SIZE, w.b);
    wait_for(w.event, w.b);
}

static void wait_without_record(void)
{
    set(w.x, SIZE, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    record(w.event, w.a);
}

static void wrong_stream_waits(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.c);
    get(w.pinned, w.x, SIZE, w.b);
}

static void overwritten_record(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    record(w.event, w.c);
    wait_for(w.event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
}

static void host_reads_queued(void)
{
    char host[64], *block = busy(w.a);
    set(w.x, SIZE, w.a);
    OK(aclrtMemcpy(host, sizeof(host), w.x, sizeof(host), D2H));
    wait_done(w.a);
    OK(aclrtFree(block));
}

static void host_reads_done(void)
{
    char host[64];
    set(w.x, SIZE, w.a);
    seen_done(w.a);
    OK(aclrtMemcpy(host, sizeof(host), w.x, sizeof(host), D2H));
}

static void host_writes_queued(void)
{
    char *block = busy(w.a);
    get(w.pinned, w.x, SIZE, w.a);
    OK(aclrtMemset(w.x, SIZE, 9, SIZE));
    wait_done(w.a);
    OK(aclrtFree(block));
}

static void pinned_two_streams(void)
{
    get(w.pinned, w.x, SIZE, w.a);
    put(w.y, w.pinned, SIZE, w.b);
}

static void pinned_two_writes(void)
{
    get(w.pinned, w.x, SIZE, w.a);
    get(w.pinned, w.y, SIZE, w.b);
}

static void registered_two_streams(void)
{
    void *device, *host = aligned_alloc(4096, 64 * KIB);
    memset(host, 1, 64 * KIB);
    OK(aclrtHostRegister(host, 64 * KIB, ACL_HOST_REGISTER_MAPPED, &device));
    get(host, w.x, 64 * KIB, w.a);
    get(host, w.y, 64 * KIB, w.b);
    OK(aclrtSynchronizeDevice());
    OK(aclrtHostUnregister(host));
    free(host);
}

static void after_query_of_other(void)
{
    aclrtEvent other;
    OK(aclrtCreateEventExWithFlag(&other, ACL_EVENT_SYNC));
    set(w.x, SIZE, w.a);
    record(other, w.c);
    OK(aclrtSynchronizeEvent(other));
    set(w.x, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyEvent(other));
}

static void notify_too_early(void)
{
    aclrtNotify notify;
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtRecordNotify(notify, w.a));
    set(w.x, SIZE, w.a);
    OK(aclrtWaitAndResetNotify(notify, w.b, 0));
    get(w.pinned, w.x, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyNotify(notify));
}

static void many_times(void)
{
    for (int i = 0; i < 10; i++) {
        set(w.x, SIZE, w.a);
        set(w.x, SIZE, w.b);
        OK(aclrtSynchronizeDevice());
    }
}

static void changed(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    put(w.x, w.pinned, SIZE, w.a);
    memset(w.pinned, 2, 1024);
    let_go(&gate);
}

static void changed_in_the_middle(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    put(w.x, w.pinned + 4096, 4096, w.a);
    w.pinned[4096 + 100] = 7;
    w.pinned[4096 + 200] = 7;
    let_go(&gate);
}

const struct check_case faults_order[] = {
    {"two-writes", two_writes, "race", "write", NULL},
    {"write-read", write_read, "race", "not ordered after", NULL},
    {"read-write-held", read_write_held, "race", "not ordered after", NULL},
    {"part-of-block", part_of_block, "race", "1 B", NULL},
    {"kernel-copy", kernel_copy, "race", NULL, NULL},
    {"kernel-kernel", kernel_kernel, "race", "64 B", NULL},
    {"kernel-set", kernel_set, "race", "512 B", NULL},
    {"reduce-copy", reduce_copy, "race", "4096 B", NULL},
    {"card-to-card", card_to_card, "race", NULL, NULL},
    {"rows", rows, "race", "10 B", NULL},
    {"record-too-early", record_too_early, "race", NULL, NULL},
    {"record-too-early-legacy", record_too_early_legacy, "race", NULL, NULL},
    {"wait-too-late", wait_too_late, "race", NULL, NULL},
    {"wait-without-record", wait_without_record, "race", NULL, NULL},
    {"wrong-stream-waits", wrong_stream_waits, "race", NULL, NULL},
    {"overwritten-record", overwritten_record, "race", NULL, NULL},
    {"host-reads-queued", host_reads_queued, "race", "host", NULL},
    {"host-reads-done", host_reads_done, "race", "by the host", NULL},
    {"host-writes-queued", host_writes_queued, "race", "host", NULL},
    {"pinned-two-streams", pinned_two_streams, "race", NULL, NULL},
    {"pinned-two-writes", pinned_two_writes, "race", NULL, NULL},
    {"registered-two-streams", registered_two_streams, "race", NULL, NULL},
    {"after-query-of-other", after_query_of_other, "race", NULL, NULL},
    {"notify-too-early", notify_too_early, "race", NULL, NULL},
    {"many-times", many_times, "race", NULL, NULL},
    {"changed", changed, "pinned-changed", "1024 bytes in [0, 1024)", NULL},
    {"changed-in-the-middle", changed_in_the_middle, "pinned-changed", "2 bytes in [100, 201)",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
