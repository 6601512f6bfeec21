/* SPDX-License-Identifier: Apache-2.0
 *
 * defrag.c - moves frames to the low end of a card while nobody touches them.
 *
 *   frames   [used][free][used][free][free][used][used]
 *               a     ^     b     ^           c     d       lowest free <- highest that may move
 *   after    [ a ][ d ][ b ][ c ][free][free][free]
 *
 * Runs are kept together as far as the gap is long enough, so that mappings do not shatter. One
 * batch: the gate is closed (gate.h), then VMM and CARD are held; the owner of each frame is found
 * anew, since work went on between two batches.
 */
#include "npu/defrag.h"
#include "npu/bits.h"
#include "npu/card.h"
#include "npu/copy.h"
#include "npu/gate.h"
#include "npu/maps.h"
#include "npu/mem_block.h"
#include "npu/runtime.h"
#include "npu/share_inside.h"
#include "npu/snapshot.h"
#include "npu/vmm_inside.h"
#include "npu/wait.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/site.h"
#include "base/size.h"
#include "base/stat.h"
#include "base/sys.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define BATCH           64u
#define DEFAULT_TIMEOUT ((uint64_t)10 * 1000000000)

enum owner { OWNER_NONE, OWNER_FIXED, OWNER_WINDOW, OWNER_PHYSICAL };

/* Who has a frame, and which of its frames it is. */
struct frame {
    enum owner owner;
    uintptr_t address;              /* WINDOW */
    struct blyi_physical *physical; /* PHYSICAL */
    uint32_t index;
};

struct plan {
    struct blyi_card *card;
    struct frame *frames;
    uint64_t *free; /* a bit per frame, as a batch found them; others may take some meanwhile */
    uint32_t n;
    char *scratch; /* room to map a batch twice, at a frame's alignment: whole huge pages */
    uint64_t moved, copied;
};

static bool is_fixed_block(const struct blyi_block *block)
{
    return block->hold.generation != 0 || block->page_kind == BLYI_PAGE_GIANT ||
           (block->flags & BLYI_MEM_CONTIGUOUS);
}

static bool is_fixed_physical(const struct blyi_physical *p)
{
    return p->hold.generation != 0 || p->page_kind == BLYI_PAGE_GIANT || p->contiguous;
}

static void add_fixed(struct blyi_fixed *out, uint64_t bytes, uint32_t site, const char *why)
{
    out->bytes += bytes;
    out->count++;
    if (bytes > out->largest) {
        out->largest = bytes;
        out->site = site;
        out->why = why;
    }
}

void blyi_fixed_locked(struct blyi_card *card, struct blyi_fixed *out)
{
    *out = (struct blyi_fixed){0};
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node)) {
        const struct blyi_block *block = blyi_block_of(node);
        if (is_fixed_block(block))
            add_fixed(out, block->backed, block->site,
                      block->hold.generation != 0           ? "exported"
                      : block->page_kind == BLYI_PAGE_GIANT ? "1 GiB pages"
                                                            : "contiguous");
    }
    BLYI_LIST_FOR(node, &card->physicals)
    {
        const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
        if (is_fixed_physical(p))
            add_fixed(out, p->size, p->site,
                      p->hold.generation != 0 ? p->imported ? "imported" : "exported"
                      : p->contiguous         ? "contiguous"
                                              : "1 GiB pages");
    }
    if (card->overhead_frames > 0)
        add_fixed(out, card->overhead_frames * BLYI_FRAME_SIZE, 0, "the runtime's own");
}

static void note_block(struct plan *plan, const struct blyi_block *block)
{
    const struct blyi_window *w = plan->card->window;
    uint32_t n = block->whole + (block->pages > 0);
    uintptr_t at = blyi_align_down(blyi_block_start(block), BLYI_GRANULE);
    for (uint32_t i = 0; i < n; i++, at += BLYI_GRANULE) {
        struct frame *frame = &plan->frames[blyi_entry_frame(blyi_window_entry(w, at))];
        if (frame->owner == OWNER_FIXED) /* a tail is fixed when one of its blocks is */
            continue;
        frame->owner = is_fixed_block(block) ? OWNER_FIXED : OWNER_WINDOW;
        frame->address = at;
    }
}

static void note_physical(struct plan *plan, struct blyi_physical *p)
{
    uint32_t index = 0;
    for (uint32_t r = 0; r < p->n_runs; r++)
        for (uint32_t i = 0; i < p->runs[r].count; i++)
            plan->frames[p->runs[r].first + i] =
                (struct frame){.owner = is_fixed_physical(p) ? OWNER_FIXED : OWNER_PHYSICAL,
                               .physical = p,
                               .index = index++};
}

/* Frames that nobody below claims are the runtime's, or other processes': fixed. */
static void find_owners_locked(struct plan *plan)
{
    struct blyi_card *card = plan->card;
    blyi_ipc_settle_locked(card);
    memset(plan->frames, 0, plan->n * sizeof *plan->frames);
    blyi_stock_snapshot(card->stock, plan->free);
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node))
        note_block(plan, blyi_block_of(node));
    BLYI_LIST_FOR(node, &card->physicals)
    note_physical(plan, BLYI_CONTAINER(node, struct blyi_physical, link));
    BLYI_LIST_FOR(node, &card->tails)
    plan->frames[BLYI_CONTAINER(node, struct blyi_tail, link)->partial->frame].owner = OWNER_FIXED;
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->frames[i].owner == OWNER_NONE && !blyi_bits_get(plan->free, i))
            plan->frames[i].owner = OWNER_FIXED;
}

/* Whether frame i + 1 follows frame i in the same holder, so that both can move as one. */
static bool follows(const struct plan *plan, uint32_t i)
{
    const struct frame *a = &plan->frames[i], *b = &plan->frames[i + 1];
    if (a->owner != b->owner)
        return false;
    if (a->owner == OWNER_WINDOW)
        return a->address + BLYI_GRANULE == b->address;
    return a->owner == OWNER_PHYSICAL && a->physical == b->physical && a->index + 1 == b->index;
}

static void *map_scratch(void *at, int fd, uint32_t first, uint32_t n, int prot)
{
    return blyi_sys_mmap(at, n * BLYI_FRAME_SIZE, prot, MAP_SHARED | MAP_FIXED, fd,
                         (off_t)(first * BLYI_FRAME_SIZE));
}

/* The content of committed frames, through mappings of its own: nobody's rights are needed. What
 * is mapped there stays until the next copy. */
static bly_status copy_frames(struct plan *plan, uint32_t from, uint32_t to, uint32_t n)
{
    struct blyi_backing *backing = plan->card->backing;
    int fd = blyi_backing_fd(backing);
    size_t size = n * BLYI_FRAME_SIZE;
    char *src = plan->scratch, *dst = src + BATCH * BLYI_FRAME_SIZE;
    if (map_scratch(src, fd, from, n, PROT_READ) == MAP_FAILED ||
        map_scratch(dst, fd, to, n, PROT_READ | PROT_WRITE) == MAP_FAILED)
        return blyi_maps_refused("defragmentation", size, errno);
    bly_status status = blyi_backing_commit(backing, to, n, dst);
    if (status != BLY_OK)
        return status;
    blyi_copy_bytes(dst, src, size);
    plan->copied += size;
    return BLY_OK;
}

static bly_status copy_content(struct plan *plan, uint32_t from, uint32_t to, uint32_t n)
{
    bly_status status = BLY_OK;
    uint32_t same;
    for (uint32_t i = 0; i < n && status == BLY_OK; i += same) {
        bool committed;
        same = blyi_backing_span(plan->card->backing, from + i, n - i, &committed);
        if (committed)
            status = copy_frames(plan, from + i, to + i, same);
    }
    return status;
}

/* Addresses of all mappings of a handle lead to the new frames, or none does. */
static bly_status remap_physical(struct plan *plan, const struct frame *first, uint32_t from,
                                 uint32_t to, uint32_t n)
{
    int fd = blyi_backing_fd(plan->card->backing);
    struct blyi_list *mappings = &first->physical->mappings;
    uint64_t offset = first->index * BLYI_GRANULE;
    bly_status status = BLY_OK;
    struct blyi_list *node = mappings->next;
    for (; node != mappings && status == BLY_OK; node = node->next) {
        const struct blyi_mapping *m = BLYI_CONTAINER(node, struct blyi_mapping, link);
        if (m->mapped)
            status = blyi_window_remap(blyi_vmm.window, m->node.key + offset, fd, to, n);
    }
    if (status == BLY_OK)
        return BLY_OK;
    for (node = node->prev->prev; node != mappings; node = node->prev) {
        const struct blyi_mapping *m = BLYI_CONTAINER(node, struct blyi_mapping, link);
        bool back = !m->mapped;
        for (int i = 0; i < 3 && !back; i++) /* room for it was there a moment ago */
            back = blyi_window_remap(blyi_vmm.window, m->node.key + offset, fd, from, n) == BLY_OK;
        bly_check_msg(back, "the kernel refuses to map frames back to 0x%" PRIx64, m->node.key);
    }
    return status;
}

static void note_moved(struct plan *plan, uint32_t from, uint32_t to, uint32_t n)
{
    struct blyi_partials *partials = plan->card->partials;
    for (uint32_t i = 0; i < n; i++) {
        struct blyi_partial *partial = blyi_partial_of(partials, from + i);
        if (partial && plan->frames[from + i].owner == OWNER_WINDOW)
            blyi_partial_move(partials, partial, to + i);
        plan->frames[to + i] = plan->frames[from + i];
        plan->frames[from + i].owner = OWNER_NONE;
    }
    plan->moved += n * BLYI_FRAME_SIZE;
}

static bly_status move_locked(struct plan *plan, uint32_t from, uint32_t to, uint32_t n)
{
    struct blyi_card *card = plan->card;
    const struct frame *first = &plan->frames[from];
    struct blyi_run *runs = NULL;
    uint32_t n_runs = 0;
    blyi_bits_clear(plan->free, to, to + n);
    if (!blyi_stock_take_at(card->stock, to, n)) /* another process was quicker */
        return BLY_OK;
    bly_status status = copy_content(plan, from, to, n);
    if (status == BLY_OK && first->owner == OWNER_PHYSICAL)
        status = blyi_physical_runs_with(first->physical, first->index, to, n, &runs, &n_runs);
    if (status == BLY_OK)
        status = first->owner == OWNER_PHYSICAL
                     ? remap_physical(plan, first, from, to, n)
                     : blyi_window_remap(card->window, first->address,
                                         blyi_backing_fd(card->backing), to, n);
    if (status != BLY_OK) {
        blyi_host_free(runs);
        blyi_run_give(card, (struct blyi_run){to, n});
        return status;
    }
    if (runs) {
        struct blyi_physical *p = first->physical;
        blyi_host_free(p->runs);
        p->runs = runs;
        p->n_runs = p->max_runs = n_runs;
    }
    note_moved(plan, from, to, n);
    blyi_run_give(card, (struct blyi_run){from, n});
    return BLY_OK;
}

/* One batch. *more: there is something left to move. */
static bly_status batch_locked(struct plan *plan, bool *more)
{
    uint32_t low = 0, high = plan->n, moved = 0;
    find_owners_locked(plan);
    *more = false;
    for (;;) {
        while (low < high && !blyi_bits_get(plan->free, low))
            low++;
        while (high > low && plan->frames[high - 1].owner != OWNER_WINDOW &&
               plan->frames[high - 1].owner != OWNER_PHYSICAL)
            high--;
        if (low >= high)
            return BLY_OK;
        if (moved >= BATCH) {
            *more = true;
            return BLY_OK;
        }
        uint32_t gap = 1, n = 1, limit = BATCH - moved;
        while (gap < limit && low + gap < high && blyi_bits_get(plan->free, low + gap))
            gap++;
        while (n < gap && high - n > low + gap && follows(plan, high - n - 1))
            n++;
        bly_status status = move_locked(plan, high - n, low, n);
        if (status != BLY_OK)
            return status;
        moved += n;
    }
}

static void read_run(struct blyi_card *card, uint64_t *run, uint64_t *giants)
{
    struct blyi_stock_figures figures;
    blyi_stock_figures(card->stock, &figures);
    *run = figures.longest * BLYI_FRAME_SIZE;
    *giants = figures.giants * GiB;
}

static bly_status run_batch(struct plan *plan, uint64_t timeout_ns, bool *more)
{
    bly_status status = blyi_gate_close(timeout_ns);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_vmm.lock);
    blyi_card_lock(plan->card);
    status = batch_locked(plan, more);
    blyi_backing_settle(plan->card->backing);
    blyi_card_unlock(plan->card);
    blyi_lock_drop(&blyi_vmm.lock);
    blyi_gate_open();
    return status;
}

static bly_status not_reached(struct blyi_card *card, const bly_defrag *d)
{
    struct blyi_fixed fixed;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], e[BLYI_SIZE_TEXT];
    char site[BLYI_SITE_TEXT];
    blyi_card_lock(card);
    blyi_fixed_locked(card, &fixed);
    bly_status status = blyi_fail(
        BLY_E_NO_MEMORY, "card %d: the longest run of free frames is %s of the %s wanted, free %s",
        card->id, blyi_size_text(d->run_after, a), blyi_size_text(d->want, b),
        blyi_size_text(blyi_stock_free(card->stock) * BLYI_FRAME_SIZE, c));
    blyi_card_unlock(card);
    if (fixed.count > 0)
        blyi_fail_append("; %s in %" PRIu64 " pieces must stay where they are, the largest %s (%s)"
                         " %s%s",
                         blyi_size_text(fixed.bytes, e), fixed.count,
                         blyi_size_text(fixed.largest, a), fixed.why, fixed.site ? "made at " : "",
                         fixed.site ? blyi_site_text(fixed.site, site) : "");
    return status;
}

static bly_status defrag(struct blyi_card *card, bly_defrag *d)
{
    struct plan plan = {.card = card, .n = (uint32_t)(card->total / BLYI_FRAME_SIZE)};
    bly_status status = BLY_OK;
    plan.frames = blyi_host_calloc(plan.n, sizeof *plan.frames);
    plan.free = blyi_host_calloc(BLYI_BITS_WORDS(plan.n), sizeof *plan.free);
    if (!plan.frames || !plan.free) {
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory to list %u frames", plan.n);
        goto free;
    }
    size_t room = (2 * BATCH + 1) * BLYI_FRAME_SIZE;
    void *scratch =
        blyi_sys_mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (scratch == MAP_FAILED) {
        status = blyi_maps_refused("defragmentation", room, errno);
        goto free;
    }
    plan.scratch = (char *)blyi_align_up((uintptr_t)scratch, BLYI_FRAME_SIZE);
    uint64_t timeout = d->timeout_ns != 0 ? d->timeout_ns : DEFAULT_TIMEOUT;
    for (bool more = true; more && status == BLY_OK;) {
        read_run(card, &d->run_after, &d->giants_after);
        if (d->want != 0 && d->run_after >= d->want)
            break;
        status = run_batch(&plan, timeout, &more);
    }
    blyi_sys_munmap(scratch, room);
    d->moved = plan.moved;
    d->copied = plan.copied;
    blyi_stat_add(BLYI_STAT_defrag_bytes, plan.moved);

free:
    blyi_host_free(plan.free);
    blyi_host_free(plan.frames);
    return status;
}

static bly_status find_card(int id, struct blyi_card **card)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    *card = blyi_card_get(id);
    if (*card)
        return BLY_OK;
    if (id < 0 || id >= blyi_card_count())
        return blyi_fail(BLY_E_DEVICE, "no card %d: there are %d, numbered from 0", id,
                         blyi_card_count());
    return blyi_fail(BLY_E_STATE, "card %d is not in use by this process", id);
}

bly_status bly_card_defrag(bly_defrag *out)
{
    struct blyi_card *card;
    struct blyi_fixed fixed;
    if (!out || out->struct_size < 24)
        return blyi_fail(BLY_E_INVALID, "bly_card_defrag: %s",
                         out ? "struct_size is below 24" : "defrag is NULL");
    bly_defrag d = {0};
    memcpy(&d, out, out->struct_size < sizeof d ? out->struct_size : sizeof d);
    bly_status status = find_card(d.card, &card);
    if (status == BLY_OK)
        status = blyi_snapshot_check_present("defragmentation");
    if (status != BLY_OK)
        return status;
    uint64_t began = blyi_wait_real_ns();
    read_run(card, &d.run_before, &d.giants_before);
    status = defrag(card, &d);
    read_run(card, &d.run_after, &d.giants_after);
    blyi_card_lock(card);
    blyi_fixed_locked(card, &fixed);
    blyi_card_unlock(card);
    d.fixed = fixed.bytes;
    d.time_ns = blyi_wait_real_ns() - began;
    if (status == BLY_OK && d.want > d.run_after)
        status = not_reached(card, &d);
    memcpy(out, &d, out->struct_size < sizeof d ? out->struct_size : sizeof d);
    return status;
}

bly_status bly_card_info(int id, bly_card *info)
{
    struct blyi_card *card;
    struct blyi_fixed fixed;
    struct blyi_mem_figures figures;
    struct blyi_vmm_figures vmm;
    if (!info || info->struct_size < 8)
        return blyi_fail(BLY_E_INVALID, "bly_card_info: %s",
                         info ? "struct_size is below 8" : "info is NULL");
    bly_status status = find_card(id, &card);
    if (status != BLY_OK)
        return status;
    blyi_mem_figures(card, &figures);
    blyi_vmm_figures(id, &vmm);
    blyi_card_lock(card);
    blyi_fixed_locked(card, &fixed);
    blyi_card_unlock(card);
    bly_card out = {.struct_size = info->struct_size,
                    .card = id,
                    .total = figures.total,
                    .free = figures.free,
                    .longest_run = figures.largest_run,
                    .free_giants = figures.giant_free,
                    .live = figures.live,
                    .blocks = figures.blocks,
                    .handles = figures.handles,
                    .handle_bytes = figures.physical,
                    .orphans = figures.orphans,
                    .orphan_bytes = figures.orphan_bytes,
                    .ranges = vmm.reservations,
                    .reserved = vmm.reserved,
                    .mappings = vmm.mappings,
                    .mapped = vmm.mapped,
                    .fixed = fixed.bytes};
    memcpy(info, &out, info->struct_size < sizeof out ? info->struct_size : sizeof out);
    return BLY_OK;
}
