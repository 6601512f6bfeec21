/* SPDX-License-Identifier: Apache-2.0
 *
 * fail.c - one sentence per thread.
 *
 * Thread-local memory of the library is kept small: some of it is read on paths of a few ns and is
 * of the initial-exec model, so all of it comes out of the loader's static reserve when
 * libbelay.so is opened by dlopen. So a thread's sentence lies elsewhere. It must be there when
 * host memory has just run out: the first threads that fail take a place made beforehand, later
 * ones pages of their own, and one that gets none has a sentence that says so. A place is given
 * back when its thread ends.
 */
#include "base/fail.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PLACES 64

struct sentence {
    uint32_t is_taken;
    char text[BLYI_FAIL_MAX];
};

static struct sentence places[PLACES]; /* pages are touched as they are taken */
static _Thread_local struct {
    struct sentence *sentence; /* NULL: never failed */
    bly_status code;
    bool has_none; /* it failed, and there was no memory for a sentence */
} here;

static pthread_key_t key; /* its value is the thread's place: only for the end of the thread */
static bool has_key;

static void give_back(void *place)
{
    struct sentence *sentence = place;
    here.sentence = NULL;
    here.has_none = false;
    if (sentence >= places && sentence < places + PLACES)
        __atomic_store_n(&sentence->is_taken, 0, __ATOMIC_RELEASE);
    else
        (void)munmap(sentence, sizeof *sentence);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, give_back) == 0;
}

static struct sentence *take_place(void)
{
    for (int i = 0; i < PLACES; i++)
        if (!__atomic_exchange_n(&places[i].is_taken, 1, __ATOMIC_ACQUIRE))
            return &places[i];
    void *pages = mmap(NULL, sizeof(struct sentence), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* The thread's place; NULL: there is none to be had. */
static struct sentence *place_of_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (here.sentence != NULL)
        return here.sentence;
    pthread_once(&once, make_key);
    here.sentence = take_place();
    here.has_none = here.sentence == NULL;
    if (here.sentence != NULL) {
        here.sentence->text[0] = '\0';
        if (has_key)
            (void)pthread_setspecific(key, here.sentence);
    }
    return here.sentence;
}

void blyi_fail_put(bly_status code, const char *fmt, ...)
{
    int saved_errno = errno;
    char text[BLYI_FAIL_MAX]; /* the arguments may point into the sentence */
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof(text), fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    struct sentence *sentence = place_of_thread();
    if (sentence != NULL)
        memcpy(sentence->text, text, strlen(text) + 1);
    here.code = code;
    errno = saved_errno;
}

void blyi_fail_append(const char *fmt, ...)
{
    struct sentence *sentence = here.sentence;
    if (here.code == BLY_OK || sentence == NULL)
        return;
    int saved_errno = errno;
    char text[BLYI_FAIL_MAX];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof(text), fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    size_t used = strlen(sentence->text), room = sizeof(sentence->text) - used - 1;
    size_t more = strlen(text);
    if (more > room)
        more = room;
    memcpy(sentence->text + used, text, more);
    sentence->text[used + more] = '\0';
    errno = saved_errno;
}

const char *blyi_fail_text(void)
{
    if (here.sentence != NULL)
        return here.sentence->text;
    return here.has_none && here.code != BLY_OK
               ? "the host has no memory for the sentence of this error"
               : "";
}

bly_status blyi_fail_code(void)
{
    return here.code;
}

void blyi_fail_clear(void)
{
    here.code = BLY_OK;
    if (here.sentence != NULL)
        here.sentence->text[0] = '\0';
}

const char *bly_last_error(void)
{
    return blyi_fail_text();
}
