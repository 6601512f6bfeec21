/* SPDX-License-Identifier: Apache-2.0
 * Host memory behind frames: commit, spare frames, and a host that is short. */
#include "mem_test.h"
#include "npu/commit.h"
#include "npu/host_room.h"
#include "base/stat.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FRAMES 100u

static struct blyi_backing *backing;
static char *at; /* all frames in a row */

static void start(const char *pages, const char *resident, const char *host_limit)
{
    set_option(BLYI_OPT_PAGES, pages);
    set_option(BLYI_OPT_RESIDENT, resident);
    set_option(BLYI_OPT_HOST_LIMIT, host_limit);
    assert_ok(blyi_backing_create(0, FRAMES, -1, NULL, &backing));
    char *all = mmap(NULL, (FRAMES + 1) * FRAME, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    at = (char *)blyi_align_up((uintptr_t)all, FRAME);
    assert_ptr_equal(mmap(at, FRAMES * FRAME, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          blyi_backing_fd(backing), 0),
                     at);
}

static void stop(void)
{
    assert_true(blyi_backing_audit(backing));
    munmap(at, FRAMES * FRAME);
    blyi_backing_destroy(backing);
    assert_int_equal(blyi_host_room_held(), 0);
    set_option(BLYI_OPT_HOST_LIMIT, "0");
}

/* What the kernel holds for the file. */
static uint64_t file_bytes(void)
{
    struct stat st;
    assert_int_equal(fstat(blyi_backing_fd(backing), &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

static struct blyi_backing_figures figures(void)
{
    struct blyi_backing_figures out;
    blyi_backing_figures(backing, &out);
    assert_int_equal(out.committed, blyi_host_room_held());
    return out;
}

static bly_status commit(uint32_t first, uint32_t count)
{
    return blyi_backing_commit(backing, first, count, at + first * FRAME);
}

static void commit_is_exact(void **state)
{
    (void)state;
    start("auto", "1GiB", "0");
    assert_int_equal(file_bytes(), 0); /* sparse */
    assert_ok(commit(3, 5));
    assert_ok(commit(5, 10)); /* some of them again */
    assert_int_equal(figures().committed, 12 * FRAME);
    assert_int_equal(file_bytes(), 12 * FRAME);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(blyi_backing_is_committed(backing, i), i >= 3 && i < 15);
    for (size_t i = 3 * FRAME; i < 15 * FRAME; i += 4096)
        assert_int_equal(at[i], 0);
    if (blyi_commit_collapses() == 1)
        assert_int_equal(figures().huge, 12 * FRAME);
    bool committed;
    assert_int_equal(blyi_backing_span(backing, 0, 50, &committed), 3);
    assert_false(committed);
    assert_int_equal(blyi_backing_span(backing, 4, 50, &committed), 11);
    assert_true(committed);
    stop();
}

static void small_pages(void **state)
{
    (void)state;
    start("small", "1GiB", "0");
    uint64_t collapses = blyi_sys_count(BLYI_SYS_fallocate);
    assert_ok(commit(0, 3));
    assert_int_equal(file_bytes(), 3 * FRAME);
    assert_int_equal(figures().huge, 0);
    assert_int_equal(blyi_sys_count(BLYI_SYS_fallocate), collapses);
    stop();
}

/* The host or a kernel may have written before; the first byte used to be lost. */
static void bytes_that_are_there_stay(void **state)
{
    (void)state;
    static const char *const kinds[] = {"auto", "huge", "small"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        start(kinds[i], "1GiB", "0");
        memset(at + FRAME, 0x5b, FRAME);
        at[2 * FRAME] = 0x5c;
        assert_ok(commit(0, 4));
        for (size_t b = FRAME; b < 2 * FRAME; b++)
            assert_int_equal(at[b], 0x5b);
        assert_int_equal(at[2 * FRAME], 0x5c);
        assert_int_equal(at[2 * FRAME + 1], 0);
        assert_int_equal(at[0], 0);
        stop();
    }
}

static void spare_frames_stay_up_to_the_limit(void **state)
{
    (void)state;
    start("auto", "8MiB", "0");
    assert_null(blyi_backing_prefer(backing));
    assert_ok(commit(0, 4));
    assert_ok(commit(70, 4));
    blyi_backing_retire(backing, 70, 4);
    blyi_backing_settle(backing);
    assert_int_equal(figures().spare, 4 * FRAME);
    assert_int_equal(blyi_backing_prefer(backing)[1], 0xf << 6);
    blyi_backing_retire(backing, 0, 10); /* those never committed do not count */
    blyi_backing_settle(backing);
    assert_int_equal(figures().spare, 4 * FRAME);
    assert_int_equal(figures().committed, 4 * FRAME);
    assert_int_equal(file_bytes(), 4 * FRAME);
    assert_true(blyi_backing_is_committed(backing, 0)); /* the older ones went */
    assert_false(blyi_backing_is_committed(backing, 70));
    blyi_backing_reuse(backing, 0, 2);
    assert_int_equal(figures().spare, 2 * FRAME);
    assert_int_equal(blyi_backing_trim(backing, GiB), 2 * FRAME);
    assert_int_equal(figures().committed, 2 * FRAME);
    assert_null(blyi_backing_prefer(backing));
    stop();
}

static void a_short_host_is_told(void **state)
{
    (void)state;
    start("auto", "1GiB", "16MiB");
    assert_int_equal(blyi_backing_host_room(), 16 * MiB);
    assert_ok(commit(0, 6));
    assert_int_equal(blyi_backing_host_room(), 4 * MiB);
    uint64_t short_before = blyi_stat_read(BLYI_STAT_host_short);
    assert_fails(commit(10, 3), BLY_E_HOST_MEMORY, "card 0", "the host, not the card",
                 "6291456 B (6 MiB)", "BELAY_HOST_LIMIT 16777216 B (16 MiB)",
                 "held by Belay 12582912 B (12 MiB)", "can give 4194304 B");
    assert_int_equal(blyi_stat_read(BLYI_STAT_host_short), short_before + 1);
    assert_int_equal(figures().committed, 6 * FRAME);
    assert_int_equal(file_bytes(), 6 * FRAME);
    blyi_backing_retire(backing, 0, 2); /* spare frames are punched for it */
    assert_ok(commit(10, 3));
    assert_int_equal(figures().committed, 7 * FRAME);
    assert_int_equal(figures().spare, 0);
    stop();
}

/* Each system call of a commit fails once: clean, or the other kind of pages. */
static void failing_calls(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        start("auto", "1GiB", "0");
        assert_ok(commit(50, 1)); /* the room has been read */
        blyi_sys_fail_nth(nth, ENOMEM);
        bly_status status = commit(0, 3);
        bool failed = blyi_sys_failed();
        blyi_sys_fail_nth(0, 0);
        assert_true(blyi_backing_audit(backing));
        if (status != BLY_OK) {
            assert_int_equal(status, BLY_E_HOST_MEMORY);
            assert_non_null(strstr(blyi_fail_text(), "refused"));
            assert_int_equal(file_bytes(), figures().committed);
            assert_ok(commit(0, 3));
        }
        assert_int_equal(figures().committed, 4 * FRAME);
        assert_int_equal(file_bytes(), 4 * FRAME);
        stop();
        if (!failed)
            break;
    }
}

static void room_is_sane(void **state)
{
    (void)state;
    struct blyi_host_room room;
    blyi_host_room_read(&room);
    assert_true(room.ram > 0 && room.available <= room.ram && room.room < room.available);
    assert_true(room.margin > 0);
    assert_false(blyi_host_room_take(room.ram * 2));
    assert_false(blyi_host_room_take(UINT64_MAX));
    assert_int_equal(blyi_host_room_held(), 0);
    uint64_t reads = blyi_sys_count(BLYI_SYS_read);
    for (int i = 0; i < 1000; i++) {
        assert_true(blyi_host_room_take(4096));
        blyi_host_room_give(4096);
    }
    assert_true(blyi_sys_count(BLYI_SYS_read) - reads < 1000); /* not once a call */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(commit_is_exact),
                                       cmocka_unit_test(small_pages),
                                       cmocka_unit_test(bytes_that_are_there_stay),
                                       cmocka_unit_test(spare_frames_stay_up_to_the_limit),
                                       cmocka_unit_test(a_short_host_is_told),
                                       cmocka_unit_test(failing_calls),
                                       cmocka_unit_test(room_is_sane)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
