/* SPDX-License-Identifier: Apache-2.0
 *
 * share_key.c - keys: found, allowed to processes, ended. A key that ended stays
 * readable for a while, so that who comes late is told what became of it.
 *
 * The id finds the record and is compared as one number; the secret byte by byte, all of them,
 * whatever differs.
 */
#include "npu/share_inside.h"
#include "npu/ledger.h"
#include "npu/state.h"
#include "npu/wait.h"
#include "base/fail.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool same_secret(const struct blyi_key *key, const struct blyi_key_draft *draft)
{
    uint8_t differs = 0;
    if (draft->kind == BLYI_KEY_HANDLE)
        return true; /* its id is all of it */
    for (size_t i = 0; i < BLYI_KEY_SECRET; i++)
        differs |= key->secret[i] ^ draft->secret[i];
    return differs == 0;
}

static struct blyi_key *find_record(const struct blyi_key_draft *draft)
{
    const struct blyi_shares *shares = blyi_shares();
    uint32_t n = blyi_keys_count();
    for (uint32_t i = 0; i < n && draft->id != 0; i++) {
        if (shares->ids[i] != draft->id)
            continue;
        struct blyi_key *key = blyi_key_at(i);
        if ((key->state == BLYI_KEY_LIVE || key->state == BLYI_KEY_GONE) && key->id == draft->id &&
            key->kind == draft->kind && same_secret(key, draft))
            return key;
    }
    return NULL;
}

static void age_text(uint64_t then_ns, char buf[32])
{
    uint64_t now = blyi_wait_real_ns(), ms = now > then_ns ? (now - then_ns) / 1000000 : 0;
    if (ms < 10000)
        snprintf(buf, 32, "%" PRIu64 " ms ago", ms);
    else
        snprintf(buf, 32, "%" PRIu64 " s ago", ms / 1000);
}

static void refuse_gone(const struct blyi_key *key, const char *name)
{
    char age[32], where[BLYI_KEY_WHERE];
    age_text(key->gone_ns, age);
    memcpy(where, key->where, sizeof where); /* another process wrote it */
    where[sizeof where - 1] = '\0';
    for (char *c = where; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    if (key->end == BLYI_KEY_DIED)
        blyi_fail(BLY_E_INVALID, "%s: its exporter pid %u ended, noticed %s", name, key->maker_pid,
                  age);
    else
        blyi_fail(BLY_E_INVALID, "%s: exporter pid %u %s %s%s%s", name, key->maker_pid,
                  key->end == BLYI_KEY_CLOSED ? "closed this key"
                                              : "freed this key with its memory",
                  age, where[0] ? " at " : "", where);
}

static bly_status refuse_unknown(const char *name)
{
    bly_status status =
        blyi_fail(BLY_E_INVALID, "%s: no process of this machine and user made such a key", name);
    if (blyi_state_is_private())
        blyi_fail_append("; with BELAY_STATE=private this process is a machine of its own");
    return status;
}

struct blyi_key *blyi_key_find_locked(struct blyi_key_form form)
{
    struct blyi_key_draft draft;
    char name[48];
    if (!blyi_key_read(form, &draft))
        return NULL;
    blyi_key_name(&draft, name);
    struct blyi_key *key = find_record(&draft);
    if (!key) {
        (void)refuse_unknown(name);
        return NULL;
    }
    if (key->state == BLYI_KEY_GONE) {
        refuse_gone(key, name);
        return NULL;
    }
    if (!blyi_share_get_locked((struct blyi_hold){key->share, key->generation})) {
        blyi_fail(BLY_E_INVALID, "%s: the memory of exporter pid %u is gone", name, key->maker_pid);
        return NULL;
    }
    return key;
}

bool blyi_key_is_mine(const struct blyi_key *key)
{
    return key->maker == blyi_ledger_slot() && key->maker_cookie == blyi_ledger_mine()->cookie;
}

static uint32_t n_pids_of(const struct blyi_key *key)
{
    return key->n_pids < BLYI_KEY_PIDS ? key->n_pids : BLYI_KEY_PIDS;
}

static int32_t read_pid(int32_t found)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        int32_t outer;
        if (sscanf(line, "NSpid: %" SCNd32, &outer) == 1 && outer > 0) {
            found = outer;
            break;
        }
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Relaxed: a forked child sees by the lower half that it is not what was read about. */
int32_t blyi_key_pid(void)
{
    static uint64_t known;
    uint32_t inner = (uint32_t)getpid();
    uint64_t now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if ((uint32_t)now == inner)
        return (int32_t)(now >> 32);
    int32_t found = read_pid((int32_t)inner);
    __atomic_store_n(&known, (uint64_t)(uint32_t)found << 32 | inner, __ATOMIC_RELAXED);
    return found;
}

bly_status blyi_key_admits(const struct blyi_key *key, int32_t pid)
{
    if (blyi_key_is_mine(key))
        return blyi_fail(BLY_E_INVALID,
                         "this process exported the memory itself; use its own address or handle");
    if (key->any)
        return BLY_OK;
    for (uint32_t i = 0; i < n_pids_of(key); i++)
        if (key->pids[i] == pid)
            return BLY_OK;
    return blyi_fail(BLY_E_PERMISSION,
                     "pid %d is not among the %u processes that exporter pid %u admitted to "
                     "this key (aclrtDeviceGetBareTgid tells the number to admit)",
                     pid, n_pids_of(key), key->maker_pid);
}

/* Empty ones first come round; then the one that ended longest ago by the cursor. */
static uint32_t find_room_locked(void)
{
    struct blyi_shares *shares = blyi_shares();
    uint32_t n = blyi_keys_count();
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (shares->key_cursor + i) % n;
        if (blyi_key_at(at)->state != BLYI_KEY_LIVE) {
            shares->key_cursor = at + 1;
            return at;
        }
    }
    return BLYI_KEYS;
}

bly_status blyi_key_make_locked(const struct blyi_key_draft *draft, struct blyi_hold hold)
{
    uint32_t index = find_room_locked();
    if (index == BLYI_KEYS)
        return blyi_fail(BLY_E_NO_MEMORY,
                         "all processes together have %u keys and shareable handles, which is the "
                         "most; close some (aclrtIpcMemClose)",
                         BLYI_KEYS);
    struct blyi_key *key = blyi_key_at(index);
    struct blyi_share *share = blyi_share_at(hold.index);
    __atomic_store_n(&key->state, (uint32_t)BLYI_KEY_EMPTY, __ATOMIC_RELEASE);
    blyi_ledger_step();
    key->kind = draft->kind;
    key->id = draft->id;
    memcpy(key->secret, draft->secret, sizeof key->secret);
    key->share = hold.index;
    key->generation = hold.generation;
    key->card = share->card;
    key->offset = draft->offset;
    key->length = draft->length;
    key->maker = blyi_ledger_slot();
    key->maker_pid = blyi_ledger_mine()->pid;
    key->maker_cookie = blyi_ledger_mine()->cookie;
    key->any = (draft->flags & BLYI_EXPORT_ANY) != 0;
    key->n_pids = 0;
    key->where[0] = '\0';
    blyi_shares()->ids[index] = draft->id;
    blyi_ledger_step();
    __atomic_store_n(&key->state, (uint32_t)BLYI_KEY_LIVE, __ATOMIC_RELEASE);
    share->n_keys++;
    blyi_shares_count_live(&blyi_shares()->live_keys, 1);
    blyi_ledger_step();
    return BLY_OK;
}

void blyi_key_end_locked(struct blyi_key *key, enum blyi_key_end end, const char *where)
{
    struct blyi_share *share =
        blyi_share_get_locked((struct blyi_hold){key->share, key->generation});
    key->gone_ns = blyi_wait_real_ns();
    key->end = (uint32_t)end;
    snprintf(key->where, sizeof key->where, "%s", where);
    __atomic_store_n(&key->state, (uint32_t)BLYI_KEY_GONE, __ATOMIC_RELEASE);
    blyi_ledger_step();
    if (share && share->n_keys > 0)
        share->n_keys--;
    blyi_shares_count_live(&blyi_shares()->live_keys, -1);
}

void blyi_key_end_all_locked(struct blyi_hold hold, enum blyi_key_end end, const char *where)
{
    const struct blyi_share *share = blyi_share_get_locked(hold);
    for (uint32_t i = 0; i < blyi_keys_count() && share && share->n_keys > 0; i++) {
        struct blyi_key *key = blyi_key_at(i);
        if (key->state == BLYI_KEY_LIVE && key->share == hold.index &&
            key->generation == hold.generation && blyi_key_is_mine(key))
            blyi_key_end_locked(key, end, where);
    }
}

static bly_status allow_locked(struct blyi_key *key, const int32_t *pids, size_t n)
{
    if (!blyi_key_is_mine(key))
        return blyi_fail(BLY_E_INVALID, "processes are admitted by exporter pid %u alone",
                         key->maker_pid);
    uint32_t have = n_pids_of(key), fresh = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t at = 0;
        while (at < have + fresh && at < BLYI_KEY_PIDS && key->pids[at] != pids[i])
            at++;
        if (at < have + fresh)
            continue; /* admitted already */
        if (have + fresh == BLYI_KEY_PIDS)
            return blyi_fail(BLY_E_INVALID,
                             "%zu processes would be admitted to one key, %u are the most; "
                             "export without the check of pids (flag 1)",
                             have + n, BLYI_KEY_PIDS);
        key->pids[have + fresh++] = pids[i]; /* not read before n_pids says so */
    }
    blyi_ledger_step();
    __atomic_store_n(&key->n_pids, have + fresh, __ATOMIC_RELEASE);
    return BLY_OK;
}

bool blyi_key_close_freed_locked(struct blyi_key_form form)
{
    struct blyi_key_draft draft;
    struct blyi_key *key = blyi_key_read(form, &draft) ? find_record(&draft) : NULL;
    if (!key || key->state != BLYI_KEY_GONE || key->end != BLYI_KEY_FREED || !blyi_key_is_mine(key))
        return false;
    key->end = BLYI_KEY_FREED_CLOSED;
    return true;
}

/* Nobody has shared anything: what would a lock and a look at the records tell? */
bly_status blyi_key_attach(struct blyi_key_form form)
{
    struct blyi_key_draft draft;
    char name[48];
    bly_status status = blyi_ledger_attach();
    if (status != BLY_OK || blyi_shares_in_use())
        return status;
    if (!blyi_key_read(form, &draft))
        return BLY_E_INVALID;
    return refuse_unknown(blyi_key_name(&draft, name));
}

bly_status blyi_key_allow(struct blyi_key_form form, const int32_t *pids, size_t n)
{
    if (n > BLYI_KEY_PIDS)
        return blyi_fail(BLY_E_INVALID,
                         "%zu processes would be admitted to one key, %u are the most; export "
                         "without the check of pids (flag 1)",
                         n, BLYI_KEY_PIDS);
    bly_status status = blyi_key_attach(form);
    if (status != BLY_OK)
        return status;
    blyi_ledger_lock();
    struct blyi_key *key = blyi_key_find_locked(form);
    status = key ? allow_locked(key, pids, n) : BLY_E_INVALID;
    blyi_ledger_unlock();
    return status;
}

bly_status blyi_key_check(struct blyi_key_form form)
{
    bly_status status = blyi_key_attach(form);
    if (status != BLY_OK)
        return status;
    blyi_ledger_lock();
    status = blyi_key_find_locked(form) ? BLY_OK : BLY_E_INVALID;
    blyi_ledger_unlock();
    return status;
}
