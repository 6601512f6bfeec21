/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_stacks.c - rows of sites, innermost first: lines of a script, then frames of the
 * machine.
 */
#include <string.h>

#include "base/frame.h"
#include "base/host.h"
#include "base/site.h"
#include "observe/recorder_inside.h"

struct stack {
    struct stack *next;
    uint32_t id, n;
    uint32_t sites[];
};

static struct stack *find_stack(uint64_t hash, const uint32_t *sites, uint32_t n)
{
    struct stack *stack = blyi_map_get(&blyi_rec.stacks, hash);
    while (stack != NULL && (stack->n != n || memcmp(stack->sites, sites, n * sizeof(*sites)) != 0))
        stack = stack->next;
    return stack;
}

static bly_status add_stack(uint64_t hash, const uint32_t *sites, uint32_t n, uint32_t *id)
{
    struct stack *stack = blyi_host_alloc(sizeof(*stack) + n * sizeof(*sites));
    if (stack == NULL)
        return BLY_OK;
    stack->next = blyi_map_get(&blyi_rec.stacks, hash);
    stack->id = blyi_rec.n_stacks + 1;
    stack->n = n;
    memcpy(stack->sites, sites, n * sizeof(*sites));
    if (blyi_map_put(&blyi_rec.stacks, hash, stack) != BLY_OK) {
        blyi_host_free(stack);
        return BLY_OK;
    }
    blyi_rec.n_stacks++;
    *id = stack->id;
    for (uint32_t i = 0; i < n; i++) {
        bly_status status = blyi_rec_site_locked(sites[i]);
        if (status != BLY_OK)
            return status;
    }
    uint32_t head[2] = {stack->id, n};
    return blyi_recfile_meta(&blyi_rec.file, BLYI_TRACE_META_STACK, head, sizeof(head), sites,
                             n * sizeof(*sites));
}

/* The frames of the machine from `start` on; those of the library stand before the program's call.
 * Behind lines of a script those of its interpreter are left out. */
static uint32_t add_frames(void *const *pcs, size_t n, const void *start, uint32_t *sites,
                           uint32_t depth)
{
    bool has_lines = depth > 0;
    size_t first = 0;
    while (first < n && pcs[first] != start)
        first++;
    for (; first < n && depth < blyi_rec.stack_depth; first++) {
        if (has_lines && blyi_frames_hidden(pcs[first]))
            continue;
        sites[depth] = blyi_site_intern(pcs[first]);
        if (sites[depth] == 0)
            break;
        depth++;
    }
    return depth;
}

static uint32_t add_lines(const bly_frames *frames, uint32_t *sites)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < frames->n && depth < blyi_rec.stack_depth; i++)
        if (blyi_line_of_site(frames->lines[i]) != NULL)
            sites[depth++] = frames->lines[i];
    return depth;
}

bly_status blyi_rec_stack_locked(void *const *pcs, size_t n, uint32_t site, uint32_t *id)
{
    uint32_t sites[BLYI_TRACE_STACK_MAX], depth = 0;
    struct blyi_frames_here here;
    const void *start = blyi_site_pc(site);
    *id = 0;
    if (blyi_frames_here(site, &here)) {
        depth = add_lines(here.frames, sites);
        start = here.code;
    }
    if (site != 0)
        depth = add_frames(pcs, n, start, sites, depth);
    if (depth == 0)
        return BLY_OK;
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < depth; i++)
        hash = (hash ^ sites[i]) * 0x100000001b3u;
    hash ^= hash >> 31;
    const struct stack *known = find_stack(hash, sites, depth);
    if (known == NULL)
        return add_stack(hash, sites, depth, id);
    *id = known->id;
    return BLY_OK;
}

void blyi_rec_stacks_reset_locked(void)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&blyi_rec.stacks, &cursor, &key, &value))
        for (struct stack *stack = value, *next; stack != NULL; stack = next) {
            next = stack->next;
            blyi_host_free(stack);
        }
    blyi_map_fini(&blyi_rec.stacks);
    blyi_map_init(&blyi_rec.stacks);
    blyi_rec.n_stacks = 0;
}
