/* SPDX-License-Identifier: Apache-2.0
 *
 * message.c - a ring of lines, one per thread, or one for all when err_msg_mode is "1".
 *
 * A thread's ring is made at its first error and freed when the thread ends.
 * Lock: `process_lock` (rank FACE) guards the ring of the process; nothing is called under it.
 */
#include "face/acl/message.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/host.h"
#include "base/lock.h"

struct ring {
    char *lines[BLYI_MESSAGE_KEPT]; /* lines[(next - 1) % KEPT] is the newest */
    uint32_t next, count;
};

struct thread_messages {
    struct ring ring;
    char *answer; /* what the last take returned */
};

static struct blyi_lock process_lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static struct ring process_ring;
static bool is_shared; /* atomic: set by aclInit, read by every error */

static pthread_key_t thread_key;
static bool has_key;

static void ring_clear(struct ring *ring)
{
    /* At no moment does it name a freed line: the child of a fork may find it in the middle. */
    __atomic_store_n(&ring->count, 0, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < BLYI_MESSAGE_KEPT; i++)
        blyi_host_free(__atomic_exchange_n(&ring->lines[i], NULL, __ATOMIC_SEQ_CST));
}

static void thread_free(void *arg)
{
    struct thread_messages *messages = arg;
    ring_clear(&messages->ring);
    blyi_host_free(messages->answer);
    blyi_host_free(messages);
}

static void make_key(void)
{
    has_key = pthread_key_create(&thread_key, thread_free) == 0;
}

/* NULL when the host has no memory, or (make false) when the thread had no error yet. */
static struct thread_messages *thread_messages(bool make)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (!has_key)
        return NULL;
    struct thread_messages *messages = pthread_getspecific(thread_key);
    if (messages != NULL || !make)
        return messages;
    messages = blyi_host_calloc(1, sizeof(*messages));
    if (messages != NULL && pthread_setspecific(thread_key, messages) != 0) {
        blyi_host_free(messages);
        messages = NULL;
    }
    return messages;
}

static char *ring_push(struct ring *ring, char *line)
{
    char **slot = &ring->lines[ring->next % BLYI_MESSAGE_KEPT];
    char *dropped = __atomic_exchange_n(slot, line, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ring->next, ring->next + 1, __ATOMIC_SEQ_CST);
    if (ring->count < BLYI_MESSAGE_KEPT)
        __atomic_store_n(&ring->count, ring->count + 1, __ATOMIC_SEQ_CST);
    return dropped;
}

/* The joined text, or NULL when there is none or no memory (the lines stay then). */
static char *ring_join(const struct ring *ring)
{
    size_t size = 0;
    for (uint32_t i = 0; i < ring->count; i++)
        size += strlen(ring->lines[(ring->next - 1 - i) % BLYI_MESSAGE_KEPT]) + 1;
    char *text = size == 0 ? NULL : blyi_host_alloc(size);
    if (text == NULL)
        return NULL;
    char *end = text;
    for (uint32_t i = 0; i < ring->count; i++) {
        const char *line = ring->lines[(ring->next - 1 - i) % BLYI_MESSAGE_KEPT];
        size_t length = strlen(line);
        memcpy(end, line, length);
        end += length;
        *end++ = '\n';
    }
    end[-1] = '\0';
    return text;
}

void blyi_message_add(const char *line)
{
    char *copy = blyi_host_strdup(line);
    if (copy == NULL)
        return;
    if (__atomic_load_n(&is_shared, __ATOMIC_RELAXED)) {
        blyi_lock_take(&process_lock);
        copy = ring_push(&process_ring, copy);
        blyi_lock_drop(&process_lock);
    } else {
        struct thread_messages *mine = thread_messages(true);
        if (mine != NULL)
            copy = ring_push(&mine->ring, copy);
    }
    blyi_host_free(copy);
}

const char *blyi_message_take(void)
{
    bool shared = __atomic_load_n(&is_shared, __ATOMIC_RELAXED);
    struct thread_messages *mine = thread_messages(shared);
    if (mine == NULL)
        return NULL;
    char *text;
    if (shared) {
        blyi_lock_take(&process_lock);
        text = ring_join(&process_ring);
        if (text != NULL)
            ring_clear(&process_ring);
        blyi_lock_drop(&process_lock);
    } else {
        text = ring_join(&mine->ring);
        if (text != NULL)
            ring_clear(&mine->ring);
    }
    blyi_host_free(mine->answer);
    mine->answer = text;
    return text;
}

void blyi_message_set_shared(bool shared)
{
    __atomic_store_n(&is_shared, shared, __ATOMIC_RELAXED);
}
