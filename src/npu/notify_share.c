/* SPDX-License-Identifier: Apache-2.0
 *
 * notify_share.c - handing notifies to other processes.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "base/handle.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/notify.h"
#include "npu/peer.h"
#include "npu/signal.h"
#include "npu/snapshot.h"

_Static_assert(BLYI_NOTIFY_KEY == BLYI_SIGNAL_KEY && BLYI_NOTIFY_PIDS == BLYI_SIGNAL_PIDS,
               "keys and lists of one size");

/* Makes it a shared one when it is not. */
static bly_status need_signal(struct blyi_notify *notify)
{
    struct blyi_signal *signal = __atomic_load_n(&notify->signal, __ATOMIC_ACQUIRE);
    if (signal != NULL && !signal->is_maker)
        return blyi_fail(BLY_E_INVALID,
                         "notify %" PRIu32 " was imported: the process that made it exports it",
                         notify->id);
    if (signal != NULL)
        return BLY_OK;
    bly_status status = blyi_signal_create(BLYI_SIGNAL_NOTIFY, notify->card->id, &signal);
    if (status == BLY_OK && !blyi_notify_share(notify, signal))
        blyi_signal_unref(signal); /* another thread was quicker */
    return status;
}

bly_status blyi_notify_export(void *handle, bool for_all, char key[BLYI_NOTIFY_KEY])
{
    struct blyi_notify *notify;
    bly_status status = blyi_notify_pin(handle, false, &notify);
    if (status != BLY_OK)
        return status;
    status = need_signal(notify);
    if (status == BLY_OK) {
        if (for_all)
            blyi_signal_allow_all(notify->signal);
        blyi_signal_key(notify->signal, key);
    }
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_notify_allow(void *handle, const int32_t *pids, size_t n)
{
    struct blyi_notify *notify;
    bly_status status = blyi_notify_pin(handle, false, &notify);
    if (status != BLY_OK)
        return status;
    status = need_signal(notify);
    if (status == BLY_OK)
        status = blyi_signal_allow(notify->signal, pids, n);
    blyi_handle_put(handle);
    return status;
}

/* Public programs import another card's notify without the flag, so what counts is whether the
 * cards reach one another; the flag enables memory access besides. */
static bly_status check_card(const struct blyi_signal *signal, const struct blyi_card *card,
                             bool peer)
{
    int owner = blyi_signal_card(signal);
    if (owner == card->id)
        return BLY_OK;
    return peer ? blyi_peer_enable(card->id, owner) : blyi_peer_check(card->id, owner);
}

bly_status blyi_notify_import(const char *key, bool peer, uint32_t site, void **handle)
{
    struct blyi_context_here here;
    struct blyi_signal *signal;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_context_look(&here, site);
    if (status == BLY_OK)
        status = blyi_signal_open_key(key, &signal);
    if (status != BLY_OK)
        return status;
    status = check_card(signal, here.card, peer);
    if (status == BLY_OK)
        status = blyi_notify_make(here.card, false, site, signal, handle);
    if (status != BLY_OK)
        blyi_signal_unref(signal);
    return status;
}
