/* SPDX-License-Identifier: Apache-2.0
 *
 * moment.c - where the streams of a card are.
 */
#include "npu/moment.h"

#include "base/fail.h"
#include "base/host.h"
#include "npu/card.h"
#include "npu/queue.h"
#include "npu/roll.h"

#define FIRST_ROOM 32u

static void *room_for(uint32_t n)
{
    struct blyi_moment *moment;
    return blyi_host_alloc(sizeof(*moment) + n * sizeof(moment->at[0]));
}

bly_status blyi_moment_take(const struct blyi_card *card, struct blyi_moment **out)
{
    *out = NULL;
    if (!blyi_roll_has_work(card))
        return BLY_OK;
    for (uint32_t room = FIRST_ROOM;; room *= 4) {
        struct blyi_moment *moment = room_for(room);
        if (moment == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY,
                             "card %d: no host memory to note where its streams are", card->id);
        uint32_t n = blyi_roll_moment(card, moment, room);
        if (n > 0 && n <= room) {
            *out = moment;
            return BLY_OK;
        }
        blyi_host_free(moment);
        if (n == 0)
            return BLY_OK;
    }
}

bool blyi_moment_passed(const struct blyi_moment *moment)
{
    for (uint32_t i = 0; moment != NULL && i < moment->n; i++) {
        struct blyi_stream *stream;
        if (blyi_stream_pin_any(moment->at[i].stream, &stream) != BLY_OK) {
            blyi_fail_clear();
            continue;
        }
        bool passed = blyi_queue_completed(stream) >= moment->at[i].position;
        blyi_stream_unpin(stream);
        if (!passed)
            return false;
    }
    return true;
}

void blyi_moment_wait(const struct blyi_moment *moment)
{
    for (uint32_t i = 0; moment != NULL && i < moment->n; i++) {
        struct blyi_stream *stream;
        if (blyi_stream_pin_any(moment->at[i].stream, &stream) == BLY_OK) {
            (void)blyi_queue_await(stream, moment->at[i].position, 0);
            blyi_stream_unpin(stream);
        }
        blyi_fail_clear();
    }
}
