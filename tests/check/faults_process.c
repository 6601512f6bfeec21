/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_process.c - memory that processes share: what each does wrong with its own side of it.
 */
#include "process_case.h"

static void may_fail(aclError code)
{
    (void)code;
}

static char *export_block(size_t size)
{
    char *block = card_block(size);
    OK(aclrtMemset(block, size, 1, size));
    OK(aclrtIpcMemGetExportKey(block, size, board->key, KEY_SIZE,
                               ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    return block;
}

static char *import_block(void)
{
    void *block;
    OK(aclrtIpcMemImportByKey(&block, board->key, 0));
    return block;
}

/* The partner exports 2 MiB, which this process imports; `body` has the imported block. */
static void exports(struct partner *me)
{
    told(me);
    world_begin();
    char *block = export_block(2 * MIB);
    done(me);
    told(me);
    OK(aclrtFree(block));
    world_end();
}

static void as_importer(void (*body)(char *block))
{
    struct partner partner = partner_start(exports);
    world_begin();
    partner_step(&partner);
    body(import_block());
    world_end();
    partner_end(&partner);
}

static void close_import(void)
{
    OK(aclrtIpcMemClose(board->key));
}

static void use_closed(char *block)
{
    close_import();
    may_fail(aclrtMemsetAsync(block + 4096, 64, 1, 64, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
}

static void after_close(void)
{
    as_importer(use_closed);
}

static void race_on(char *block)
{
    set(block, 4096, w.a);
    set(block, 4096, w.b);
    OK(aclrtSynchronizeDevice());
    close_import();
}

static void race_of_importer(void)
{
    as_importer(race_on);
}

static void close_early(char *block)
{
    struct gate gate;
    hold(&gate, w.a);
    set(block, 4096, w.a);
    close_import();
    let_go(&gate);
    may_fail(aclrtSynchronizeStream(w.a));
}

static void closed_in_use(void)
{
    as_importer(close_early);
}

static void go_beyond(char *block)
{
    may_fail(aclrtMemsetAsync(block + 2 * MIB - 48, 64, 1, 64, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
    close_import();
}

static void beyond_the_import(void)
{
    as_importer(go_beyond);
}

static void forget(char *block)
{
    get(w.pinned, block, 4096, w.a);
    wait_done(w.a);
}

static void never_closed(void)
{
    as_importer(forget);
}

static void free_it(char *block)
{
    may_fail(aclrtFree(block));
    close_import();
}

static void freed_by_importer(void)
{
    as_importer(free_it);
}

/* ── The exporter ─────────────────────────────────────────────────────────────────────────── */

static void imports(struct partner *me)
{
    told(me);
    world_begin();
    char *block = import_block();
    done(me);
    told(me);
    get(w.pinned, block, 4096, w.a);
    wait_done(w.a);
    close_import();
    world_end();
}

static void as_exporter(void (*body)(char *block))
{
    struct partner partner = partner_start(imports);
    world_begin();
    char *block = export_block(2 * MIB);
    partner_step(&partner);
    body(block);
    partner_end(&partner);
    world_end();
}

/* That the other side has it open does not make it ours. */
static void use_freed(char *block)
{
    OK(aclrtFree(block));
    may_fail(aclrtMemsetAsync(block, 64, 1, 64, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
}

static void after_free(void)
{
    as_exporter(use_freed);
}

static void race_and_free(char *block)
{
    set(block, 4096, w.a);
    set(block + 2048, 4096, w.b);
    OK(aclrtSynchronizeDevice());
    OK(aclrtFree(block));
}

static void race_of_exporter(void)
{
    as_exporter(race_and_free);
}

static void free_early(char *block)
{
    struct gate gate;
    hold(&gate, w.a);
    set(block, 4096, w.a);
    OK(aclrtFree(block));
    let_go(&gate);
    may_fail(aclrtSynchronizeStream(w.a));
}

static void freed_in_own_use(void)
{
    as_exporter(free_early);
}

const struct check_case faults_process[] = {
    {"after-close", after_close, "use-after-free",
     "4096 bytes into an imported block of 2097152 B (2 MiB)|that was closed before", NULL},
    {"race-of-importer", race_of_importer, "race", "4096 B", NULL},
    {"closed-in-use", closed_in_use, "free-in-use", "close of |(2 MiB) while 1 task on stream",
     NULL},
    {"beyond-the-import", beyond_the_import, "out-of-bounds", "16 of them beyond the end", NULL},
    {"never-closed", never_closed, "leaked-handle",
     "2097152 B (2 MiB) in 1 import of memory of other processes", NULL},
    {"freed-by-importer", freed_by_importer, "invalid-free", "imported block", NULL},
    {"after-free", after_free, "use-after-free", "0 bytes into a block of 2097152 B", NULL},
    {"race-of-exporter", race_of_exporter, "race", "2048 B", NULL},
    {"freed-in-own-use", freed_in_own_use, "free-in-use", "while 1 task on stream", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
