/* SPDX-License-Identifier: Apache-2.0
 *
 * host_access.c - the report of a host access, made in a copy of the process.
 *
 * The fault may come anywhere: in malloc, under a lock of the program's or of the loader's. Names
 * and stacks cannot be had without locks and memory. So the handler makes a copy of the process
 * (as fork does, without its handlers) and waits for it, at most TELL_MS. The copy leaves the
 * handler into tell(), as if the faulting instruction had called it: it has the thread's own stack,
 * an unwinder sees the program's functions above it, and whatever it waits for in vain or damages
 * is gone with it. If the copy fails or does not end, the bare address is told.
 *
 *   fault ── handler ── clone ──────── wait ───────── chain to the program's handler
 *                         └─ tell(): block, sites, stack ── sinks of DYING ── _exit
 */
#include "npu/host_access.h"

#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/size.h"
#include "npu/card.h"
#include "npu/fault.h"
#include "npu/guard.h"
#include "npu/mem_block.h"
#include "npu/vmm_inside.h"

#define TELL_MS     10000
#define LOCK_MS     50 /* for the card's lock: others hold it for a millisecond or so */
#define REPORTS_MAX 8  /* of a process whose own handler lets it go on */
#define FRAMES_MAX  64 /* of a stack */
#define TEXT_MAX    32768

struct access {
    uintptr_t address;
    const char *pc;
    int card;               /* -1: none */
    struct blyi_card *of;   /* its blocks hold the address; NULL: it lies in reserved addresses */
    struct blyi_lock *lock; /* of the card or of the reserved addresses */
    bool is_write, knows_write, fatal;
    bool locked; /* the lock is ours: what it guards can be read */
    pid_t pid;
};

static uint32_t n_reports; /* atomic */

/* ---- in the copy ---- */

static struct access told; /* what tell() tells */

static struct text {
    size_t length;
    char bytes[TEXT_MAX];
} text;

static void put_length(int n)
{
    text.length += n > 0 ? (size_t)n : 0;
    if (text.length >= TEXT_MAX)
        text.length = TEXT_MAX - 1; /* cut off */
}

#define put(...) put_length(snprintf(text.bytes + text.length, TEXT_MAX - text.length, __VA_ARGS__))

static void write_text(void)
{
    for (size_t at = 0; at < text.length;) {
        ssize_t n = write(STDERR_FILENO, text.bytes + at, text.length - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    text.length = 0;
}

static const char *verb(const struct access *access)
{
    return !access->knows_write ? "touched" : access->is_write ? "wrote to" : "read";
}

static void put_line(void *arg, size_t i, const char *line)
{
    if (arg != NULL)
        put("   %s %s\n", (const char *)arg, line);
    else
        put("   #%zu %s\n", i, line);
}

static void put_mapping_locked(const struct access *access)
{
    char size[BLYI_SIZE_TEXT], mapped[] = "mapped at", made[] = "physical memory allocated at";
    const struct blyi_mapping *m = blyi_mapping_find_locked(access->address);
    if (m == NULL) {
        blyi_fail(BLY_E_FAULT, "nothing is mapped there");
        if (blyi_vmm.unmapped != NULL)
            blyi_mapping_append_unmapped_locked(access->address);
        put("   %s\n", blyi_fail_text());
        return;
    }
    put("   %" PRIu64 " bytes into mapping 0x%" PRIxPTR " of %s, to which the host has no access "
        "(aclrtMemSetAccess)\n",
        (uint64_t)(access->address - m->node.key), (uintptr_t)m->node.key,
        blyi_size_text(m->physical->size, size));
    blyi_site_describe(&m->site, 1, put_line, mapped);
    blyi_site_describe(&m->physical->site, 1, put_line, made);
}

static void put_block_locked(const struct access *access)
{
    char asked[BLYI_SIZE_TEXT], backed[BLYI_SIZE_TEXT], words[] = "allocated at";
    const struct blyi_block *block = blyi_block_find_locked(access->of, access->address);
    if (block == NULL) {
        blyi_fail(BLY_E_FAULT, "no live block is there");
        blyi_mem_append_why_locked(access->of, access->address);
        put("   %s\n", blyi_fail_text());
        return;
    }
    put("   %" PRIu64 " bytes into block 0x%" PRIxPTR ": %s asked, %s backed\n",
        (uint64_t)(access->address - blyi_block_start(block)), blyi_block_start(block),
        blyi_size_text(block->asked, asked), blyi_size_text(block->backed, backed));
    blyi_site_describe(&block->site, 1, put_line, words);
}

static void put_owner(const struct access *access)
{
    if (!access->locked)
        put("   which block it is in is not known: the card is busy\n");
    else if (access->of != NULL)
        put_block_locked(access);
    else
        put_mapping_locked(access);
}

/* "memory of card 0" */
static const char *place_text(const struct access *access, char buf[48])
{
    if (access->card >= 0)
        snprintf(buf, 48, "memory of card %d", access->card);
    else
        snprintf(buf, 48, "reserved addresses");
    return buf;
}

/* From the faulting instruction outwards; the frames before it are ours. */
static void put_stack(const struct access *access)
{
    void *pcs[FRAMES_MAX];
    uint32_t sites[FRAMES_MAX];
    int n = backtrace(pcs, FRAMES_MAX), first = 0;
    while (first < n && pcs[first] != (const void *)access->pc)
        first++;
    if (first == n) { /* a place without unwind information, made at run time perhaps */
        pcs[0] = (void *)(uintptr_t)access->pc;
        first = 0;
        n = 1;
    }
    for (int i = first; i < n; i++)
        sites[i - first] = blyi_site_intern(pcs[i]);
    blyi_site_describe(sites, (size_t)(n - first), put_line, NULL);
}

static void put_advice(const struct access *access)
{
    put("   A processor cannot reach the memory of a card: copy with aclrtMemcpy. %s\n",
        access->fatal ? "The process ends here." : "The program's own handler is called.");
}

#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
static _Noreturn void
tell(void)
{
    char thread[17] = "", place[48];
    prctl(PR_GET_NAME, thread, 0, 0, 0);
    put("belay: host code %s %s at 0x%" PRIxPTR ", in thread \"%s\" of process %d\n", verb(&told),
        place_text(&told, place), told.address, thread, (int)told.pid);
    put_owner(&told);
    put_stack(&told);
    put_advice(&told);
    write_text();
    if (told.locked)
        blyi_lock_drop(told.lock);
    if (told.fatal)
        BLYI_PROBE(DYING, .card = -1, .aux = told.pid);
    _exit(0);
}

/* The context as if the faulting instruction had called tell(). */
static void call_tell(ucontext_t *context)
{
    const char *pc = told.pc;
#if defined(__x86_64__)
    greg_t *regs = context->uc_mcontext.gregs;
    regs[REG_RSP] -= 8; /* into the red zone of a function that will not go on */
    *(const char **)(uintptr_t)regs[REG_RSP] = pc;
    regs[REG_RIP] = (greg_t)(uintptr_t)tell;
    regs[REG_EFL] &= ~(greg_t)0x400; /* direction flag: clear at calls */
#elif defined(__aarch64__)
    context->uc_mcontext.regs[30] = (uint64_t)(uintptr_t)pc;
    context->uc_mcontext.sp &= ~(uint64_t)15;
    context->uc_mcontext.pc = (uint64_t)(uintptr_t)tell;
#endif
    /* No signal of the program's is for the copy. The kernel's set is this long, no more. */
    memset(&context->uc_sigmask, 0xff, 8);
}

static void become_copy(const struct access *access, ucontext_t *context)
{
    struct rlimit none = {0, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    setrlimit(RLIMIT_CORE, &none);
    told = *access;
    call_tell(context);
}

/* ---- in the process ---- */

static void sleep_ms(void)
{
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* No wait without end, nor one by an own hold: the thread may be anywhere. */
static bool try_lock(struct blyi_lock *lock)
{
    for (int i = 0; i < LOCK_MS; i++) {
        if (blyi_lock_try(lock))
            return true;
        sleep_ms();
    }
    return false;
}

static void emit(const struct access *access)
{
    struct blyi_probe probe = {.kind = BLYI_PROBE_HOST_ACCESS,
                               .card = access->card,
                               .address = access->address,
                               .aux = access->is_write,
                               .pc = access->pc};
    const struct blyi_block *block = NULL;
    const struct blyi_mapping *mapping = NULL;
    if (access->locked && access->of != NULL)
        block = blyi_block_find_locked(access->of, access->address);
    else if (access->locked)
        mapping = blyi_mapping_find_locked(access->address);
    if (block != NULL) {
        probe.site = block->site;
        probe.other = blyi_block_start(block);
        probe.asked = probe.size = block->asked;
        probe.backed = block->backed;
    } else if (mapping != NULL) {
        probe.site = mapping->physical->site;
        probe.other = mapping->node.key;
        probe.asked = probe.size = probe.backed = mapping->physical->size;
    }
    if (blyi_probe_on(BLYI_PROBE_HOST_ACCESS))
        blyi_probe_emit_slow(&probe);
}

/* 0 in the copy. It has no exit signal, so that the program's own waits do not meet it. */
static pid_t copy_process(void)
{
    return (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
}

/* False: it did not end well, or not in time. */
static bool wait_for_copy(pid_t copy)
{
    int status = -1;
    for (int i = 0; i < TELL_MS; i++) {
        pid_t got = waitpid(copy, &status, WNOHANG | __WALL);
        if (got == copy)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (got < 0 && errno != EINTR)
            return errno == ECHILD; /* somebody else's wait took it: it has ended */
        sleep_ms();
    }
    kill(copy, SIGKILL);
    while (waitpid(copy, &status, __WALL) < 0 && errno == EINTR)
        ;
    return false;
}

static void tell_briefly(const struct access *access, const char *why)
{
    char line[256], place[48];
    int n = snprintf(line, sizeof(line),
                     "belay: host code %s %s at 0x%" PRIxPTR ", the instruction at 0x%" PRIxPTR
                     "; the block and the stack could not be told: %s\n",
                     verb(access), place_text(access, place), access->address,
                     (uintptr_t)access->pc - 1, why);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* nobody listens */
}

/* False: no memory of ours. */
static bool find_place(struct access *access)
{
    const struct blyi_window *window = blyi_window_find(access->address);
    if (window == NULL || window->owner == BLYI_WINDOW_PINNED)
        return false;
    access->card = window->owner;
    if (window->owner == BLYI_WINDOW_VMM) {
        uint64_t entry = blyi_window_entry(window, access->address);
        int owner = blyi_entry_owner(entry);
        access->card = (entry & (BLYI_ENTRY_MAPPED | BLYI_ENTRY_AWAY)) && owner != BLYI_OWNER_HOST
                           ? owner
                           : -1;
        access->lock = &blyi_vmm.lock;
        return true;
    }
    access->of = blyi_card_get(window->owner);
    if (access->of == NULL)
        return false;
    access->lock = &access->of->lock;
    return true;
}

static void read_context(struct access *access, const ucontext_t *context)
{
    /* One behind the instruction's first byte: what reads return addresses looks one back. */
#if defined(__x86_64__)
    access->pc = (const char *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP] + 1;
    access->is_write = (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
    access->knows_write = true;
#elif defined(__aarch64__)
    access->pc = (const char *)(uintptr_t)context->uc_mcontext.pc + 1;
#endif
}

static bool watch(const siginfo_t *info, ucontext_t *context, bool fatal)
{
    struct access access = {.address = (uintptr_t)info->si_addr, .fatal = fatal};
    if (!find_place(&access) || __atomic_fetch_add(&n_reports, 1, __ATOMIC_RELAXED) >= REPORTS_MAX)
        return false;
    read_context(&access, context);
    access.pid = getpid();
    access.locked = try_lock(access.lock);
    emit(&access);
    pid_t copy = copy_process();
    if (copy == 0) {
        become_copy(&access, context);
        return true;
    }
    int error = errno;
    if (access.locked)
        blyi_lock_drop(access.lock);
    if (copy < 0)
        tell_briefly(&access, strerror(error));
    else if (!wait_for_copy(copy))
        tell_briefly(&access, "the copy of the process that does so failed or took too long");
    return false;
}

void blyi_host_access_watch(void)
{
    blyi_fault_watch(watch);
}
