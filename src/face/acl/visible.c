/* SPDX-License-Identifier: Apache-2.0
 *
 * visible.c - the list of visible devices.
 */
#include "face/acl/visible.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "npu/card.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int cards[BLYI_CARD_MAX];
static int n_visible;
static char text_kept[128] = "unset"; /* the environment may change later */

/* One entry up to ',' or the end; -1 when it is no card. */
static int parse_entry(const char **text, int n_cards)
{
    const char *at = *text;
    while (*at == ' ')
        at++;
    int id = isdigit((unsigned char)*at) ? 0 : -1;
    for (; isdigit((unsigned char)*at) && id < n_cards; at++)
        id = id * 10 + (*at - '0');
    while (*at == ' ')
        at++;
    if ((*at != ',' && *at != '\0') || id >= n_cards)
        return -1;
    *text = *at == ',' ? at + 1 : at;
    return id;
}

int blyi_visible_parse(const char *text, int n_cards, int out[])
{
    int n = 0;
    while (*text != '\0') {
        int id = parse_entry(&text, n_cards);
        if (id < 0)
            break;
        if (n > 0 && id <= out[n - 1])
            return 0;
        out[n++] = id;
    }
    return n;
}

static void read_environment(void)
{
    int n_cards = blyi_card_count();
    const char *text = getenv("ASCEND_RT_VISIBLE_DEVICES");
    if (text == NULL) {
        for (int i = 0; i < n_cards; i++)
            cards[i] = i;
        n_visible = n_cards;
        return;
    }
    size_t length = 0;
    for (; text[length] != '\0' && length < sizeof(text_kept) - 1; length++)
        text_kept[length] = text[length];
    text_kept[length] = '\0';
    n_visible = blyi_visible_parse(text, n_cards, cards);
    if (n_visible == 0)
        blyi_log(BLYI_LOG_WARN,
                 "ASCEND_RT_VISIBLE_DEVICES is '%s': no device is visible (a rising list of ids "
                 "0 .. %d is expected)",
                 text_kept, n_cards - 1);
}

int blyi_visible_count(void)
{
    pthread_once(&once, read_environment);
    return n_visible;
}

int blyi_visible_card(int user)
{
    return user >= 0 && user < blyi_visible_count() ? cards[user] : -1;
}

int blyi_visible_user(int card)
{
    int count = blyi_visible_count();
    for (int i = 0; i < count; i++) {
        if (cards[i] == card)
            return i;
    }
    return -1;
}

uint32_t blyi_visible_place(int card, int for_card)
{
    int user = blyi_visible_user(card);
    return (uint32_t)(user >= 0 ? user : blyi_visible_user(for_card));
}

const char *blyi_visible_text(void)
{
    (void)blyi_visible_count();
    return text_kept;
}
