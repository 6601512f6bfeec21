/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.c - groups of cards, read once from the option, and a bit per ordered pair.
 */
#include "npu/peer.h"
#include "npu/card.h"
#include "npu/runtime.h"
#include "base/fail.h"
#include "base/option.h"
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static uint64_t reach[BLYI_CARD_MAX]; /* bit per card that shares a switch; written once */
static bly_status parsed;
static uint64_t enabled[BLYI_CARD_MAX]; /* atomic, relaxed: flags that order nothing */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* "12" at *text; -1 when it is no card. */
static int parse_id(const char **text)
{
    int id = 0;
    if (!isdigit((unsigned char)**text))
        return -1;
    for (; isdigit((unsigned char)**text) && id < BLYI_CARD_MAX; (*text)++)
        id = id * 10 + (**text - '0');
    return id < BLYI_CARD_MAX ? id : -1;
}

/* "0-3,4-7": groups; a card that none names stands alone. */
static bool parse_groups(const char *text)
{
    uint64_t named = 0;
    for (;;) {
        int first = parse_id(&text), last = first;
        if (first >= 0 && *text == '-') {
            text++;
            last = parse_id(&text);
        }
        if (first < 0 || last < first)
            return false;
        uint64_t group = 0;
        for (int i = first; i <= last; i++)
            group |= (uint64_t)1 << i;
        if (group & named)
            return false;
        named |= group;
        for (int i = first; i <= last; i++)
            reach[i] = group;
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
}

static void read_option(void)
{
    const char *text = blyi_option_text(BLYI_OPT_PEER);
    bool all = strcmp(text, "on") == 0 || text[0] == '\0';
    for (int i = 0; i < BLYI_CARD_MAX; i++)
        reach[i] = all ? UINT64_MAX : (uint64_t)1 << i;
    parsed = all || strcmp(text, "off") == 0 || parse_groups(text) ? BLY_OK : BLY_E_PARSE;
}

static bly_status ready(void)
{
    pthread_once(&once, read_option);
    if (likely(parsed == BLY_OK))
        return BLY_OK;
    return blyi_fail(BLY_E_PARSE,
                     "BELAY_PEER '%s' is neither on, off, nor groups of cards such as 0-3,4-7",
                     blyi_option_text(BLYI_OPT_PEER));
}

bly_status blyi_peer_can(int card, int peer, bool *can)
{
    bly_status status = blyi_runtime_check();
    if (status == BLY_OK)
        status = ready();
    if (status == BLY_OK)
        *can = (reach[card] >> peer & 1) != 0;
    return status;
}

bly_status blyi_peer_check(int card, int peer)
{
    bool can;
    bly_status status = blyi_peer_can(card, peer, &can);
    if (status == BLY_OK && !can)
        status = blyi_fail(BLY_E_UNSUPPORTED,
                           "card %d cannot reach the memory of card %d: BELAY_PEER is '%s'", card,
                           peer, blyi_option_text(BLYI_OPT_PEER));
    return status;
}

bly_status blyi_peer_enable(int card, int peer)
{
    bly_status status = blyi_peer_check(card, peer);
    if (status == BLY_OK)
        __atomic_fetch_or(&enabled[card], (uint64_t)1 << peer, __ATOMIC_RELAXED);
    return status;
}

void blyi_peer_disable(int card, int peer)
{
    __atomic_fetch_and(&enabled[card], ~((uint64_t)1 << peer), __ATOMIC_RELAXED);
}

bool blyi_peer_enabled(int card, int peer)
{
    return (__atomic_load_n(&enabled[card], __ATOMIC_RELAXED) >> peer & 1) != 0;
}

bly_status blyi_peer_use(int accessor, int owner)
{
    if (likely(accessor == owner || blyi_peer_enabled(accessor, owner)))
        return BLY_OK;
    bool can;
    if (blyi_peer_can(accessor, owner, &can) == BLY_OK && !can)
        return blyi_fail(BLY_E_FAULT,
                         "card %d cannot reach the memory of card %d: BELAY_PEER is '%s'", accessor,
                         owner, blyi_option_text(BLYI_OPT_PEER));
    return blyi_fail(BLY_E_FAULT,
                     "card %d has no access to the memory of card %d: it was not enabled "
                     "(aclrtDeviceEnablePeerAccess, on card %d)",
                     accessor, owner, accessor);
}

void blyi_peer_reset(void)
{
    for (int i = 0; i < BLYI_CARD_MAX; i++)
        __atomic_store_n(&enabled[i], 0, __ATOMIC_RELAXED);
}
