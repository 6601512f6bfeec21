/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.c - choosing how card memory is guarded, and mapping it so.
 */
#include "npu/guard.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/lock.h"
#include "base/log.h"
#include "base/option.h"
#include "base/sys.h"
#include "npu/backing.h"
#include "npu/card.h"
#include "npu/frame.h"
#include "npu/share.h"
#include "npu/vmm_inside.h"
#include "npu/window.h"

#define DENY_ACCESS 1u /* the kernel's PKEY_DISABLE_ACCESS, and the lower of a key's two bits */

struct blyi_guard blyi_guard;
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_RUNTIME); /* the end of the guard */
static bool started;

/* -1 with errno. New keys are denied to the calling thread by the call, and to all others by the
 * kernel's initial rights, which deny every key but 0. */
static int take_key(void)
{
#if defined(__x86_64__)
    return blyi_sys_pkey_alloc(DENY_ACCESS);
#else
    errno = ENOSYS; /* other machines have keys whose rights no code here can switch */
    return -1;
#endif
}

bool blyi_guard_has_keys(void)
{
    int key = take_key();
    if (key >= 0)
        blyi_sys_pkey_free(key);
    return key >= 0;
}

static void start_keys(int key)
{
    blyi_guard.key = key;
    blyi_guard.deny = DENY_ACCESS << (2 * key);
    blyi_guard.mode = BLYI_GUARD_KEYS;
}

void blyi_guard_start(void)
{
    enum blyi_guard_option wanted = (enum blyi_guard_option)blyi_option_int(BLYI_OPT_GUARD);
    if (started)
        return;
    started = true;
    if (wanted == BLYI_GUARD_OPTION_OFF)
        return;
    int key = wanted == BLYI_GUARD_OPTION_ALIAS ? -1 : take_key();
    if (key >= 0) {
        start_keys(key);
    } else if (wanted != BLYI_GUARD_OPTION_AUTO) {
        blyi_guard.mode = BLYI_GUARD_ALIAS;
        blyi_guard.has_alias = true;
    }
}

bool blyi_guard_is_denied(const siginfo_t *info)
{
    return blyi_guard.deny != 0 && info->si_code == SEGV_PKUERR &&
           (int)info->si_pkey == blyi_guard.key;
}

static enum blyi_guard_mode mode_now(void)
{
    return __atomic_load_n(&blyi_guard.mode, __ATOMIC_RELAXED);
}

void *blyi_guard_map(void *at, size_t size, int fd, off_t offset, bool host)
{
    const int both = PROT_READ | PROT_WRITE;
    enum blyi_guard_mode mode = host ? BLYI_GUARD_OFF : mode_now();
    /* A new mapping has no key: it gets its rights together with the key. */
    void *mapped = blyi_sys_mmap(at, size, mode == BLYI_GUARD_OFF ? both : PROT_NONE,
                                 MAP_SHARED | MAP_FIXED, fd, offset);
    if (mode != BLYI_GUARD_KEYS || mapped == MAP_FAILED)
        return mapped;
    return blyi_sys_pkey_mprotect(at, size, both, blyi_guard.key) == 0 ? mapped : MAP_FAILED;
}

bool blyi_guard_let_host(void *at, size_t size)
{
    if (mode_now() == BLYI_GUARD_OFF)
        return true;
    if (blyi_guard.deny != 0) /* key 0 is everybody's */
        return blyi_sys_pkey_mprotect(at, size, PROT_READ | PROT_WRITE, 0) == 0;
    return blyi_sys_mprotect(at, size, PROT_READ | PROT_WRITE) == 0;
}

/* The second mapping of the memory that an entry names, or NULL. */
static char *alias_of(const struct blyi_window *w, uint64_t entry)
{
    int owner = w->owner == BLYI_WINDOW_VMM ? blyi_entry_owner(entry) : w->owner;
    if (owner == BLYI_OWNER_HOST)
        return blyi_backing_alias(blyi_vmm.host_backing);
    struct blyi_card *card = blyi_card_get(owner);
    return card ? blyi_backing_alias(card->backing) : NULL;
}

uint64_t blyi_guard_way(const void *address, uint64_t size, void **way)
{
    uintptr_t at = (uintptr_t)address;
    const struct blyi_window *w = blyi_window_find(at);
    *way = (void *)at;
    if (w == NULL || w->owner == BLYI_WINDOW_PINNED)
        return size;
    uint64_t entry = blyi_window_entry(w, at), inside = at % BLYI_GRANULE;
    if ((entry & BLYI_ENTRY_MAPPED) == 0)
        return 0;
    char *alias = alias_of(w, entry);
    if (alias == NULL)
        return size;
    uint32_t frame = blyi_entry_frame(entry);
    int owner = blyi_entry_owner(entry);
    uint64_t run = BLYI_GRANULE - inside;
    for (uint32_t i = 1; run < size && at + run - w->base < w->size; i++, run += BLYI_GRANULE) {
        entry = blyi_window_entry(w, at + run);
        if ((entry & BLYI_ENTRY_MAPPED) == 0 || blyi_entry_frame(entry) != frame + i ||
            blyi_entry_owner(entry) != owner)
            break;
    }
    *way = alias + frame * BLYI_FRAME_SIZE + inside;
    return run < size ? run : size;
}

void blyi_guard_open(void)
{
    if (likely(mode_now() != BLYI_GUARD_ALIAS))
        return;
    blyi_lock_take(&lock);
    if (mode_now() == BLYI_GUARD_ALIAS) {
        __atomic_store_n(&blyi_guard.mode, BLYI_GUARD_OFF, __ATOMIC_RELAXED);
        for (int id = 0; id < BLYI_CARD_MAX; id++) {
            struct blyi_card *card = blyi_card_get(id);
            if (card == NULL)
                continue;
            blyi_card_lock(card); /* what is mapped later sees the new mode */
            blyi_window_unguard(card->window);
            blyi_import_unguard_locked(card);
            blyi_card_unlock(card);
        }
        blyi_lock_take(&blyi_vmm.lock);
        if (blyi_vmm.window != NULL)
            blyi_window_unguard(blyi_vmm.window);
        blyi_lock_drop(&blyi_vmm.lock);
        blyi_log(BLYI_LOG_WARN, "host access to card memory is not guarded from now on: work that "
                                "follows its addresses runs, and protection keys are not in use");
    }
    blyi_lock_drop(&lock);
}
