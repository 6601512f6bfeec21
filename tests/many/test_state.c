/* SPDX-License-Identifier: Apache-2.0
 *
 * test_state.c - the state folder: what is refused, with which sentence, and what is made anew.
 */
#include "many_test.h"
#include "npu/ledger_layout.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void hold_card(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(32 * MIB);
    peer_done(me);
    peer_wait(me);
}

static const char *file_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", state_folder, name);
    return path;
}

static void overwrite(const char *name, off_t at, const void *data, size_t size)
{
    int fd = open(file_of(name), O_WRONLY);
    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, data, size, at), size);
    close(fd);
}

/* The same sum as the ledger's, to forge a header that is whole. */
static uint64_t sum_of(const void *bytes, size_t size)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return sum;
}

static void forge_header(uint32_t version, uint64_t pid_space)
{
    struct blyi_ledger header;
    int fd = open(file_of("ledger"), O_RDWR);
    CHECK(fd >= 0);
    CHECK_EQ(pread(fd, &header, sizeof header, 0), sizeof header);
    if (version)
        header.version = version;
    if (pid_space)
        header.pid_space = pid_space;
    header.checksum = sum_of(&header, offsetof(struct blyi_ledger, checksum));
    CHECK_EQ(pwrite(fd, &header, offsetof(struct blyi_ledger, lock), 0),
             offsetof(struct blyi_ledger, lock));
    close(fd);
}

static void expect_refusal(const char *part)
{
    OK(aclInit(NULL));
    aclError error = aclrtSetDevice(0);
    CHECK(error != 0);
    CHECK_MESSAGE(part);
}

MANY_TEST(another_version_is_refused)
{
    struct peer a = peer_start(hold_card);
    peer_step(&a);
    forge_header(77, 0);
    char part[128];
    snprintf(part, sizeof part, "in use by process %d with another version of Belay (layout 77",
             a.pid);
    expect_refusal(part);
    peer_end(&a);
}

MANY_TEST(another_container_is_refused)
{
    struct peer a = peer_start(hold_card);
    peer_step(&a);
    forge_header(0, 4711);
    expect_refusal("in use from another container (pid namespace 4711");
    peer_end(&a);
}

MANY_TEST(damage_in_use_is_told)
{
    struct peer a = peer_start(hold_card);
    peer_step(&a);
    overwrite("ledger", 0, "garbage", 7);
    char part[128];
    snprintf(part, sizeof part, "the shared state is damaged while process %d uses it", a.pid);
    expect_refusal(part);
    peer_end(&a);
}

/* Whatever is in the files when nobody lives: they are made anew. */
MANY_TEST(damage_out_of_use_is_made_anew)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(hold_card);
    peer_step(&a);
    peer_kill(&a);
    static unsigned char garbage[65536];
    memset(garbage, 0xee, sizeof garbage);
    overwrite("ledger", 0, garbage, sizeof garbage);
    overwrite("card-0", 0, garbage, 4096);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
}

MANY_TEST(a_short_file_is_made_anew)
{
    CHECK_EQ(close(open(file_of("slots"), O_CREAT | O_WRONLY, 0600)), 0);
    int fd = open(file_of("ledger"), O_CREAT | O_WRONLY, 0600);
    CHECK_EQ(write(fd, "x", 1), 1);
    close(fd);
    bind_card(0);
}

MANY_TEST(a_folder_open_to_others_is_refused)
{
    CHECK_EQ(chmod(state_folder, 0755), 0);
    expect_refusal("is open to other users; chmod 700 it");
}

MANY_TEST(a_file_open_to_others_is_refused)
{
    CHECK_EQ(close(open(file_of("ledger"), O_CREAT | O_WRONLY, 0600)), 0);
    CHECK_EQ(chmod(file_of("ledger"), 0644), 0);
    expect_refusal("the state's file ledger is not a file of this user alone");
}

MANY_TEST(a_link_is_not_followed)
{
    CHECK_EQ(symlink("/etc/passwd", file_of("ledger")), 0);
    expect_refusal("the state's file ledger cannot be opened");
}

MANY_TEST(no_folder_can_be_made)
{
    setenv("BELAY_STATE", "/proc/nowhere/state", 1);
    expect_refusal("the state folder /proc/nowhere/state (BELAY_STATE) cannot be used");
}

MANY_TEST(folders_are_made_as_deep_as_named)
{
    char deep[128];
    snprintf(deep, sizeof deep, "%s/a/b/c", state_folder);
    setenv("BELAY_STATE", deep, 1);
    bind_card(0);
    struct stat st;
    CHECK_EQ(stat(deep, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0700);
}

MANY_TEST(a_card_of_another_size_is_refused)
{
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer a = peer_start(hold_card);
    peer_step(&a);
    setenv("BELAY_HBM", "2GiB", 1);
    char part[128];
    snprintf(part, sizeof part, "card 0 is in use by process %d (", a.pid);
    expect_refusal(part);
    peer_end(&a);
    OK(aclrtSetDevice(0)); /* nobody has it any more: it becomes ours */
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 2 * GIB - OVERHEAD);
}

/* Two folders are two machines. */
MANY_TEST(folders_are_machines)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(hold_card);
    peer_step(&a);
    char other[128];
    snprintf(other, sizeof other, "%s/other", state_folder);
    setenv("BELAY_STATE", other, 1);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
    peer_end(&a);
}

/* A program that closes every descriptor loses the lock of its slot, not its memory. */
static void close_everything(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(32 * MIB);
    for (int fd = 3; fd < 1024; fd++)
        if (fd != me->in && fd != me->out)
            (void)syscall(SYS_close, fd); /* TSan would call close() a race */
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(closed_descriptors_are_not_death)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer keeper = peer_start(hold_card), a = peer_start(close_everything);
    peer_step(&keeper);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - 3 * OVERHEAD - 64 * MIB);
    peer_end(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - 2 * OVERHEAD - 32 * MIB);
    peer_end(&keeper);
}

/* A slot of the dead is told from the living that have its number. */
MANY_TEST(a_pid_that_came_back_is_not_its_dead_owner)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer keeper = peer_start(hold_card), a = peer_start(hold_card);
    peer_step(&keeper);
    peer_step(&a);
    /* The dead slot names a process that lives, but that began at another time. */
    struct blyi_slot slot;
    off_t at = BLYI_LEDGER_AT_SLOTS + BLYI_SLOT_SIZE;
    int fd = open(file_of("ledger"), O_RDWR);
    CHECK_EQ(pread(fd, &slot, sizeof slot, at), sizeof slot);
    CHECK_EQ(slot.pid, a.pid);
    peer_kill(&a);
    slot.pid = 1;
    CHECK_EQ(pwrite(fd, &slot, sizeof slot, at), sizeof slot);
    close(fd);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - 2 * OVERHEAD - 32 * MIB);
    peer_end(&keeper);
}

/* Cut short under a process that uses it: its data stay, and it is told. */
MANY_TEST(files_cut_short_are_told)
{
    unsigned char byte = 0;
    char key[65];
    setenv("BELAY_HBM", "256MiB", 1);
    bind_card(0);
    char *block = device_alloc(8 * MIB);
    OK(aclrtMemset(block, 8 * MIB, 0x3c, 8 * MIB));
    CHECK_EQ(truncate(file_of("ledger"), 0), 0);
    CHECK_EQ(truncate(file_of("card-0"), 0), 0);
    void *more = NULL;
    CHECK_ACL(aclrtMallocAlign32(&more, 8 * MIB, HUGE_FIRST), 207001);
    CHECK_MESSAGE("cut short while in use");
    CHECK_ACL(aclrtIpcMemGetExportKey(block, 8 * MIB, key, sizeof key, 1), 507000);
    CHECK_MESSAGE("cut short while in use");
    OK(aclrtMemcpy(&byte, 1, block + 3 * MIB, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(byte, 0x3c);
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
}

/* Slots cut off under a process that lives: whoever comes is told of the damage, not of process 0.
 */
MANY_TEST(a_holder_that_is_not_told_is_damage)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer keeper = peer_start(hold_card);
    peer_step(&keeper);
    CHECK_EQ(truncate(file_of("ledger"), BLYI_LEDGER_AT_SLOTS), 0);
    OK(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0), 507000);
    CHECK_MESSAGE("the shared state is damaged");
    peer_kill(&keeper);
}

/* Words of nonsense in the lock and in the frames' file: told or not, nothing hangs or crashes, and
 * what this process has stays as it was. */
MANY_TEST(garbage_does_not_mislead)
{
    static unsigned char garbage[4096];
    setenv("BELAY_HBM", "256MiB", 1);
    bind_card(0);
    char *block = device_alloc(8 * MIB);
    OK(aclrtMemset(block, 8 * MIB, 0x3c, 8 * MIB));
    for (unsigned seed = 1; seed < 200; seed++) {
        srand(seed);
        for (size_t i = 0; i < sizeof garbage; i++)
            garbage[i] = (unsigned char)rand();
        /* Behind the header: the words of frames, the log, slots, the lock. */
        off_t at = seed % 3 == 0 ? (off_t)offsetof(struct blyi_ledger, lock)
                                 : (off_t)(BLYI_LEDGER_AT_SLOTS + BLYI_SLOT_SIZE * (seed % 7));
        size_t size = 8 + (size_t)rand() % 4000;
        if (seed % 3 == 0)
            size = 4 + size % 32;
        if (seed % 3 == 1)
            overwrite("card-0", 8 + rand() % 9000, garbage, size);
        else
            overwrite("ledger", at, garbage, size);
        void *more = NULL;
        size_t free_now, total;
        unsigned char byte = 0;
        (void)aclrtMallocAlign32(&more, 4 * MIB, HUGE_FIRST);
        (void)aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total);
        (void)aclrtFree(more);
        OK(aclrtMemcpy(&byte, 1, block + 3 * MIB, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(byte, 0x3c);
    }
}

/* Words that call every frame free, and an epoch that has all of them read again: what this process
 * has is not handed out a second time. */
MANY_TEST(words_that_lie_do_not_free_what_is_ours)
{
    static uint32_t zeros[128];
    unsigned char byte = 0;
    setenv("BELAY_HBM", "256MiB", 1);
    bind_card(0);
    char *block = device_alloc(8 * MIB);
    size_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMemset(block, 8 * MIB, 0x3c, 8 * MIB));
    overwrite("card-0", offsetof(struct blyi_card_file, words), zeros, sizeof zeros);
    overwrite("card-0", offsetof(struct blyi_card_file, epoch), &(uint32_t){77}, 4);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    char *rest = device_alloc(before);
    OK(aclrtMemset(rest, before, 0x11, before));
    for (size_t at = 0; at < 8 * MIB; at += 4096) {
        OK(aclrtMemcpy(&byte, 1, block + at, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(byte, 0x3c);
    }
}

MANY_TEST(a_full_disk_is_told)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0); /* and no SIGXFSZ ends the program */
    OK(aclInit(NULL));
    CHECK(aclrtSetDevice(0) != 0);
    CHECK_MESSAGE("the state's file ledger cannot be made");
}

MANY_TEST(a_disk_that_is_full_at_the_export)
{
    char key[65];
    struct rlimit before, limit;
    setenv("BELAY_HBM", "256MiB", 1);
    bind_card(0);
    void *block = device_alloc(2 * MIB);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 4096;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_ACL(aclrtIpcMemGetExportKey(block, 2 * MIB, key, sizeof key, 1), 207005);
    CHECK_MESSAGE("no room on the disk of the state folder");
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    OK(aclrtIpcMemGetExportKey(block, 2 * MIB, key, sizeof key, 1));
    OK(aclrtFree(block));
}

/* Where there are no others, no key of theirs can be found, and that is said. */
MANY_TEST(a_key_in_a_private_state)
{
    char key[65];
    void *block = NULL;
    memset(key, 'a', 64);
    key[64] = '\0';
    setenv("BELAY_STATE", "private", 1);
    bind_card(0);
    CHECK_ACL(aclrtIpcMemImportByKey(&block, key, 0), 107000);
    CHECK_MESSAGE("made such a key; with BELAY_STATE=private this process is a machine of its own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(another_container_is_refused),
        cmocka_unit_test(damage_in_use_is_told),
        cmocka_unit_test(damage_out_of_use_is_made_anew),
        cmocka_unit_test(a_short_file_is_made_anew),
        cmocka_unit_test(a_folder_open_to_others_is_refused),
        cmocka_unit_test(a_file_open_to_others_is_refused),
        cmocka_unit_test(a_link_is_not_followed),
        cmocka_unit_test(no_folder_can_be_made),
        cmocka_unit_test(folders_are_made_as_deep_as_named),
        cmocka_unit_test(a_card_of_another_size_is_refused),
        cmocka_unit_test(folders_are_machines),
        cmocka_unit_test(closed_descriptors_are_not_death),
        cmocka_unit_test(a_pid_that_came_back_is_not_its_dead_owner),
        cmocka_unit_test(files_cut_short_are_told),
        cmocka_unit_test(a_holder_that_is_not_told_is_damage),
        cmocka_unit_test(garbage_does_not_mislead),
        cmocka_unit_test(words_that_lie_do_not_free_what_is_ours),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_disk_that_is_full_at_the_export),
        cmocka_unit_test(a_key_in_a_private_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
