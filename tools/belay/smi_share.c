/* SPDX-License-Identifier: Apache-2.0 */
#include "smi_share.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/size.h"

#define SHARES_TOLD 8 /* a card, in text */

/* "pid 12 (serve)"; somebody who ended, by number alone. False: he has. */
static bool print_who(const struct blyi_ledger_view *view, uint32_t slot, uint32_t pid)
{
    const struct blyi_slot *there = blyi_view_slot(view, slot);
    bool lives = there && there->pid == pid;
    printf("pid %" PRIu32 " (%s)", pid, lives ? there->name : "ended");
    return lives;
}

static bool holds(const struct blyi_share_info *share, uint32_t slot)
{
    return (share->holders[slot / 64] >> (slot % 64)) & 1;
}

static void print_share(const struct blyi_ledger_view *view, const struct blyi_share_info *share)
{
    char size[BLYI_SIZE_TEXT];
    const char *before = ", open in ";
    printf("  %s exported by ", blyi_size_short(share->bytes, size));
    bool lives = print_who(view, share->maker_slot, share->maker_pid);
    for (uint32_t i = 0; i < view->n_slots; i++) {
        if (view->numbers[i] == share->maker_slot || !holds(share, view->numbers[i]))
            continue;
        printf("%spid %" PRIu32 " (%s)", before, view->slots[i].pid, view->slots[i].name);
        before = ", ";
    }
    /* Of the dead it follows, whether or not somebody has cleared up after them. */
    printf("%s\n", share->made_free && lives ? "; its maker has freed it" : "");
}

/* Larger first, then in the order of the records. */
static bool comes_before(const struct blyi_share_info *a, const struct blyi_share_info *b)
{
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->index < b->index;
}

/* The first of a card's behind `last` (NULL: of all), or NULL. */
static const struct blyi_share_info *next_of(const struct blyi_ledger_view *view, int card,
                                             const struct blyi_share_info *last)
{
    const struct blyi_share_info *next = NULL;
    for (uint32_t i = 0; i < view->n_shares; i++) {
        const struct blyi_share_info *share = &view->shares[i];
        if (share->card == card && (!last || comes_before(last, share)) &&
            (!next || comes_before(share, next)))
            next = share;
    }
    return next;
}

void smi_print_shares(const struct blyi_ledger_view *view, int card)
{
    const struct blyi_share_info *share = next_of(view, card, NULL);
    uint64_t rest = 0;
    uint32_t n = 0;
    char size[BLYI_SIZE_TEXT];
    for (int i = 0; i < SHARES_TOLD && share; i++, share = next_of(view, card, share))
        print_share(view, share);
    for (uint32_t i = 0; i < view->n_shares && share; i++) {
        const struct blyi_share_info *other = &view->shares[i];
        if (other->card != card || comes_before(other, share))
            continue;
        rest += other->bytes;
        n++;
    }
    if (n > 0)
        printf("  %s in %" PRIu32 " smaller export%s (--json has them)\n",
               blyi_size_short(rest, size), n, n == 1 ? "" : "s");
}

static json_t *share_json(const struct blyi_ledger_view *view, const struct blyi_share_info *share)
{
    json_t *object = json_object(), *open_in = json_array();
    json_object_set_new(object, "card", json_integer(share->card));
    json_object_set_new(object, "asked", json_integer((json_int_t)share->asked));
    json_object_set_new(object, "bytes", json_integer((json_int_t)share->bytes));
    json_object_set_new(object, "kind", json_string(share->physical ? "handle" : "block"));
    json_object_set_new(object, "exported_by", json_integer(share->maker_pid));
    json_object_set_new(object, "freed_by_maker", json_boolean(share->made_free));
    for (uint32_t i = 0; i < view->n_slots; i++)
        if (view->numbers[i] != share->maker_slot && holds(share, view->numbers[i]))
            json_array_append_new(open_in, json_integer(view->slots[i].pid));
    json_object_set_new(object, "open_in", open_in);
    return object;
}

json_t *smi_shares_json(const struct blyi_ledger_view *view, int card)
{
    json_t *exports = json_array();
    for (uint32_t i = 0; i < view->n_shares; i++)
        if (card < 0 || view->shares[i].card == card)
            json_array_append_new(exports, share_json(view, &view->shares[i]));
    return exports;
}
