/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c - a process joins the others: the files are checked, or made anew when nobody is alive,
 * and a slot is taken.
 */
#include "npu/ledger.h"
#include "npu/ledger_inside.h"
#include "npu/state.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/option.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct blyi_ledger_inside blyi_ledger = {.local = BLYI_LOCK_INIT(BLYI_RANK_LEDGER),
                                         .folder = BLYI_OWN_FD_NONE,
                                         .file = BLYI_OWN_FD_NONE,
                                         .locks = BLYI_OWN_FD_NONE};
static struct blyi_lock attach_lock = BLYI_LOCK_INIT(BLYI_RANK_ATTACH);

struct blyi_ledger *blyi_ledger_header(void)
{
    return (struct blyi_ledger *)(void *)blyi_ledger.map;
}

uint32_t blyi_ledger_slot(void)
{
    return blyi_ledger.slot;
}

struct blyi_slot *blyi_ledger_slot_at(uint32_t slot)
{
    bly_assert(slot < BLYI_SLOTS);
    return (struct blyi_slot *)(void *)(blyi_ledger.map + BLYI_LEDGER_AT_SLOTS +
                                        (size_t)slot * BLYI_SLOT_SIZE);
}

struct blyi_slot *blyi_ledger_mine(void)
{
    return blyi_ledger_slot_at(blyi_ledger.slot);
}

bool blyi_ledger_in_use(uint32_t slot)
{
    uint64_t used = __atomic_load_n(&blyi_ledger_header()->used[slot / 64], __ATOMIC_ACQUIRE);
    return (used >> (slot % 64)) & 1;
}

uint32_t blyi_ledger_others(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < BLYI_SLOTS / 64; i++)
        n += (uint32_t)__builtin_popcountll(
            __atomic_load_n(&blyi_ledger_header()->used[i], __ATOMIC_RELAXED));
    return n > 0 ? n - 1 : 0;
}

bool blyi_ledger_attached(void)
{
    return __atomic_load_n(&blyi_ledger.map, __ATOMIC_ACQUIRE) != NULL;
}

static uint64_t pid_space(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* FNV-1a over what may never differ. */
static uint64_t checksum(const struct blyi_ledger *header)
{
    uint64_t sum = 0xcbf29ce484222325u;
    const unsigned char *bytes = (const unsigned char *)header;
    for (size_t i = 0; i < offsetof(struct blyi_ledger, checksum); i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

bool blyi_ledger_is_whole(const struct blyi_ledger *header)
{
    return header->magic == BLYI_LEDGER_MAGIC && header->checksum == checksum(header);
}

static void draw(void *bytes, size_t size)
{
    ssize_t got = getrandom(bytes, size, 0);
    bly_check_msg(got == (ssize_t)size, "getrandom gave %zd of %zu bytes", got, size);
}

/* The process of a slot that lives, or 0. The header may be garbage, so locks come first; processes
 * of another pid space can be told by nothing else. */
static bool somebody(const struct blyi_ledger *header, int file, long *pid)
{
    int locks = blyi_ledger.locks.fd;
    bool strange = blyi_ledger_is_whole(header) && header->pid_space != pid_space();
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        struct blyi_slot there = {0};
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
        bool used = (header->used[slot / 64] >> (slot % 64)) & 1;
        bool held = fcntl(locks, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
        if (used && pread(file, &there, sizeof there,
                          (off_t)(BLYI_LEDGER_AT_SLOTS + (uint64_t)slot * BLYI_SLOT_SIZE)) !=
                        (ssize_t)sizeof there)
            there.pid = 0;
        *pid = held && lock.l_type != F_UNLCK ? (long)lock.l_pid : (long)there.pid;
        if (held || (used && !strange && there.pid != 0 &&
                     blyi_ledger_process_lives(&there, blyi_ledger.mapped, false)))
            return true;
    }
    return false;
}

/* Why we cannot join those who use the file, as process `pid` does; BLY_OK: we can. */
static bly_status check_header(const struct blyi_ledger *header, long pid)
{
    if (!blyi_ledger_is_whole(header))
        return blyi_fail(BLY_E_STATE,
                         "the shared state is damaged while process %ld uses it; end the processes "
                         "that use it and it is made anew, or name another folder with BELAY_STATE",
                         pid);
    if (header->version != BLYI_LEDGER_VERSION || header->size != BLYI_LEDGER_SIZE)
        return blyi_fail(BLY_E_STATE,
                         "the shared state is in use by process %ld with another version of Belay "
                         "(layout %" PRIu32 ", ours is %u); end it, or name another folder with "
                         "BELAY_STATE",
                         pid, header->version, BLYI_LEDGER_VERSION);
    if (header->pid_space != pid_space())
        return blyi_fail(BLY_E_STATE,
                         "the shared state is in use from another container (pid namespace %" PRIu64
                         ", ours is %" PRIu64 "): processes must see one another; name another "
                         "folder with BELAY_STATE",
                         header->pid_space, pid_space());
    return BLY_OK;
}

static bly_status make_anew(int file)
{
    struct blyi_ledger header = {.magic = BLYI_LEDGER_MAGIC,
                                 .version = BLYI_LEDGER_VERSION,
                                 .size = BLYI_LEDGER_SIZE,
                                 .pid_space = pid_space()};
    header.checksum = checksum(&header);
    bly_status status = blyi_state_grow(file, "ledger", 0, 0);
    if (status == BLY_OK)
        status = blyi_state_grow(file, "ledger", BLYI_LEDGER_SIZE, BLYI_LEDGER_AT_SLOTS);
    if (status == BLY_OK && blyi_sys_pwrite(file, &header, sizeof header, 0) != sizeof header)
        status =
            blyi_fail(BLY_E_IO, "the state's file ledger cannot be written: %s", strerror(errno));
    return status;
}

/* The file as it is, or made anew when nobody uses it. Setting up is locked. */
static bly_status settle_file(int file)
{
    struct blyi_ledger header = {0};
    struct stat st;
    if (fstat(file, &st) != 0)
        return blyi_fail(BLY_E_IO, "the state's file ledger: %s", strerror(errno));
    bool whole = pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header;
    long pid;
    if (somebody(&header, file, &pid))
        return check_header(&header, pid);
    /* A whole file that begins with nothing was never begun: the disk was full. */
    if (st.st_size != 0 && !(whole && header.magic == 0) && !blyi_ledger_is_whole(&header))
        blyi_log(BLYI_LOG_WARN, "the shared state was damaged; nobody uses it, it is made anew");
    return make_anew(file);
}

static void read_name(char name[BLYI_SLOT_NAME])
{
    memset(name, 0, BLYI_SLOT_NAME);
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, name, BLYI_SLOT_NAME - 1) : 0;
    if (fd >= 0)
        close(fd);
    name[length > 0 && name[length - 1] == '\n' ? length - 1 : length > 0 ? length : 0] = '\0';
}

static void fill_slot(uint32_t slot)
{
    struct blyi_slot *mine = blyi_ledger_slot_at(slot);
    memset(mine, 0, sizeof *mine);
    mine->pid = (uint32_t)getpid();
    mine->start = blyi_process_start(mine->pid);
    mine->began_ns = blyi_clock_ns();
    draw(&mine->cookie, sizeof mine->cookie);
    read_name(mine->name);
    for (unsigned card = 0; card < BLYI_LEDGER_CARDS; card++)
        mine->cards[card].fd = -1;
    blyi_ledger_step();
    __atomic_fetch_or(&blyi_ledger_header()->used[slot / 64], (uint64_t)1 << (slot % 64),
                      __ATOMIC_RELEASE);
}

/* A slot that nobody has, or one of the dead; its byte is locked then. BLYI_SLOTS: none. */
static uint32_t choose_slot(bool of_the_dead)
{
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        if (blyi_ledger_in_use(slot) != of_the_dead ||
            !blyi_ledger_lock_byte(blyi_ledger.locks.fd, slot))
            continue;
        if (!of_the_dead ||
            !blyi_ledger_process_lives(blyi_ledger_slot_at(slot), blyi_ledger.mapped, false))
            return slot;
        blyi_ledger_unlock_byte(blyi_ledger.locks.fd, slot); /* it closed its descriptors */
    }
    return BLYI_SLOTS;
}

static bly_status take_slot(void)
{
    uint32_t slot = choose_slot(false);
    bool of_the_dead = slot == BLYI_SLOTS;
    if (of_the_dead)
        slot = choose_slot(true);
    if (slot == BLYI_SLOTS)
        return blyi_fail(BLY_E_STATE,
                         "%u processes share this state already, which is the most; name another "
                         "folder with BELAY_STATE",
                         BLYI_SLOTS);
    bly_status status =
        blyi_state_back(blyi_ledger.file.fd, "ledger",
                        BLYI_LEDGER_AT_SLOTS + (uint64_t)slot * BLYI_SLOT_SIZE, BLYI_SLOT_SIZE);
    if (status != BLY_OK)
        return status;
    blyi_ledger.slot = slot;
    blyi_ledger_choose_word(slot);
    if (of_the_dead) {
        blyi_ledger_drop_dead(slot);
        blyi_ledger_lock();
        blyi_ledger_doubt_locked();
        blyi_ledger_reap_locked(slot);
        blyi_ledger_unlock();
    }
    fill_slot(slot);
    return BLY_OK;
}

/* Those who wait at their bells learn that they are not alone any more. */
static void ring_all(void)
{
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        if (slot == blyi_ledger.slot || !blyi_ledger_in_use(slot))
            continue;
        struct blyi_slot *other = blyi_ledger_slot_at(slot);
        __atomic_fetch_add(&other->bell, 1, __ATOMIC_RELEASE);
        blyi_sys_futex_wake_shared(&other->bell, 1);
    }
}

static bly_status open_file(const char *name, struct blyi_own_fd *own)
{
    int fd;
    bly_status status = blyi_state_file(blyi_ledger.folder.fd, name, true, &fd);
    if (status == BLY_OK)
        *own = blyi_own_fd_take(fd); /* before it holds a lock, which closing would drop */
    return status;
}

static bly_status open_files(void)
{
    int folder;
    bly_status status = blyi_state_open(&folder);
    if (status != BLY_OK)
        return status;
    blyi_ledger.is_private = folder < 0;
    if (folder >= 0)
        blyi_ledger.folder = blyi_own_fd_take(folder);
    status = open_file("slots", &blyi_ledger.locks);
    if (status == BLY_OK)
        status = open_file("ledger", &blyi_ledger.file);
    if (status == BLY_OK)
        blyi_ledger.mapped = blyi_mapped_learn(blyi_ledger.file.fd);
    return status;
}

static bly_status map_and_join(void)
{
    bly_status status = settle_file(blyi_ledger.file.fd);
    if (status != BLY_OK)
        return status;
    char *map = blyi_sys_mmap(NULL, BLYI_LEDGER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
                              blyi_ledger.file.fd, 0);
    if (map == MAP_FAILED)
        return blyi_fail(BLY_E_SYSTEM, "the state's file ledger cannot be mapped: %s",
                         strerror(errno));
    (void)blyi_sys_madvise(map, BLYI_LEDGER_SIZE, MADV_DONTFORK);
    blyi_ledger.map = map; /* not published: attach_lock is held */
    status = take_slot();
    if (status == BLY_OK)
        return BLY_OK;
    blyi_ledger.map = NULL;
    blyi_sys_munmap(map, BLYI_LEDGER_SIZE);
    return status;
}

static void close_files(void)
{
    blyi_own_fd_drop(&blyi_ledger.file);
    blyi_own_fd_drop(&blyi_ledger.locks);
    blyi_own_fd_drop(&blyi_ledger.folder);
}

static bly_status attach_locked(void)
{
    bly_status status = open_files();
    if (status == BLY_OK)
        status = blyi_ledger_begin_setup();
    if (status != BLY_OK) {
        close_files();
        return status;
    }
    status = map_and_join();
    blyi_ledger_end_setup();
    if (status != BLY_OK) {
        close_files();
        return status;
    }
    ring_all();
    return BLY_OK;
}

bly_status blyi_ledger_attach(void)
{
    static bool done; /* beside `map`, which attaching itself needs */
    if (likely(__atomic_load_n(&done, __ATOMIC_ACQUIRE)))
        return BLY_OK;
    bly_status status = BLY_OK;
    blyi_lock_take(&attach_lock);
    if (!done) {
        status = attach_locked();
        if (status == BLY_OK)
            __atomic_store_n(&done, true, __ATOMIC_RELEASE);
    }
    blyi_lock_drop(&attach_lock);
    if (status == BLY_OK)
        blyi_ledger_reap();
    return status;
}

/* Memory of the child's own instead of what is shared, so that a call that forgets to ask whether
 * it was forked does no harm. */
static void cut_off(void *map, uint64_t size)
{
    if (map)
        (void)mmap(map, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void blyi_ledger_forget(void)
{
    for (unsigned card = 0; card < BLYI_LEDGER_CARDS; card++)
        cut_off(blyi_ledger.cards[card].map, blyi_ledger.cards[card].size);
    cut_off(blyi_ledger.map, BLYI_LEDGER_SIZE);
    blyi_lock_init(&blyi_ledger.local, BLYI_RANK_LEDGER);
    close_files(); /* the locks are the parent's, and stay */
}

bool blyi_ledger_is_lost(void)
{
    return unlikely(__atomic_load_n(&blyi_ledger.lost, __ATOMIC_RELAXED));
}

/* In a signal handler: no lock, no allocation. */
bool blyi_ledger_mend(uintptr_t address)
{
    uintptr_t page = blyi_align_down(address, 4096);
    bool ours = blyi_ledger.map && address - (uintptr_t)blyi_ledger.map < BLYI_LEDGER_SIZE;
    for (unsigned card = 0; card < BLYI_LEDGER_CARDS && !ours; card++)
        ours = blyi_ledger.cards[card].map &&
               address - (uintptr_t)blyi_ledger.cards[card].map < blyi_ledger.cards[card].size;
    if (!ours || mmap((void *)page, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    __atomic_store_n(&blyi_ledger.lost, true, __ATOMIC_RELAXED);
    return true;
}

bly_status blyi_ledger_back(uint64_t at, uint64_t size, void **part)
{
    bly_assert(at + size <= BLYI_LEDGER_SIZE);
    int fd = blyi_own_fd_get(&blyi_ledger.file);
    bly_status status = fd >= 0 ? blyi_state_back(fd, "ledger", at, size)
                                : blyi_fail(BLY_E_SYSTEM, "the state's file ledger: this program "
                                                          "closed its descriptor");
    if (status == BLY_OK)
        *part = blyi_ledger.map + at;
    return status;
}
