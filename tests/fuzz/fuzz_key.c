/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_key.c - keys nobody made open nothing, and records full of garbage mislead nobody: another
 * process exports a block, the input is tried as each form of a key, then written over the records
 * of the share and its key while the true key is used.
 *
 *   input   kind of key, key ...   or   255, then pairs of place (16 bits) and byte
 */
#include "npu/card.h"
#include "npu/context.h"
#include "npu/ledger.h"
#include "npu/memory.h"
#include "npu/share.h"
#include "npu/share_layout.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SIZE ((uint64_t)2 * BLYI_FRAME_SIZE + 20480)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/dev/shm/belay-fuzz-XXXXXX", key[BLYI_KEY_TEXT_SIZE];
static uint32_t share_at, key_at;

static void require(bool cond, int line)
{
    if (!cond) {
        fprintf(stderr, "fuzz_key.c:%d: not so; %s\n", line, bly_last_error());
        abort();
    }
}
#define REQUIRE(cond) require(cond, __LINE__)

static void export(int out)
{
    struct blyi_mem_request request = {
        .asked = SIZE, .rounded = SIZE, .policy = BLYI_MEM_NORMAL_ONLY};
    void *block;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    REQUIRE(blyi_device_set(0, 0) == BLY_OK);
    REQUIRE(blyi_mem_alloc(blyi_card_get(0), &request, &block) == BLY_OK);
    REQUIRE(blyi_ipc_export(block, SIZE, BLYI_EXPORT_ANY, 0, key) == BLY_OK);
    REQUIRE(write(out, key, sizeof key) == (ssize_t)sizeof key);
    pause();
    _exit(0);
}

static void clean(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s stays\n", folder);
}

static char *record(uint64_t at)
{
    return (char *)blyi_ledger_header() + BLYI_LEDGER_AT_SHARES + at;
}

static void start(void)
{
    int pipes[2];
    REQUIRE(mkdtemp(folder) != NULL && pipe(pipes) == 0);
    setenv("BELAY_STATE", folder, 1);
    setenv("BELAY_HBM", "256MiB", 1);
    if (fork() == 0)
        export(pipes[1]);
    REQUIRE(read(pipes[0], key, sizeof key) == (ssize_t)sizeof key);
    atexit(clean);
    REQUIRE(blyi_device_set(0, 0) == BLY_OK);
    const struct blyi_shares *head = (const void *)record(0);
    while (head->ids[key_at] == 0)
        key_at++;
    const struct blyi_key *keys = (const void *)record(BLYI_SHARES_AT_KEYS);
    share_at = keys[key_at].share;
}

/* A form with the input in it, and zeros behind. */
static void try_key(const uint8_t *data, size_t size)
{
    static char bytes[4096];
    void *out = NULL;
    struct blyi_key_form form = {data[0] % 3u, bytes};
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, data + 1, size - 1 < sizeof bytes - 1 ? size - 1 : sizeof bytes - 1);
    if (memcmp(bytes, key, sizeof key - 1) == 0)
        return; /* who has it may use it */
    REQUIRE(blyi_key_check(form) == BLY_E_INVALID);
    REQUIRE(blyi_key_allow(form, &(int32_t){1}, 1) == BLY_E_INVALID);
    if (form.kind != BLYI_KEY_TEXT) {
        REQUIRE(blyi_handle_import(form, 0, 0, &out) == BLY_E_INVALID);
    } else {
        REQUIRE(blyi_ipc_import(bytes, 0, false, 0, &out) == BLY_E_INVALID);
        REQUIRE(blyi_ipc_close(bytes, 0) == BLY_E_INVALID);
    }
    REQUIRE(out == NULL && bly_last_error()[0] != '\0');
}

/* Whatever the records say, an import is refused with a sentence, or is one of the block. */
static void try_garbage(const uint8_t *data, size_t size)
{
    char *there[] = {record(BLYI_SHARES_AT_SHARES + share_at * sizeof(struct blyi_share)),
                     record(BLYI_SHARES_AT_KEYS + key_at * sizeof(struct blyi_key)), record(0)};
    const size_t sizes[] = {sizeof(struct blyi_share), sizeof(struct blyi_key), 64};
    static char saved[3][sizeof(struct blyi_key)];
    void *address = NULL;
    for (int i = 0; i < 3; i++)
        memcpy(saved[i], there[i], sizes[i]);
    for (size_t i = 1; i + 2 < size; i += 3) {
        size_t at = (size_t)data[i] << 8 | data[i + 1];
        there[at % 3][at / 3 % sizes[at % 3]] = (char)data[i + 2];
    }
    bly_status status = blyi_ipc_import(key, 0, false, 0, &address);
    for (int i = 0; i < 3; i++) /* as it was, but for who holds it */
        if (i == 0) {
            struct blyi_share was;
            memcpy(&was, saved[0], sizeof was);
            if (status == BLY_OK)
                was.holders[blyi_ledger_slot() / 64] |= (uint64_t)1 << (blyi_ledger_slot() % 64);
            memcpy(there[0], &was, sizeof was);
        } else {
            memcpy(there[i], saved[i], sizes[i]);
        }
    REQUIRE((status == BLY_OK) == (address != NULL));
    if (status != BLY_OK)
        REQUIRE(bly_last_error()[0] != '\0');
    else
        REQUIRE(blyi_mem_use(address, 1, BLYI_READ) == BLY_OK && blyi_ipc_close(key, 0) == BLY_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    void *address = NULL;
    if (!started)
        start();
    started = true;
    if (size < 2)
        return 0;
    if (data[0] == 255)
        try_garbage(data, size);
    else
        try_key(data, size);
    REQUIRE(blyi_ipc_import(key, 0, false, 0, &address) == BLY_OK);
    REQUIRE(blyi_mem_use(address, SIZE, BLYI_WRITE) == BLY_OK);
    REQUIRE(blyi_ipc_close(key, 0) == BLY_OK);
    REQUIRE(blyi_card_audit(blyi_card_get(0)));
    return 0;
}
