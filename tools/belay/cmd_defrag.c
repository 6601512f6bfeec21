/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_defrag.c - gathers the free memory of a card that several processes use: each is asked to
 * move its own frames (service.h), one after the other.
 */
#include "command.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/size.h"
#include "npu/frame.h"
#include "npu/ledger.h"
#include "npu/ledger_view.h"
#include "npu/service.h"
#include "npu/tally.h"

#define TIMEOUT_S_MAX 60

struct order {
    int card;
    uint64_t want, timeout_ns;
    bool json;
};

struct run {
    uint64_t longest, giants, free; /* bytes */
};

struct answer {
    uint32_t pid;
    char name[BLYI_SLOT_NAME];
    enum blyi_asked how;
    struct blyi_answer answer;
};

struct outcome {
    struct run before, after;
    uint32_t n;
    struct answer answers[BLYI_SLOTS];
};

/* What the words of the card say. False: nobody ever used it. */
static bool read_run(int card, struct run *out)
{
    uint64_t row = 0, frames_a_giant = ((uint64_t)1 << 30) / BLYI_FRAME_SIZE, giant = 0;
    *out = (struct run){0};
    blyi_ledger_lock();
    const struct blyi_card_file *file = blyi_ledger_card_locked(card);
    for (uint32_t i = 0; file && i < file->n_frames; i++) {
        uint32_t word = __atomic_load_n(&file->words[i], __ATOMIC_RELAXED);
        bool is_free = (word & BLYI_FRAME_OWNER) == 0;
        row = is_free ? row + 1 : 0;
        giant = i % frames_a_giant == 0 ? is_free : is_free ? giant + 1 : 0;
        out->free += is_free * BLYI_FRAME_SIZE;
        if (row * BLYI_FRAME_SIZE > out->longest)
            out->longest = row * BLYI_FRAME_SIZE;
        if (giant == frames_a_giant && (i + 1) % frames_a_giant == 0)
            out->giants += frames_a_giant * BLYI_FRAME_SIZE;
    }
    blyi_ledger_unlock();
    return file != NULL;
}

static bool has_memory(uint32_t slot, int card)
{
    const struct blyi_slot_card *there = &blyi_ledger_slot_at(slot)->cards[card];
    return slot != blyi_ledger_slot() && blyi_ledger_in_use(slot) &&
           (__atomic_load_n(&there->live, __ATOMIC_RELAXED) > 0 ||
            __atomic_load_n(&there->overhead, __ATOMIC_RELAXED) > 0 ||
            __atomic_load_n(&there->unused, __ATOMIC_RELAXED) > 0);
}

static void ask_all(const struct order *order, struct outcome *out)
{
    struct blyi_request request = {.what = BLYI_ASK_DEFRAG,
                                   .card = order->card,
                                   .bytes = order->want,
                                   .timeout_ns = order->timeout_ns};
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        if (order->want != 0 && out->after.longest >= order->want)
            break;
        if (!has_memory(slot, order->card))
            continue;
        struct answer *answer = &out->answers[out->n++];
        answer->pid = blyi_ledger_slot_at(slot)->pid;
        blyi_slot_name(blyi_ledger_slot_at(slot), answer->name);
        answer->how = blyi_service_ask(slot, &request, &answer->answer);
        read_run(order->card, &out->after);
    }
}

/* E_IO, E_STATE: there is nothing to defragment, or no way to it. */
static bly_status carry_out(const struct order *order, struct outcome *out)
{
    struct blyi_ledger_view view;
    bly_status status = blyi_ledger_view(&view); /* so that none is made */
    if (status != BLY_OK)
        return status;
    bool used = false;
    for (uint32_t i = 0; i < view.n_slots; i++)
        used = used || view.slots[i].cards[order->card].fd >= 0;
    blyi_ledger_view_fini(&view);
    if (!used)
        return blyi_fail(BLY_E_STATE, "no process has card %d open", order->card);
    status = blyi_ledger_attach();
    if (status != BLY_OK)
        return status;
    if (!read_run(order->card, &out->before))
        return blyi_fail(BLY_E_STATE, "the words of card %d cannot be read", order->card);
    out->after = out->before;
    ask_all(order, out);
    return BLY_OK;
}

static bool is_reached(const struct order *order, const struct outcome *out)
{
    return out->after.longest >= order->want;
}

/* What a process could not do, or NULL. */
static const char *trouble(const struct answer *answer)
{
    if (answer->how != BLYI_ASKED_ANSWERED)
        return blyi_asked_text(answer->how);
    if (answer->answer.status == BLY_OK || answer->answer.status == BLY_E_NO_MEMORY)
        return NULL; /* the latter: the run is not there yet, which we see ourselves */
    if (answer->answer.status == BLY_E_TIMEOUT)
        return "could not pause its running tasks in time";
    return bly_status_text(answer->answer.status);
}

static void print_text(const struct order *order, const struct outcome *out)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT];
    printf("card %d: longest free run %s before, %s after; free %s\n", order->card,
           blyi_size_short(out->before.longest, a), blyi_size_short(out->after.longest, b),
           blyi_size_short(out->after.free, c));
    for (uint32_t i = 0; i < out->n; i++) {
        const struct answer *answer = &out->answers[i];
        printf("  pid %" PRIu32 " (%s): ", answer->pid, answer->name);
        if (answer->how == BLYI_ASKED_ANSWERED)
            printf("moved %s, of that %s with content; %s must stay where it is%s",
                   blyi_size_short(answer->answer.bytes, a),
                   blyi_size_short(answer->answer.copied, b),
                   blyi_size_short(answer->answer.fixed, c), trouble(answer) ? "; " : "");
        printf("%s\n", trouble(answer) ? trouble(answer) : "");
    }
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *run_json(const struct run *run)
{
    json_t *object = json_object();
    json_object_set_new(object, "longest_run", number(run->longest));
    json_object_set_new(object, "giants", number(run->giants));
    json_object_set_new(object, "free", number(run->free));
    return object;
}

static void print_json(const struct order *order, const struct outcome *out)
{
    json_t *root = json_object(), *list = json_array();
    for (uint32_t i = 0; i < out->n; i++) {
        const struct answer *answer = &out->answers[i];
        json_t *object = json_object();
        bool answered = answer->how == BLYI_ASKED_ANSWERED;
        json_object_set_new(object, "pid", number(answer->pid));
        json_object_set_new(object, "name", json_string(answer->name));
        json_object_set_new(object, "answered", json_boolean(answered));
        json_object_set_new(object, "trouble",
                            trouble(answer) ? json_string(trouble(answer)) : json_null());
        json_object_set_new(object, "moved", number(answer->answer.bytes));
        json_object_set_new(object, "copied", number(answer->answer.copied));
        json_object_set_new(object, "fixed", number(answer->answer.fixed));
        json_array_append_new(list, object);
    }
    json_object_set_new(root, "version", json_integer(1));
    json_object_set_new(root, "card", json_integer(order->card));
    json_object_set_new(root, "want", number(order->want));
    json_object_set_new(root, "reached", json_boolean(is_reached(order, out)));
    json_object_set_new(root, "before", run_json(&out->before));
    json_object_set_new(root, "after", run_json(&out->after));
    json_object_set_new(root, "processes", list);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

static bool parse_number(const char *text, long most, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return end != text && *end == '\0' && *value >= 0 && *value <= most;
}

/* The word that is not understood, or NULL. */
static const char *parse(int argc, char **argv, struct order *order)
{
    long number;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            order->json = true;
        } else if (strcmp(argv[i], "--want") == 0 && i + 1 < argc) {
            if (!blyi_size_try_parse(argv[++i], &order->want) || order->want == 0)
                return argv[i];
        } else if (strcmp(argv[i], "--timeout") == 0 && i + 1 < argc) {
            if (!parse_number(argv[++i], TIMEOUT_S_MAX, &number) || number == 0)
                return argv[i];
            order->timeout_ns = (uint64_t)number * 1000000000u;
        } else if (order->card < 0 && parse_number(argv[i], BLYI_LEDGER_CARDS - 1, &number)) {
            order->card = (int)number;
        } else {
            return argv[i];
        }
    }
    return NULL;
}

static int run(int argc, char **argv)
{
    static struct outcome out;
    struct order order = {.card = -1, .timeout_ns = (uint64_t)10 * 1000000000};
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    const char *wrong = parse(argc, argv, &order);
    if (wrong)
        return usage_error("defrag", "defrag: \"%s\" is not understood", wrong);
    if (order.card < 0)
        return usage_error("defrag", "defrag: which card?");
    if (carry_out(&order, &out) != BLY_OK) {
        say("defrag: %s", bly_last_error());
        return 1;
    }
    if (order.json)
        print_json(&order, &out);
    else
        print_text(&order, &out);
    int status = 0;
    for (uint32_t i = 0; i < out.n; i++)
        status |= trouble(&out.answers[i]) != NULL;
    if (is_reached(&order, &out))
        return status;
    say("defrag: the longest free run of card %d is %s of the %s wanted", order.card,
        blyi_size_short(out.after.longest, a), blyi_size_short(order.want, b));
    return 1;
}

const struct command command_defrag = {
    .name = "defrag",
    .usage = "CARD [--want SIZE] [--timeout SECONDS] [--json]",
    .summary = "Gather the free memory of a card, across processes.",
    .help =
        "Asks each process that has memory of the card to move its frames to the card's low end,\n"
        "one process after the other. Addresses stay; running tasks pause for a moment. What is\n"
        "contiguous, of 1 GiB pages, exported or the runtime's own stays where it is.\n"
        "\n"
        "  --want SIZE        stop when a free run is as long; 1 if it cannot be had\n"
        "  --timeout SECONDS  for each process, 1 .. 60; default 10. One that has not begun "
        "within\n"
        "                     2 s (it may be stopped) is left out\n"
        "  --json             for scripts; sizes in bytes\n"
        "\n"
        "The status is 1 as well when a process did not answer.\n"
        "\n"
        "example: belay defrag 0 --want 1GiB\n",
    .run = run,
};
