/* SPDX-License-Identifier: Apache-2.0
 *
 * reader.c - the growing arrays behind bly_plan_parse().
 */
#include "plan/read.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

/* Makes room for one more of `size` bytes. */
static bool grow(void **array, size_t used, size_t *room, size_t size)
{
    if (used < *room)
        return true;
    size_t more = *room * 2 + 64;
    void *bigger = blyi_host_realloc(*array, more * size);
    if (bigger == NULL)
        return false;
    *array = bigger;
    *room = more;
    return true;
}

static bly_status no_memory(const struct blyi_reader *r)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "reading buffer %zu: the host has no memory", r->n);
}

static bool add_name(struct blyi_reader *r, struct blyi_slice id)
{
    size_t need = r->names_used + id.length + 1;
    if (need > r->names_room) {
        size_t room = 2 * need + 64;
        char *names = blyi_host_realloc(r->names, room);
        if (names == NULL)
            return false;
        r->names = names;
        r->names_room = room;
    }
    if (id.length > 0)
        memcpy(r->names + r->names_used, id.at, id.length);
    r->names[need - 1] = '\0';
    r->names_used = need;
    return true;
}

/* Makes room for one more in each array of one value per buffer. */
static bool grow_all(struct blyi_reader *r)
{
    void *arrays[] = {r->buffers, r->id_at, r->streams};
    const size_t sizes[] = {sizeof(*r->buffers), sizeof(*r->id_at), sizeof(*r->streams)};
    size_t room = r->room;
    bool ready = true;
    for (size_t a = 0; ready && a < 3; a++) {
        room = r->room;
        ready = grow(&arrays[a], r->n, &room, sizes[a]);
    }
    r->buffers = arrays[0];
    r->id_at = arrays[1];
    r->streams = arrays[2];
    r->room = ready ? room : r->room;
    return ready;
}

bly_status blyi_reader_add(struct blyi_reader *r, const bly_plan_buffer *buffer,
                           struct blyi_slice id)
{
    if (!grow_all(r))
        return no_memory(r);
    r->id_at[r->n] = r->names_used;
    if (!add_name(r, id))
        return no_memory(r);
    r->streams[r->n] = 0;
    r->buffers[r->n++] = *buffer;
    return BLY_OK;
}

bly_status blyi_reader_add_gap(struct blyi_reader *r, const bly_plan_gap *gap)
{
    void *gaps = r->gaps;
    bool ready = grow(&gaps, r->n_gaps, &r->gaps_room, sizeof(*r->gaps));
    r->gaps = gaps;
    if (!ready)
        return no_memory(r);
    r->gaps[r->n_gaps++] = *gap;
    return BLY_OK;
}

bly_status blyi_reader_finish(struct blyi_reader *r, bly_status status, bool is_trace,
                              bly_plan_input *input)
{
    char **ids = NULL;
    if (status == BLY_OK) {
        ids = blyi_host_alloc((r->n + 1) * sizeof(*ids));
        status = ids == NULL ? no_memory(r) : BLY_OK;
    }
    if (status != BLY_OK) {
        blyi_host_free(r->buffers);
        blyi_host_free(r->id_at);
        blyi_host_free(r->streams);
        blyi_host_free(r->gaps);
        blyi_host_free(r->names);
        return status;
    }
    size_t gap = 0;
    for (size_t i = 0; i < r->n; i++) {
        ids[i] = r->names + r->id_at[i];
        r->buffers[i].gaps = r->buffers[i].n_gaps > 0 ? r->gaps + gap : NULL;
        gap += r->buffers[i].n_gaps;
    }
    blyi_host_free(r->id_at);
    *input = (bly_plan_input){r->n, r->buffers, ids, r->gaps, r->names, is_trace, r->streams};
    return BLY_OK;
}

void bly_plan_input_release(bly_plan_input *input)
{
    blyi_host_free(input->buffers);
    blyi_host_free(input->ids);
    blyi_host_free(input->gaps);
    blyi_host_free(input->streams);
    blyi_host_free(input->names);
    memset(input, 0, sizeof(*input));
}
