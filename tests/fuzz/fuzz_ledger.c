/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_ledger.c - whatever lies in the files that processes share, one that uses them neither
 * crashes nor hangs, and keeps what it has: the input is written over the ledger and the words of a
 * card while memory is taken, given, counted and looked at.
 *
 *   input   triples of place (16 bits) and byte; the place's lowest bits choose the part
 */
#include "base/log.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/copy.h"
#include "npu/ledger.h"
#include "npu/ledger_view.h"
#include "npu/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MINE  (3 * BLYI_FRAME_SIZE)
#define PARTS 4
#define PART  16384 /* bytes of a part at most */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/dev/shm/belay-fuzz-XXXXXX";
static void *block; /* with a pattern */

static void require(bool cond, int line)
{
    if (!cond) {
        fprintf(stderr, "fuzz_ledger.c:%d: not so; %s\n", line, bly_last_error());
        abort();
    }
}
#define REQUIRE(cond) require(cond, __LINE__)

static void clean(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s stays\n", folder);
}

static void take(uint64_t size, void **address)
{
    struct blyi_mem_request request = {.asked = size, .rounded = size};
    *address = NULL;
    if (blyi_mem_alloc(blyi_card_get(0), &request, address) != BLY_OK)
        REQUIRE(*address == NULL && bly_last_error()[0] != '\0');
}

static const unsigned char *pattern(void)
{
    static unsigned char bytes[MINE];
    for (size_t i = 0; bytes[1] == 0 && i < MINE; i++)
        bytes[i] = (unsigned char)(i * 11);
    return bytes;
}

static void start(void)
{
    REQUIRE(mkdtemp(folder) != NULL);
    setenv("BELAY_STATE", folder, 1);
    setenv("BELAY_HBM", "128MiB", 1);
    atexit(clean);
    REQUIRE(blyi_device_set(0, 0) == BLY_OK);
    blyi_log_set_level(BLYI_LOG_ERROR);
    take(MINE, &block);
    REQUIRE(block != NULL && blyi_mem_use(block, MINE, BLYI_WRITE) == BLY_OK);
    REQUIRE(blyi_copy_now(block, pattern(), MINE) == BLY_OK);
}

/* The lock itself is left out: a living owner that never drops it is waited for. */
static char *part(unsigned i, size_t *size)
{
    char *header = (char *)blyi_ledger_header();
    char *file = (char *)blyi_stock_file(blyi_card_get(0)->stock);
    char *parts[PARTS] = {header + offsetof(struct blyi_ledger, used),
                          (char *)blyi_ledger_slot_at(0), (char *)blyi_ledger_slot_at(1), file};
    const size_t sizes[PARTS] = {sizeof(struct blyi_ledger) - offsetof(struct blyi_ledger, used),
                                 sizeof(struct blyi_slot), sizeof(struct blyi_slot),
                                 sizeof(struct blyi_card_file) + 64 * sizeof(uint32_t)};
    *size = sizes[i] < PART ? sizes[i] : PART;
    return parts[i];
}

static void use_it(void)
{
    static unsigned char back[MINE];
    struct blyi_mem_figures figures;
    struct blyi_ledger_view view;
    char why[256];
    void *more;
    take(2 * BLYI_FRAME_SIZE + 4096, &more);
    blyi_mem_figures(blyi_card_get(0), &figures);
    (void)blyi_ledger_audit(why, sizeof why);
    if (blyi_ledger_view(&view) == BLY_OK)
        blyi_ledger_view_fini(&view);
    if (more)
        REQUIRE(blyi_mem_free(more, 0) == BLY_OK);
    REQUIRE(blyi_copy_now(back, block, MINE) == BLY_OK);
    REQUIRE(memcmp(back, pattern(), MINE) == 0);
}

/* What another process does to the files, beside our service thread: no race within this one. */
static void read_shared(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

static void write_shared(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        __atomic_store_n(to + i, from[i], __ATOMIC_RELAXED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char saved[PARTS][PART];
    static uint32_t epoch;
    size_t sizes[PARTS];
    if (block == NULL)
        start();
    for (unsigned i = 0; i < PARTS; i++) {
        const char *there = part(i, &sizes[i]);
        read_shared(saved[i], there, sizes[i]);
    }
    for (size_t i = 0; i + 2 < size; i += 3) {
        size_t at = (size_t)data[i] << 8 | data[i + 1];
        size_t length;
        char *there = part(at % PARTS, &length);
        write_shared(there + at / PARTS % length, (const char *)data + i + 2, 1);
    }
    use_it();
    for (unsigned i = 0; i < PARTS; i++)
        write_shared(part(i, &sizes[i]), saved[i], sizes[i]);
    /* As it was, and read anew by everybody. */
    struct blyi_card_file *file = blyi_stock_file(blyi_card_get(0)->stock);
    file->epoch = ++epoch | UINT32_C(1) << 31;
    use_it();
    REQUIRE(blyi_card_audit(blyi_card_get(0)));
    return 0;
}
