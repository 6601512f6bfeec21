/* SPDX-License-Identifier: Apache-2.0
 *
 * scenarios_memory.c - faults of memory that users have met, at their smallest (docs/scenarios.md).
 */
#include "process_case.h"

#include <sys/mman.h>

/* ── Mapped memory ────────────────────────────────────────────────────────────────────────── */

struct mapped {
    aclrtDrvMemHandle handle;
    void *at;
};

static aclError make_physical(aclrtDrvMemHandle *handle, size_t size)
{
    const aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                       .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                       .memAttr = ACL_HBM_MEM_HUGE,
                                       .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    return aclrtMallocPhysical(handle, size, &prop, 0);
}

static aclError map_there(struct mapped *m, size_t size)
{
    aclrtMemAccessDesc access = {.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclError code = make_physical(&m->handle, size);
    if (code != ACL_SUCCESS)
        return code;
    OK(aclrtMapMem(m->at, size, 0, m->handle, 0));
    OK(aclrtMemSetAccess(m->at, size, &access, 1));
    return ACL_SUCCESS;
}

static struct mapped map_new(size_t size)
{
    struct mapped m;
    OK(aclrtReserveMemAddress(&m.at, size, 0, NULL, 0));
    OK(map_there(&m, size));
    return m;
}

static void unmap(const struct mapped *m)
{
    OK(aclrtUnmapMem(m->at));
    OK(aclrtFreePhysical(m->handle));
}

static void unmap_queued(bool waits)
{
    struct gate gate;
    begin_on(0);
    aclrtStream s = new_stream();
    struct mapped m = map_new(64 * MIB);
    hold(&gate, s);
    OK(aclrtMemsetAsync(m.at, 64 * MIB, 0xA5, 64 * MIB, s));
    if (waits) {
        let_go(&gate);
        OK(aclrtSynchronizeStream(s));
    }
    unmap(&m);
    let_go(&gate);
    SURE((aclrtSynchronizeStream(s) == ACL_SUCCESS) == waits);
    OK(aclrtReleaseMemAddress(m.at));
    OK(aclrtDestroyStream(s));
    end_on(0);
}

static void o02_unmap_while_queued(void)
{
    unmap_queued(false);
}

static void o02_unmap_behind_sync(void)
{
    unmap_queued(true);
}

static void takes_most(struct partner *me)
{
    told(me);
    begin_on(0);
    char *block = card_block(768 * MIB);
    done(me);
    told(me);
    OK(aclrtFree(block));
    end_on(0);
}

static void o03_restore_fails_half_way(void)
{
    struct mapped m[8];
    int n = 0;
    struct partner b = partner_start(takes_most);
    begin_on(0);
    for (int i = 0; i < 8; i++)
        m[i] = map_new(64 * MIB);
    for (int i = 0; i < 8; i++)
        unmap(&m[i]);
    partner_step(&b);
    size_t before = free_of_card();
    SURE(before == 256 * MIB - 2 * OVERHEAD);
    while (n < 8 && map_there(&m[n], 64 * MIB) == ACL_SUCCESS)
        n++;
    SURE(n == 3);
    REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, make_physical(&m[n].handle, 64 * MIB));
    for (int i = 0; i < n; i++)
        unmap(&m[i]);
    SURE(free_of_card() == before);
    for (int i = 0; i < 8; i++)
        OK(aclrtReleaseMemAddress(m[i].at));
    partner_end(&b);
    end_on(0);
}

static void forget_handles(int forgets)
{
    begin_on(0);
    size_t before = free_of_card();
    for (int i = 0; i < 64; i++) {
        struct mapped m = map_new(8 * MIB);
        if (forgets == 2) /* the memory goes with its last address */
            OK(aclrtFreePhysical(m.handle));
        OK(aclrtUnmapMem(m.at));
        if (forgets == 0)
            OK(aclrtFreePhysical(m.handle));
        OK(aclrtReleaseMemAddress(m.at));
    }
    SURE(free_of_card() == before - (forgets == 1 ? 512 * MIB : 0));
    if (forgets == 1) {
        void *block;
        REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION,
                aclrtMallocAlign32(&block, 640 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
        SURE(strstr(aclGetRecentErrMsg(), "no address") != NULL);
    }
    end_on(0);
}

static void o21_handles_never_released(void)
{
    forget_handles(1);
}

static void o21_handles_released(void)
{
    forget_handles(0);
}

static void o21_released_while_mapped(void)
{
    forget_handles(2);
}

/* ── The host's memory ────────────────────────────────────────────────────────────────────── */

static char *map_host(size_t size)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SURE(at != MAP_FAILED);
    return at;
}

static void o04_range_not_aligned(void)
{
    void *d;
    begin_on(0);
    char *m = map_host(4 * MIB);
    REFUSED(107000, aclrtHostRegister(m + 16, MIB, ACL_HOST_REGISTER_MAPPED, &d));
    SURE(strstr(aclGetRecentErrMsg(), "it is 16 bytes beyond one") != NULL);
    OK(aclrtHostRegister(m, MIB, ACL_HOST_REGISTER_MAPPED, &d));
    REFUSED(507910, aclrtHostRegister(m, MIB, ACL_HOST_REGISTER_MAPPED, &d));
    REFUSED(507910, aclrtHostRegister(m + 512 * KIB, MIB, ACL_HOST_REGISTER_MAPPED, &d));
    REFUSED(507911, aclrtHostUnregister(m + 4096));
    OK(aclrtHostUnregister(m));
    REFUSED(507911, aclrtHostUnregister(m));
    end_on(0);
}

static void o04_larger_alignment(void)
{
    void *d;
    begin_on(0);
    char *m = map_host(4 * MIB);
    m = (char *)(((uintptr_t)m + 65535) & ~(uintptr_t)65535);
    REFUSED(107000, aclrtHostRegister(m + 4096, MIB, ACL_HOST_REGISTER_MAPPED, &d));
    SURE(strstr(aclGetRecentErrMsg(), "it is 4096 bytes beyond one") != NULL);
    end_on(0);
}

static void is_kind(const void *at, aclrtMemLocationType want)
{
    aclrtPtrAttributes attributes;
    OK(aclrtPointerGetAttributes(at, &attributes));
    SURE(attributes.location.type == want);
}

static void o05_what_an_address_is(void)
{
    void *c, *d, *i;
    int e = 0;
    aclrtPtrAttributes attributes;
    begin_on(1);
    char *a = card_block(4 * MIB), *m = map_host(MIB), *f = map_host(MIB);
    OK(aclrtMallocHost(&c, MIB));
    OK(aclrtHostRegister(f, MIB, ACL_HOST_REGISTER_MAPPED, &d));
    char *g = card_block(4 * MIB);
    OK(aclrtFree(g));
    OK(aclrtReserveMemAddress(&i, 4 * MIB, 0, NULL, 0));
    is_kind(a, ACL_MEM_LOCATION_TYPE_DEVICE);
    is_kind(a + 5, ACL_MEM_LOCATION_TYPE_DEVICE);
    is_kind(c, ACL_MEM_LOCATION_TYPE_HOST);
    is_kind(f, ACL_MEM_LOCATION_TYPE_HOST);
    is_kind(m, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    is_kind(&e, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    is_kind(g, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    is_kind(a + 4 * MIB, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    is_kind(i, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    REFUSED(100000, aclrtPointerGetAttributes(NULL, &attributes));
    OK(aclrtHostUnregister(f));
    is_kind(f, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    OK(aclrtReleaseMemAddress(i));
    OK(aclrtFreeHost(c));
    OK(aclrtFree(a));
    end_on(1);
}

/* step: 3 writes, 5 frees, 6 writes behind an event. */
static void overwrite(int step)
{
    struct gate gate;
    void *pinned;
    aclrtEvent event;
    begin_on(0);
    aclrtStream s = new_stream();
    char *d = card_block(4 * MIB), *back = malloc(4 * MIB);
    OK(aclrtCreateEvent(&event));
    OK(aclrtMallocHost(&pinned, 4 * MIB));
    char *h = pinned;
    memset(h, 1, 4 * MIB);
    hold(&gate, s);
    put(d, h, 4 * MIB, s);
    record(event, s);
    if (step == 6) {
        let_go(&gate);
        OK(aclrtSynchronizeEvent(event));
    }
    if (step == 5)
        OK(aclrtFreeHost(h));
    else
        memset(h, 2, 1024);
    let_go(&gate);
    OK(aclrtSynchronizeStream(s));
    OK(aclrtMemcpy(back, 4 * MIB, d, 4 * MIB, D2H));
    SURE(back[0] == (step == 3 ? 2 : 1) && back[1023] == back[0] && back[1024] == 1);
    free(back);
    if (step != 5)
        OK(aclrtFreeHost(h));
    OK(aclrtFree(d));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(s));
    end_on(0);
}

static void o17_overwritten(void)
{
    overwrite(3);
}

static void o17_freed(void)
{
    overwrite(5);
}

static void o17_behind_event(void)
{
    overwrite(6);
}

static void o20_pinned_is_not_rounded(void)
{
    void *p[17];
    begin_on(0);
    for (int i = 0; i < 17; i++)
        OK(aclrtMallocHost(&p[i], 17 * MIB));
    for (int i = 0; i < 17; i++)
        OK(aclrtFreeHost(p[i]));
    for (int i = 0; i < 1000; i++) {
        OK(aclrtMallocHost(&p[0], MIB));
        OK(aclrtFreeHost(p[0]));
    }
    end_on(0);
}

/* ── Figures of the card ──────────────────────────────────────────────────────────────────── */

static void *many[1000];

static size_t take_many(bool align)
{
    size_t before = free_of_card();
    for (int i = 0; i < 1000; i++)
        if (align)
            OK(aclrtMallocAlign32(&many[i], 512, ACL_MEM_MALLOC_HUGE_FIRST));
        else
            OK(aclrtMalloc(&many[i], 512, ACL_MEM_MALLOC_HUGE_FIRST));
    size_t taken = before - free_of_card();
    for (int i = 0; i < 1000; i++)
        OK(aclrtFree(many[i]));
    SURE(free_of_card() == before);
    return taken;
}

static void o14_rounding(void)
{
    void *plain;
    begin_on(0);
    SURE(take_many(false) == 4096000);
    SURE(take_many(true) == 4096000);
    size_t before = free_of_card();
    OK(aclrtMalloc(&plain, 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    SURE(before - free_of_card() == 4 * MIB);
    char *exact = card_block(2 * MIB);
    SURE(before - free_of_card() == 6 * MIB);
    OK(aclrtFree(plain));
    OK(aclrtFree(exact));
    end_on(0);
}

static void o25_the_cap_not_the_card(void)
{
    void *block;
    begin_on(0);
    char *held = card_block(256 * MIB);
    REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION,
            aclrtMallocAlign32(&block, 200 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    SURE(strstr(aclGetRecentErrMsg(), "cap") != NULL);
    OK(aclrtFree(card_block(100 * MIB)));
    OK(aclrtFree(held));
    end_on(0);
}

static void o26_ring_of_history(void)
{
    void *block;
    begin_on(0);
    char *held = card_block(10 * MIB);
    for (int i = 0; i < 2500; i++) {
        OK(aclrtMalloc(&block, 4 * KIB, ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclrtFree(block));
    }
    OK(aclrtFree(held));
    end_on(0);
}

const struct check_case scenarios_memory[] = {
    {"O-02-unmap-while-queued", o02_unmap_while_queued, "unmap-in-use",
     "(64 MiB) while 1 task on stream|earliest safe point: behind task 2 of stream", NULL},
    {"O-02-unmap-behind-sync", o02_unmap_behind_sync, "", NULL, NULL},
    {"O-03-restore-fails-half-way", o03_restore_fails_half_way, "", NULL, NULL},
    {"O-04-range-not-aligned", o04_range_not_aligned, "", NULL, NULL},
    {"O-04-larger-alignment", o04_larger_alignment, "", NULL, "BELAY_PIN_ALIGN=64KiB"},
    {"O-05-what-an-address-is", o05_what_an_address_is, "", NULL, NULL},
    {"O-14-rounding", o14_rounding, "", NULL, NULL},
    {"O-17-overwritten", o17_overwritten, "pinned-changed",
     "changed between submit and run: 1024 bytes in [0, 1024)", NULL},
    {"O-17-freed", o17_freed, "free-in-use", "(4 MiB) while 1 task on stream", NULL},
    {"O-17-behind-event", o17_behind_event, "", NULL, NULL},
    {"O-20-pinned-is-not-rounded", o20_pinned_is_not_rounded, "", NULL, NULL},
    {"O-21-handles-never-released", o21_handles_never_released, "leaked-handle",
     "536870912 B (512 MiB) in 64 physical handles|reachable by no address: 64", NULL},
    {"O-21-handles-released", o21_handles_released, "", NULL, NULL},
    {"O-21-released-while-mapped", o21_released_while_mapped, "", NULL, NULL},
    {"O-25-the-cap-not-the-card", o25_the_cap_not_the_card, "", NULL, "BELAY_CAP=400MiB"},
    {"O-26-ring-of-history", o26_ring_of_history, "", NULL, "BELAY_TRACE_RING=1000"},
    {NULL, NULL, NULL, NULL, NULL},
};
