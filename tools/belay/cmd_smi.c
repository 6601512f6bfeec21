/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_smi.c - cards, processes and who holds what, as the shared state says. Joins nothing and
 * changes nothing.
 */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/size.h"
#include "base/symtab.h"
#include "npu/frame.h"
#include "npu/ledger_view.h"
#include "npu/state.h"
#include "smi_share.h"

#define PLACES_TOLD 3 /* a process, in text */

static const char *const kinds[BLYI_ROW_KINDS][2] = {[BLYI_ROW_BLOCK] = {"block", "blocks"},
                                                     [BLYI_ROW_HANDLE] = {"handle", "handles"},
                                                     [BLYI_ROW_STREAM] = {"stream", "streams"},
                                                     [BLYI_ROW_EVENT] = {"event", "events"},
                                                     [BLYI_ROW_IMPORT] = {"import", "imports"}};

/* What the processes on a card have together. */
struct sums {
    uint64_t live, idle, overhead, unused, streams, events, notifies;
    uint32_t processes;
};

static bool is_on(const struct blyi_slot_card *card)
{
    return card->fd >= 0;
}

static struct sums sum_up(const struct blyi_ledger_view *view, int card)
{
    struct sums sums = {0};
    for (uint32_t i = 0; i < view->n_slots; i++) {
        const struct blyi_slot_card *there = &view->slots[i].cards[card];
        if (!is_on(there))
            continue;
        sums.processes++;
        sums.live += there->live;
        sums.idle += there->idle;
        sums.overhead += there->overhead;
        sums.unused += there->unused;
        sums.streams += there->streams;
        sums.events += there->events;
        sums.notifies += there->notifies;
    }
    return sums;
}

static uint64_t age_s(uint64_t began_ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return ns > began_ns ? (ns - began_ns) / 1000000000u : 0;
}

static uint64_t free_of(const struct blyi_view_card *card, const struct sums *sums)
{
    return card->free * BLYI_FRAME_SIZE + sums->unused;
}

/* Rows of a slot on a card that still hold something, the largest first. */
static size_t list_rows(const struct blyi_slot *slot, int card,
                        const struct blyi_slot_row *rows[BLYI_SLOT_ROWS])
{
    size_t n = 0;
    for (uint32_t i = 0; i < BLYI_SLOT_ROWS; i++) {
        const struct blyi_slot_row *row = &slot->rows[i];
        if (row->kind == BLYI_ROW_NONE || row->kind >= BLYI_ROW_KINDS || row->card != card ||
            row->count == 0)
            continue;
        size_t at = n++;
        while (at > 0 && (rows[at - 1]->bytes < row->bytes || (rows[at - 1]->bytes == row->bytes &&
                                                               rows[at - 1]->count < row->count))) {
            rows[at] = rows[at - 1];
            at--;
        }
        rows[at] = row;
    }
    return n;
}

static void print_place(uint32_t pid, const struct blyi_slot_row *row)
{
    char name[BLYI_SYMTAB_NAME], module[BLYI_SYMTAB_MODULE], size[BLYI_SIZE_TEXT];
    uint64_t offset;
    printf("            ");
    if (row->bytes > 0)
        printf("%s in ", blyi_size_short(row->bytes, size));
    printf("%" PRIu64 " %s made at ", row->count, kinds[row->kind][row->count != 1]);
    if (blyi_symtab_find_in(pid, row->pc, name, &offset, module))
        printf("%s+0x%" PRIx64 " (%s)\n", name, offset, module);
    else
        printf("0x%" PRIx64 " (%s)\n", row->pc, module[0] ? module : "unknown");
}

static void print_process(const struct blyi_slot *slot, int card)
{
    const struct blyi_slot_card *there = &slot->cards[card];
    const struct blyi_slot_row *rows[BLYI_SLOT_ROWS];
    char live[BLYI_SIZE_TEXT], idle[BLYI_SIZE_TEXT], overhead[BLYI_SIZE_TEXT];
    char unused[BLYI_SIZE_TEXT], imported[BLYI_SIZE_TEXT], peak[BLYI_SIZE_TEXT];
    printf("  %8" PRIu32 "  %-16.31s %11s %11s %11s %11s %11s %11s %8" PRIu32 " %7" PRIu32
           " %7" PRIu64 " s\n",
           slot->pid, slot->name, blyi_size_short(there->live, live),
           blyi_size_short(there->idle, idle), blyi_size_short(there->overhead, overhead),
           blyi_size_short(there->unused, unused), blyi_size_short(there->imported, imported),
           blyi_size_short(there->peak, peak), there->streams, there->events,
           age_s(slot->began_ns));
    if (there->away > 0)
        printf("            backed up: %s are in host memory, not on the card\n",
               blyi_size_short(there->away * BLYI_FRAME_SIZE, live));
    if (there->pool_held > 0)
        printf("            %s in memory pools, of that %s in no block\n",
               blyi_size_short(there->pool_held, live), blyi_size_short(there->pool_idle, idle));
    size_t n = list_rows(slot, card, rows);
    for (size_t i = 0; i < n && i < PLACES_TOLD; i++)
        print_place(slot->pid, rows[i]);
    if (n > PLACES_TOLD)
        printf("            and from %zu more places (--json has them)\n", n - PLACES_TOLD);
}

static void print_card(const struct blyi_ledger_view *view, int id)
{
    const struct blyi_view_card *card = &view->cards[id];
    struct sums sums = sum_up(view, id);
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    printf("card %d: %s, %s\n", id, card->model,
           blyi_size_text(card->n_frames * BLYI_FRAME_SIZE, a));
    printf("  free %s, longest run %s; peak use %s; %" PRIu64 " streams, %" PRIu64
           " events, %" PRIu64 " notifies\n",
           blyi_size_text(free_of(card, &sums), a),
           blyi_size_short(card->longest * BLYI_FRAME_SIZE, b),
           blyi_size_short((card->n_frames - card->least_free) * BLYI_FRAME_SIZE, c), sums.streams,
           sums.events, sums.notifies);
    if (card->shared > 0)
        printf("  shared between processes: %s\n",
               blyi_size_text(card->shared * BLYI_FRAME_SIZE, d));
    smi_print_shares(view, id);
    if (sums.processes == 0)
        return;
    printf("  %8s  %-16s %11s %11s %11s %11s %11s %11s %8s %7s %9s\n", "pid", "name", "live",
           "idle", "overhead", "part pages", "imported", "peak", "streams", "events", "since");
    for (uint32_t i = 0; i < view->n_slots; i++)
        if (is_on(&view->slots[i].cards[id]))
            print_process(&view->slots[i], id);
}

static bool is_wanted(const struct blyi_ledger_view *view, int id, int only)
{
    return view->cards[id].made && (only < 0 || only == id);
}

static void print_text(const struct blyi_ledger_view *view, const char *path, int only)
{
    int n = 0;
    printf("state %s: %" PRIu32 " process%s%s\n", path, view->n_slots,
           view->n_slots == 1 ? "" : "es",
           view->steady ? "" : "; they were busy while this was read, so sums may not add up");
    for (int id = 0; id < (int)BLYI_LEDGER_CARDS; id++) {
        if (!is_wanted(view, id, only) || sum_up(view, id).processes == 0)
            continue;
        putchar('\n');
        print_card(view, id);
        n++;
    }
    if (n == 0)
        printf("no process has %s open\n", only < 0 ? "a card" : "this card");
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *row_json(const struct blyi_slot *slot, const struct blyi_slot_row *row)
{
    char name[BLYI_SYMTAB_NAME] = "", module[BLYI_SYMTAB_MODULE];
    uint64_t offset = 0;
    bool known = blyi_symtab_find_in(slot->pid, row->pc, name, &offset, module);
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(kinds[row->kind][0]));
    json_object_set_new(object, "bytes", number(row->bytes));
    json_object_set_new(object, "count", number(row->count));
    json_object_set_new(object, "pc", number(row->pc));
    json_object_set_new(object, "function", known ? json_string(name) : json_null());
    json_object_set_new(object, "offset", number(offset));
    json_object_set_new(object, "module", module[0] ? json_string(module) : json_null());
    return object;
}

static json_t *slot_card_json(const struct blyi_slot *slot, int id)
{
    const struct blyi_slot_card *there = &slot->cards[id];
    const struct blyi_slot_row *rows[BLYI_SLOT_ROWS];
    json_t *object = json_object(), *holders = json_array();
    json_object_set_new(object, "card", json_integer(id));
    json_object_set_new(object, "live", number(there->live));
    json_object_set_new(object, "idle", number(there->idle));
    json_object_set_new(object, "pool_held", number(there->pool_held));
    json_object_set_new(object, "pool_idle", number(there->pool_idle));
    json_object_set_new(object, "overhead", number(there->overhead));
    json_object_set_new(object, "unused", number(there->unused));
    json_object_set_new(object, "imported", number(there->imported));
    json_object_set_new(object, "shared", number(there->shared));
    json_object_set_new(object, "backed_up", number(there->away * BLYI_FRAME_SIZE));
    json_object_set_new(object, "peak", number(there->peak));
    json_object_set_new(object, "contexts", number(there->contexts));
    json_object_set_new(object, "streams", number(there->streams));
    json_object_set_new(object, "events", number(there->events));
    json_object_set_new(object, "notifies", number(there->notifies));
    size_t n = list_rows(slot, id, rows);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(holders, row_json(slot, rows[i]));
    json_object_set_new(object, "holders", holders);
    return object;
}

static json_t *slot_json(const struct blyi_slot *slot, int only)
{
    json_t *object = json_object(), *cards = json_array();
    json_object_set_new(object, "pid", number(slot->pid));
    json_object_set_new(object, "name", json_string(slot->name));
    json_object_set_new(object, "age_s", number(age_s(slot->began_ns)));
    json_object_set_new(object, "cap", number(slot->cap));
    json_object_set_new(object, "live", number(slot->live));
    json_object_set_new(object, "peak", number(slot->peak));
    for (int id = 0; id < (int)BLYI_LEDGER_CARDS; id++)
        if (is_on(&slot->cards[id]) && (only < 0 || only == id))
            json_array_append_new(cards, slot_card_json(slot, id));
    json_object_set_new(object, "cards", cards);
    return object;
}

static json_t *card_json(const struct blyi_ledger_view *view, int id)
{
    const struct blyi_view_card *card = &view->cards[id];
    struct sums sums = sum_up(view, id);
    json_t *object = json_object();
    json_object_set_new(object, "card", json_integer(id));
    json_object_set_new(object, "model", json_string(card->model));
    json_object_set_new(object, "total", number(card->n_frames * BLYI_FRAME_SIZE));
    json_object_set_new(object, "free", number(free_of(card, &sums)));
    json_object_set_new(object, "longest_run", number(card->longest * BLYI_FRAME_SIZE));
    json_object_set_new(object, "peak",
                        number((card->n_frames - card->least_free) * BLYI_FRAME_SIZE));
    json_object_set_new(object, "backed", number(card->committed * BLYI_FRAME_SIZE));
    json_object_set_new(object, "processes", number(sums.processes));
    json_object_set_new(object, "live", number(sums.live));
    json_object_set_new(object, "idle", number(sums.idle));
    json_object_set_new(object, "overhead", number(sums.overhead));
    json_object_set_new(object, "unused", number(sums.unused));
    json_object_set_new(object, "shared", number(card->shared * BLYI_FRAME_SIZE));
    json_object_set_new(object, "streams", number(sums.streams));
    json_object_set_new(object, "events", number(sums.events));
    json_object_set_new(object, "notifies", number(sums.notifies));
    return object;
}

static void print_json(const struct blyi_ledger_view *view, const char *path, int only)
{
    json_t *root = json_object(), *cards = json_array(), *processes = json_array();
    for (int id = 0; id < (int)BLYI_LEDGER_CARDS; id++)
        if (is_wanted(view, id, only) && sum_up(view, id).processes > 0)
            json_array_append_new(cards, card_json(view, id));
    for (uint32_t i = 0; i < view->n_slots; i++)
        json_array_append_new(processes, slot_json(&view->slots[i], only));
    json_object_set_new(root, "version", json_integer(1));
    json_object_set_new(root, "state", json_string(path));
    json_object_set_new(root, "steady", json_boolean(view->steady));
    json_object_set_new(root, "cards", cards);
    json_object_set_new(root, "processes", processes);
    json_object_set_new(root, "exports", smi_shares_json(view, only));
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

static bool parse(int argc, char **argv, bool *json, int *only)
{
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        if (strcmp(argv[i], "--json") == 0)
            *json = true;
        else if (strcmp(argv[i], "--card") == 0 && i + 1 < argc)
            *only = (int)strtol(argv[++i], &end, 10);
        else
            return false;
        if (end && (*end != '\0' || *only < 0 || *only >= (int)BLYI_LEDGER_CARDS))
            return false;
    }
    return true;
}

static int run(int argc, char **argv)
{
    bool json = false;
    int only = -1;
    char path[BLYI_STATE_PATH];
    struct blyi_ledger_view view = {.steady = true};
    if (!parse(argc, argv, &json, &only))
        return usage_error("smi", "smi: \"%s\" is not understood", argv[argc - 1]);
    bly_status status = blyi_state_path(path);
    /* Where nobody ever was there is nothing to be read; where we may not look there may be. */
    if (status == BLY_OK && (path[0] == '\0' || access(path, F_OK) == 0 || errno != ENOENT))
        status = blyi_ledger_view(&view);
    if (status != BLY_OK) {
        say("%s", bly_last_error());
        return 1;
    }
    if (json)
        print_json(&view, path, only);
    else
        print_text(&view, path, only);
    blyi_ledger_view_fini(&view);
    return 0;
}

const struct command command_smi = {
    .name = "smi",
    .usage = "[--card N] [--json]",
    .summary = "Show cards, processes on them, and who holds what.",
    .help =
        "Reads the shared state (BELAY_STATE) without taking part in it. The first lines are of\n"
        "the whole card, the table is of single processes:\n"
        "\n"
        "  live        memory in blocks and handles, whole pages\n"
        "  idle        of that, kept by pools for reuse\n"
        "  overhead    of the runtime, for each process on the card\n"
        "  part pages  unused pages of frames that small blocks share; the card counts them as "
        "free\n"
        "  imported    memory of other processes that is open here; it counts where it was made\n"
        "  peak        of live\n"
        "  backed up   content in host memory, with frames given back "
        "(aclrtSnapShotProcessBackup)\n"
        "\n"
        "  --card N    this card only\n"
        "  --json      everything, for scripts; sizes in bytes\n"
        "\n"
        "example: belay smi\n",
    .run = run,
};
