/* SPDX-License-Identifier: Apache-2.0
 *
 * signal_key.c - names of shared events and notifies, which programs hand on: opaque bytes or
 * text, with a secret that cannot be guessed; and the list of who may open them.
 */
#include "npu/signal_inside.h"
#include "base/fail.h"
#include <inttypes.h>
#include <string.h>

/* Key: 'N' | index, 3 digits | generation, 4 | 56 digits of the secret; all hexadecimal. */
#define KEY_SECRET 28u

struct handle {
    uint64_t magic;
    uint32_t index, generation;
    unsigned char secret[32];
    unsigned char zero[16];
};
_Static_assert(sizeof(struct handle) == BLYI_SIGNAL_HANDLE, "a handle is 64 bytes");
_Static_assert(BLYI_SIGNALS <= 4096, "an index is three digits");
#define HANDLE_MAGIC 0x746e657679616c65u

void blyi_signal_handle(const struct blyi_signal *signal, unsigned char out[BLYI_SIGNAL_HANDLE])
{
    struct handle handle = {
        .magic = HANDLE_MAGIC, .index = signal->index, .generation = signal->generation};
    memcpy(handle.secret, signal->record->secret, sizeof handle.secret);
    memcpy(out, &handle, sizeof handle);
}

bly_status blyi_signal_open_handle(const unsigned char in[BLYI_SIGNAL_HANDLE],
                                   struct blyi_signal **out)
{
    static const unsigned char zero[16];
    struct handle handle;
    memcpy(&handle, in, sizeof handle);
    if (handle.magic != HANDLE_MAGIC || memcmp(handle.zero, zero, sizeof zero) != 0)
        return blyi_fail(BLY_E_INVALID, "these 64 bytes are no handle of a shared event");
    return blyi_signal_open_named(BLYI_SIGNAL_EVENT, handle.index, handle.generation, handle.secret,
                                  sizeof handle.secret, out);
}

static char *put_hex(char *at, uint32_t value, int n_digits)
{
    for (int i = n_digits - 1; i >= 0; i--)
        *at++ = "0123456789abcdef"[(value >> (4 * i)) & 15];
    return at;
}

/* False: not all are hexadecimal digits, as we write them. */
static bool get_hex(const char *at, int n_digits, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < n_digits; i++) {
        uint32_t digit;
        if (at[i] >= '0' && at[i] <= '9')
            digit = (uint32_t)(at[i] - '0');
        else if (at[i] >= 'a' && at[i] <= 'f')
            digit = (uint32_t)(at[i] - 'a') + 10;
        else
            return false;
        *value = *value << 4 | digit;
    }
    return true;
}

void blyi_signal_key(const struct blyi_signal *signal, char key[BLYI_SIGNAL_KEY])
{
    char *at = key;
    *at++ = 'N';
    at = put_hex(at, signal->index, 3);
    at = put_hex(at, signal->generation & 0xffff, 4);
    for (uint32_t i = 0; i < KEY_SECRET; i++)
        at = put_hex(at, signal->record->secret[i], 2);
    *at = '\0';
}

bly_status blyi_signal_open_key(const char *key, struct blyi_signal **out)
{
    unsigned char secret[KEY_SECRET];
    uint32_t index = 0, generation = 0, byte = 0;
    bool good = strnlen(key, BLYI_SIGNAL_KEY) == BLYI_SIGNAL_KEY - 1 && key[0] == 'N' &&
                get_hex(key + 1, 3, &index) && get_hex(key + 4, 4, &generation);
    for (uint32_t i = 0; good && i < KEY_SECRET; i++) {
        good = get_hex(key + 8 + (size_t)2 * i, 2, &byte);
        secret[i] = (unsigned char)byte;
    }
    if (!good)
        return blyi_fail(BLY_E_INVALID,
                         "the key is no key of a notify: that is 64 characters, of which this has "
                         "%zu, or others",
                         strnlen(key, BLYI_SIGNAL_KEY));
    return blyi_signal_open_named(BLYI_SIGNAL_NOTIFY, index, generation, secret, sizeof secret,
                                  out);
}

void blyi_signal_allow_all(struct blyi_signal *signal)
{
    blyi_ledger_lock();
    signal->record->any_pid = 1;
    blyi_ledger_unlock();
}

bly_status blyi_signal_allow(struct blyi_signal *signal, const int32_t *pids, size_t n)
{
    struct blyi_signal_record *record = signal->record;
    bly_status status = BLY_OK;
    blyi_ledger_lock();
    uint32_t have = record->n_pids < BLYI_SIGNAL_PIDS ? record->n_pids : BLYI_SIGNAL_PIDS;
    if (n > BLYI_SIGNAL_PIDS - have) {
        status = blyi_fail(BLY_E_INVALID,
                           "%" PRIu32 " processes may import this notify already; %zu more are "
                           "above the limit of %u",
                           have, n, BLYI_SIGNAL_PIDS);
    } else {
        memcpy(record->pids + have, pids, n * sizeof *pids);
        blyi_ledger_step();
        record->n_pids = have + (uint32_t)n;
    }
    blyi_ledger_unlock();
    return status;
}
