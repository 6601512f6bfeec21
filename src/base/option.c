/* SPDX-License-Identifier: Apache-2.0
 *
 * option.c - the values of the options, read from the environment at the first use.
 *
 * Options of this layer are put into effect here when somebody set them: LOG the level of
 * the log, VIRTUAL_CLOCK the clock, FAIL_HOST and FAIL_SYSTEM the failure to come, counted
 * from the moment the options are read and ENOMEM for system calls. Reading the options
 * itself is never failed by them.
 *
 * Lock OPTION guards the writing of values. Readers take no lock: a number is one atomic, and
 * a text that was replaced stays alive until blyi_option_reload(). Warnings are given after
 * the lock is dropped, since a sink of the log may ask for an option.
 */
#include "base/option.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/size.h"
#include "base/sys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PREFIX   "BELAY_"
#define FLAG_MAX 32
#define WHY_MAX  512

static struct blyi_option_info infos[] = {
#define OPTION_ROW(name, type, def, lo, hi, help)                                                  \
    {#name, PREFIX #name, NULL, def, help, BLYI_OPTION_##type, lo, hi},
    BLYI_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
};
static char flags[BLYI_OPTION_COUNT][FLAG_MAX];

/* A text that was set, in front of those it replaced. */
struct text {
    struct text *replaced;
    char chars[];
};

static struct {
    _Atomic int64_t number;
    _Atomic(struct text *) text; /* NULL: the default */
    atomic_bool is_set;
} values[BLYI_OPTION_COUNT];

static struct blyi_lock value_lock = BLYI_LOCK_INIT(BLYI_RANK_OPTION);
static atomic_bool loaded; /* release after the values were written */
static pthread_once_t flags_once = PTHREAD_ONCE_INIT;

static void make_flags(void)
{
    for (int i = 0; i < BLYI_OPTION_COUNT; i++) {
        const char *name = infos[i].name;
        bly_check(strlen(name) < FLAG_MAX);
        for (size_t j = 0; name[j]; j++) {
            int c = (unsigned char)name[j];
            if (c >= 'A' && c <= 'Z')
                c += 'a' - 'A';
            flags[i][j] = (char)(c == '_' ? '-' : c);
        }
        infos[i].flag = flags[i];
    }
}

/* The nth word of a choice's "a|b|c: help"; false when there is none. */
static bool choice_word(const struct blyi_option_info *info, int64_t n, const char **word,
                        size_t *length)
{
    const char *p = info->help;
    for (;; p += *length + 1) {
        *length = strcspn(p, "|:");
        if (n-- == 0) {
            *word = p;
            return true;
        }
        if (p[*length] != '|')
            return false;
    }
}

static bool parse_bool(const char *text, int64_t *number)
{
    static const char *const on[] = {"on", "1", "true", "yes"};
    static const char *const off[] = {"off", "0", "false", "no"};
    for (size_t i = 0; i < BLYI_COUNT(on); i++) {
        if (strcasecmp(text, on[i]) == 0 || strcasecmp(text, off[i]) == 0) {
            *number = strcasecmp(text, on[i]) == 0;
            return true;
        }
    }
    return false;
}

static bool parse_choice(const struct blyi_option_info *info, const char *text, int64_t *number)
{
    const char *word;
    size_t length;
    for (int64_t i = 0; choice_word(info, i, &word, &length); i++) {
        if (strlen(text) == length && strncasecmp(text, word, length) == 0) {
            *number = i;
            return true;
        }
    }
    return false;
}

static bool parse_int(const char *text, int64_t *number)
{
    const char *digits = text + (*text == '-');
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    *number = strtoll(text, NULL, 10);
    return errno == 0;
}

static bool parse_size(const char *text, int64_t *number)
{
    uint64_t bytes;
    if (!blyi_size_try_parse(text, &bytes))
        return false;
    /* 2^63 itself is above the bound of every option. */
    *number = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    return true;
}

/* Writes what a value of this option may be. */
static void word_allowed(const struct blyi_option_info *info, char *buf, size_t size)
{
    char low[BLYI_SIZE_TEXT], high[BLYI_SIZE_TEXT];
    switch (info->type) {
    case BLYI_OPTION_SIZE:
        snprintf(buf, size, "a size from %s to %s", blyi_size_short((uint64_t)info->min, low),
                 blyi_size_short((uint64_t)info->max, high));
        break;
    case BLYI_OPTION_INT:
        snprintf(buf, size, "a number from %" PRId64 " to %" PRId64, info->min, info->max);
        break;
    case BLYI_OPTION_BOOL:
        snprintf(buf, size, "on or off");
        break;
    case BLYI_OPTION_CHOICE:
        snprintf(buf, size, "one of %.*s", (int)strcspn(info->help, ":"), info->help);
        break;
    case BLYI_OPTION_TEXT:
        snprintf(buf, size, "any text");
        break;
    }
}

/* Reads a value. On failure `why` has the sentence; the thread's fail text is left alone,
 * because reading the environment must not disturb it. */
static bly_status parse(const struct blyi_option_info *info, const char *text, int64_t *number,
                        char why[WHY_MAX])
{
    bool readable = true, bounded = false;
    int64_t value = 0;
    switch (info->type) {
    case BLYI_OPTION_SIZE:
        readable = parse_size(text, &value);
        bounded = true;
        break;
    case BLYI_OPTION_INT:
        readable = parse_int(text, &value);
        bounded = true;
        break;
    case BLYI_OPTION_BOOL:
        readable = parse_bool(text, &value);
        break;
    case BLYI_OPTION_CHOICE:
        readable = parse_choice(info, text, &value);
        break;
    case BLYI_OPTION_TEXT:
        break;
    }
    bool inside = !bounded || (value >= info->min && value <= info->max);
    if (readable && inside) {
        *number = value;
        return BLY_OK;
    }
    char allowed[WHY_MAX / 2];
    word_allowed(info, allowed, sizeof(allowed));
    snprintf(why, WHY_MAX, "%s is \"%.128s\"; allowed is %s", info->variable, text, allowed);
    return readable ? BLY_E_INVALID : BLY_E_PARSE;
}

static struct text *new_text(const char *chars)
{
    size_t size = strlen(chars) + 1;
    struct text *text = blyi_host_alloc(sizeof(*text) + size);
    if (text != NULL) {
        text->replaced = NULL;
        memcpy(text->chars, chars, size);
    }
    return text;
}

static void store_locked(int option, int64_t number, struct text *text)
{
    bly_assert(blyi_lock_held(&value_lock));
    if (text != NULL) {
        text->replaced = atomic_load_explicit(&values[option].text, memory_order_relaxed);
        /* Release: who finds the text finds its characters. */
        atomic_store_explicit(&values[option].text, text, memory_order_release);
    }
    atomic_store_explicit(&values[option].number, number, memory_order_relaxed);
    atomic_store_explicit(&values[option].is_set, true, memory_order_relaxed);
}

static void put_into_effect(enum blyi_option option)
{
    int64_t number = atomic_load_explicit(&values[option].number, memory_order_relaxed);
    switch (option) {
    case BLYI_OPT_LOG:
        blyi_log_set_level((enum blyi_log_level)number);
        break;
    case BLYI_OPT_VIRTUAL_CLOCK:
        if (blyi_clock_is_virtual() != (number != 0)) /* set anew it would start anew */
            blyi_clock_set_virtual(number != 0);
        break;
    case BLYI_OPT_FAIL_HOST:
        blyi_host_fail_nth((uint64_t)number);
        break;
    case BLYI_OPT_FAIL_SYSTEM:
        blyi_sys_fail_nth((uint64_t)number, ENOMEM);
        break;
    default:
        break;
    }
}

/* An empty variable is as good as none. */
static const char *environment_of(int option)
{
    const char *value = getenv(infos[option].variable);
    return value && *value ? value : NULL;
}

static void load_locked(void)
{
    char why[WHY_MAX];
    for (int i = 0; i < BLYI_OPTION_COUNT; i++) {
        int64_t number = 0;
        bly_status status = parse(&infos[i], infos[i].def, &number, why);
        bly_check_msg(status == BLY_OK, "default of %s", why);
        atomic_store_explicit(&values[i].number, number, memory_order_relaxed);
        atomic_store_explicit(&values[i].is_set, false, memory_order_relaxed);

        const char *value = environment_of(i);
        if (value == NULL || parse(&infos[i], value, &number, why) != BLY_OK)
            continue;
        struct text *text = infos[i].type == BLYI_OPTION_TEXT ? new_text(value) : NULL;
        if (infos[i].type == BLYI_OPTION_TEXT && text == NULL)
            continue; /* warn_of_environment() tells */
        store_locked(i, number, text);
    }
    atomic_store_explicit(&loaded, true, memory_order_release);
}

static void warn_of_environment(void)
{
    char why[WHY_MAX];
    int64_t number;
    for (int i = 0; i < BLYI_OPTION_COUNT; i++) {
        const char *value = environment_of(i);
        if (value == NULL)
            continue;
        if (parse(&infos[i], value, &number, why) != BLY_OK)
            blyi_log(BLYI_LOG_WARN, "%s; the default \"%s\" stands", why, infos[i].def);
        else if (!atomic_load_explicit(&values[i].is_set, memory_order_relaxed))
            blyi_log(BLYI_LOG_WARN, "%s: no host memory for its value; the default \"%s\" stands",
                     infos[i].variable, infos[i].def);
    }
    for (char **entry = environ; entry && *entry; entry++) {
        char name[64];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, PREFIX, sizeof(PREFIX) - 1) != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63), *entry);
        if (blyi_option_find(name) < 0)
            blyi_log(BLYI_LOG_WARN, "%s is not an option of this version", name);
    }
}

static void load(void)
{
    pthread_once(&flags_once, make_flags);
    blyi_lock_take(&value_lock);
    bool mine = !atomic_load_explicit(&loaded, memory_order_relaxed);
    if (mine)
        load_locked();
    blyi_lock_drop(&value_lock);
    if (!mine)
        return;
    if (atomic_load(&values[BLYI_OPT_LOG].is_set))
        put_into_effect(BLYI_OPT_LOG); /* before the warnings */
    warn_of_environment();
    static const enum blyi_option ours[] = {BLYI_OPT_VIRTUAL_CLOCK, BLYI_OPT_FAIL_HOST,
                                            BLYI_OPT_FAIL_SYSTEM};
    for (size_t i = 0; i < BLYI_COUNT(ours); i++)
        if (atomic_load(&values[ours[i]].is_set))
            put_into_effect(ours[i]);
}

static void need_loaded(enum blyi_option option)
{
    bly_assert(option < BLYI_OPTION_COUNT);
    if (unlikely(!atomic_load_explicit(&loaded, memory_order_acquire)))
        load();
}

int64_t blyi_option_int(enum blyi_option option)
{
    need_loaded(option);
    return atomic_load_explicit(&values[option].number, memory_order_relaxed);
}

const char *blyi_option_text(enum blyi_option option)
{
    need_loaded(option);
    struct text *text = atomic_load_explicit(&values[option].text, memory_order_acquire);
    return text ? text->chars : infos[option].def;
}

bool blyi_option_is_default(enum blyi_option option)
{
    need_loaded(option);
    return !atomic_load_explicit(&values[option].is_set, memory_order_relaxed);
}

const struct blyi_option_info *blyi_option_info(enum blyi_option option)
{
    bly_assert(option < BLYI_OPTION_COUNT);
    pthread_once(&flags_once, make_flags);
    return &infos[option];
}

int blyi_option_find(const char *name)
{
    pthread_once(&flags_once, make_flags);
    for (int i = 0; i < BLYI_OPTION_COUNT; i++)
        if (strcmp(name, infos[i].name) == 0 || strcmp(name, infos[i].variable) == 0 ||
            strcmp(name, infos[i].flag) == 0)
            return i;
    return -1;
}

bly_status blyi_option_set(enum blyi_option option, const char *value)
{
    need_loaded(option);
    const struct blyi_option_info *info = &infos[option];
    char why[WHY_MAX];
    int64_t number = 0;
    bly_status status = parse(info, value, &number, why);
    if (status != BLY_OK)
        return blyi_fail(status, "%s", why);
    struct text *text = NULL;
    if (info->type == BLYI_OPTION_TEXT) {
        text = new_text(value);
        if (text == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu bytes, the value of %s",
                             strlen(value) + 1, info->variable);
    }
    blyi_lock_take(&value_lock);
    store_locked((int)option, number, text);
    blyi_lock_drop(&value_lock);
    put_into_effect(option);
    return BLY_OK;
}

/* "4KiB": the largest unit that divides the size. */
static void format_size(uint64_t bytes, char *buf, size_t size)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    for (; bytes > 0 && bytes % 1024 == 0 && i + 1 < BLYI_COUNT(units); i++)
        bytes /= 1024;
    snprintf(buf, size, "%" PRIu64 "%s", bytes, units[i]);
}

const char *blyi_option_format(enum blyi_option option, char *buf, size_t size)
{
    int64_t number = blyi_option_int(option);
    const char *word;
    size_t length;
    switch (infos[option].type) {
    case BLYI_OPTION_SIZE:
        format_size((uint64_t)number, buf, size);
        break;
    case BLYI_OPTION_INT:
        snprintf(buf, size, "%" PRId64, number);
        break;
    case BLYI_OPTION_BOOL:
        snprintf(buf, size, "%s", number ? "on" : "off");
        break;
    case BLYI_OPTION_CHOICE:
        if (choice_word(&infos[option], number, &word, &length))
            snprintf(buf, size, "%.*s", (int)length, word);
        break;
    case BLYI_OPTION_TEXT:
        snprintf(buf, size, "%s", blyi_option_text(option));
        break;
    }
    return buf;
}

void blyi_option_reload(void)
{
    blyi_lock_take(&value_lock);
    for (int i = 0; i < BLYI_OPTION_COUNT; i++) {
        struct text *text = atomic_exchange(&values[i].text, NULL);
        while (text != NULL) {
            struct text *replaced = text->replaced;
            blyi_host_free(text);
            text = replaced;
        }
    }
    atomic_store_explicit(&loaded, false, memory_order_release);
    blyi_lock_drop(&value_lock);
    load();
}
