/* SPDX-License-Identifier: Apache-2.0
 *
 * frame.c - see frame.h. A line's address with a bit that no address of the machine has stands in
 * the table of sites in place of a return address.
 */
#include "base/frame.h"

#include <link.h>
#include <string.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/site.h"
#include "base/utf8.h"

#define LINE_BIT ((uintptr_t)1 << 63)

static struct blyi_lock lock =
    BLYI_LOCK_INIT(BLYI_RANK_SITE); /* guards `lines` and, to write, `hidden` */
static struct blyi_map lines;       /* hash -> struct blyi_line */
static atomic_uint wanted = 1;

atomic_bool blyi_frames_used;

static _Thread_local struct blyi_frames_here here;

/* ── Lines ────────────────────────────────────────────────────────────────────────────────── */

static size_t clean(char to[BLYI_FRAME_TEXT], const char *from)
{
    const unsigned char *p = (const unsigned char *)from, *end = p + strlen(from);
    size_t n = 0;
    while (p < end) {
        size_t length = blyi_utf8_length(p, end);
        size_t taken = length > 0 ? length : 1;
        if (n + taken >= BLYI_FRAME_TEXT)
            break;
        bool plain = length > 1 || (length == 1 && *p >= ' ' && *p != 0x7f);
        memcpy(to + n, plain ? (const char *)p : "?", plain ? taken : 1);
        n += taken;
        p += taken;
    }
    to[n] = '\0';
    return n;
}

static uint64_t hash_of(const char *function, const char *file, uint32_t number)
{
    uint64_t hash = 0xcbf29ce484222325u ^ number;
    for (; *function != '\0'; function++)
        hash = (hash ^ (unsigned char)*function) * 0x100000001b3u;
    for (hash = (hash ^ '\n') * 0x100000001b3u; *file != '\0'; file++)
        hash = (hash ^ (unsigned char)*file) * 0x100000001b3u;
    return hash ^ hash >> 31;
}

static struct blyi_line *line_new(const char *function, size_t function_size, const char *file,
                                  size_t file_size, uint32_t number)
{
    struct blyi_line *line = blyi_host_alloc(sizeof(*line) + function_size + file_size);
    if (line == NULL)
        return NULL;
    char *texts = (char *)(line + 1);
    memcpy(texts, function, function_size);
    memcpy(texts + function_size, file, file_size);
    line->function = texts;
    line->file = texts + function_size;
    line->number = number;
    atomic_init(&line->code, NULL);
    return line;
}

static struct blyi_line *find_or_add_locked(uint64_t hash, const char *function, size_t n_function,
                                            const char *file, size_t n_file, uint32_t number)
{
    struct blyi_line *first = blyi_map_get(&lines, hash), *line = first;
    while (line != NULL && (line->number != number || strcmp(line->function, function) != 0 ||
                            strcmp(line->file, file) != 0))
        line = line->next;
    if (line != NULL)
        return line;
    line = line_new(function, n_function + 1, file, n_file + 1, number);
    if (line == NULL)
        return NULL;
    line->next = first;
    if (blyi_map_put(&lines, hash, line) == BLY_OK)
        return line;
    blyi_host_free(line);
    return NULL;
}

uint32_t bly_frame(const char *function, const char *file, uint32_t number)
{
    char clean_function[BLYI_FRAME_TEXT], clean_file[BLYI_FRAME_TEXT];
    if (function == NULL || file == NULL)
        return 0;
    size_t n_function = clean(clean_function, function), n_file = clean(clean_file, file);
    uint64_t hash = hash_of(clean_function, clean_file, number);
    blyi_lock_take(&lock);
    struct blyi_line *line =
        find_or_add_locked(hash, clean_function, n_function, clean_file, n_file, number);
    blyi_lock_drop(&lock);
    return line ? blyi_site_intern((const void *)((uintptr_t)line | LINE_BIT)) : 0;
}

const struct blyi_line *blyi_line_of_key(const void *key)
{
    uintptr_t bits = (uintptr_t)key;
    return bits & LINE_BIT ? (const struct blyi_line *)(bits & ~LINE_BIT) : NULL;
}

/* ── The thread ───────────────────────────────────────────────────────────────────────────── */

const bly_frames *bly_frames_set(const bly_frames *frames)
{
    const bly_frames *before = here.frames;
    here.frames = frames;
    if (!atomic_load_explicit(&blyi_frames_used, memory_order_relaxed))
        atomic_store_explicit(&blyi_frames_used, true, memory_order_relaxed);
    return before;
}

uint32_t blyi_frames_site(const void *code)
{
    struct blyi_frames_here *mine = &here;
    const bly_frames *frames = mine->frames;
    const struct blyi_line *line =
        frames != NULL && frames->n > 0 ? blyi_line_of_site(frames->lines[0]) : NULL;
    if (line == NULL)
        return blyi_site_intern(code);
    if (unlikely(atomic_load_explicit(&line->code, memory_order_relaxed) == NULL))
        atomic_store_explicit(&((struct blyi_line *)(uintptr_t)line)->code, code,
                              memory_order_relaxed);
    mine->code = code;
    return frames->lines[0];
}

bool blyi_frames_here(uint32_t site, struct blyi_frames_here *out)
{
    *out = here;
    return site != 0 && out->frames != NULL && out->frames->n > 0 && out->frames->lines[0] == site;
}

/* ── Modules that are left out ────────────────────────────────────────────────────────────── */

#define HIDDEN_MAX 8

struct span {
    uintptr_t from, to;
};
static struct span hidden[HIDDEN_MAX];
static atomic_uint n_hidden; /* release after the span is written */

struct search {
    uintptr_t code;
    struct span found;
};

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    struct span span = {UINTPTR_MAX, 0};
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t to = from + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0)
            continue;
        span.from = from < span.from ? from : span.from;
        span.to = to > span.to ? to : span.to;
    }
    if (search->code < span.from || search->code >= span.to)
        return 0;
    search->found = span;
    return 1;
}

bool blyi_frames_hidden(const void *code)
{
    unsigned n = atomic_load_explicit(&n_hidden, memory_order_acquire);
    for (unsigned i = 0; i < n; i++)
        if ((uintptr_t)code >= hidden[i].from && (uintptr_t)code < hidden[i].to)
            return true;
    return false;
}

bly_status bly_frames_hide(const void *code)
{
    struct search search = {.code = (uintptr_t)code};
    bly_status status = BLY_OK;
    if (dl_iterate_phdr(find_module, &search) == 0)
        return blyi_fail(BLY_E_INVALID, "%p is not in a module's code", code);
    blyi_lock_take(&lock);
    unsigned n = atomic_load_explicit(&n_hidden, memory_order_relaxed);
    if (blyi_frames_hidden(code)) {
        ;
    } else if (n == HIDDEN_MAX) {
        status = blyi_fail(BLY_E_STATE, "frames of %d modules are left out already", HIDDEN_MAX);
    } else {
        hidden[n] = search.found;
        atomic_store_explicit(&n_hidden, n + 1, memory_order_release);
    }
    blyi_lock_drop(&lock);
    return status;
}

void blyi_frames_want(uint32_t depth)
{
    atomic_store_explicit(&wanted, depth > 0 ? depth : 1, memory_order_relaxed);
}

uint32_t bly_frames_wanted(void)
{
    return atomic_load_explicit(&wanted, memory_order_relaxed);
}
