/* SPDX-License-Identifier: Apache-2.0
 *
 * known.c - what streams have waited for.
 */
#include "npu/known.h"

#include "base/lock.h"
#include "npu/event_inside.h"
#include "npu/queue.h"

bool blyi_known_wanted;
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_KNOWN); /* the rows of all streams */

void blyi_known_want(void)
{
    __atomic_store_n(&blyi_known_wanted, true, __ATOMIC_RELAXED);
}

static void add(struct blyi_stream *stream, uint32_t other, uint64_t position)
{
    uint32_t at = stream->n_known % BLYI_KNOWN_ROWS;
    for (uint32_t i = 0; i < BLYI_KNOWN_ROWS; i++)
        if (stream->known[i].stream == other)
            at = i;
    if (stream->known[at].stream != other)
        stream->n_known++;
    else if (stream->known[at].position >= position)
        return;
    stream->known[at] = (struct blyi_known){other, position};
}

void blyi_known_add(struct blyi_stream *stream, struct blyi_event *event)
{
    uint32_t other = 0;
    uint64_t position = 0;
    if (event->signal != NULL)
        return;
    blyi_lock_take(&event->lock);
    /* A wait for a legacy event is one for its flag, which an earlier record may have set. */
    bool tells = event->modern || event->n_records == 1;
    if (tells && event->stream != NULL) {
        other = event->stream->id;
        position = event->position;
    }
    blyi_lock_drop(&event->lock);
    if (other == 0 || other == stream->id)
        return;
    blyi_lock_take(&lock);
    add(stream, other, position);
    blyi_lock_drop(&lock);
}

bool blyi_known_has(const struct blyi_stream *stream, uint32_t other, uint64_t position)
{
    bool found = false;
    blyi_lock_take(&lock);
    for (uint32_t i = 0; i < BLYI_KNOWN_ROWS; i++)
        found |= stream->known[i].stream == other && stream->known[i].position >= position;
    blyi_lock_drop(&lock);
    return found;
}
