/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_thread.c - the chunk that each thread writes to, and where chunks come from.
 *
 * Where all is kept, full chunks are copied to the end of the file, several at a time, and used
 * again: their pages are mapped and present, new ones would not be. A process that dies between
 * the two leaves events twice, which the reader sees by their numbers.
 *
 * A ring keeps the last n events of the process, though each thread writes chunks of its own: a
 * full chunk is used again when its last event is n events old. So at most n events lie in full
 * chunks, and besides them each thread that is alive has one.
 */
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/host.h"
#include "observe/recorder_inside.h"

#define SPILL_CHUNKS 32u

BLYI_HOT_THREAD_LOCAL struct blyi_recthread *blyi_rec_self;
static pthread_key_t at_exit;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

/* ── Chunks ───────────────────────────────────────────────────────────────────────────────── */

static bool push(void **array, size_t *room, size_t n, size_t size)
{
    if (n < *room)
        return true;
    size_t more = *room * 2 + 64;
    void *bigger = blyi_host_realloc(*array, more * size);
    if (bigger == NULL)
        return false;
    *array = bigger;
    *room = more;
    return true;
}

/* Without host memory to remember it, the chunk is not used again: the file is larger then. */
void blyi_rec_chunk_full_locked(struct blyi_recwriter *writer)
{
    if (writer->chunk == NULL)
        return;
    if (blyi_rec.full_first > blyi_rec.n_full) { /* seldom enough that moving costs nothing */
        memmove(blyi_rec.full, blyi_rec.full + blyi_rec.full_first,
                blyi_rec.n_full * sizeof(*blyi_rec.full));
        blyi_rec.full_first = 0;
    }
    void *full = blyi_rec.full;
    size_t end = blyi_rec.full_first + blyi_rec.n_full;
    if (push(&full, &blyi_rec.full_room, end, sizeof(*blyi_rec.full))) {
        blyi_rec.full = full;
        blyi_rec.full[end] = (struct blyi_recfull){writer->chunk, writer->last_seq};
        blyi_rec.n_full++;
    }
    writer->chunk = NULL;
}

/* How many of the queue from `first` lie one behind the other in memory. */
static uint32_t row_of(const struct blyi_recfull *first, size_t n)
{
    uint32_t row = 1;
    while (row < n && (const char *)first[row].chunk ==
                          (const char *)first->chunk + (size_t)row * BLYI_TRACE_CHUNK)
        row++;
    return row;
}

static bly_status spill_locked(void)
{
    const struct blyi_recfull *first = blyi_rec.full + blyi_rec.full_first;
    for (size_t at = blyi_rec.n_spilled; at < blyi_rec.n_full;) {
        uint32_t n = row_of(first + at, blyi_rec.n_full - at);
        bly_status status = blyi_recfile_append(&blyi_rec.file, first[at].chunk, n);
        if (status != BLY_OK)
            return status;
        for (uint32_t i = 0; i < n; i++)
            __atomic_store_n(&first[at + i].chunk->used, 0, __ATOMIC_RELEASE);
        at += n;
        blyi_rec.n_spilled = at;
    }
    return BLY_OK;
}

static struct blyi_trace_chunk *pop_full_locked(void)
{
    struct blyi_trace_chunk *chunk = blyi_rec.full[blyi_rec.full_first++].chunk;
    blyi_rec.n_full--;
    __atomic_store_n(&chunk->used, 0, __ATOMIC_RELEASE);
    /* What was counted must not be overwritten while it still counts. */
    atomic_thread_fence(memory_order_seq_cst);
    return chunk;
}

/* A chunk to use again; NULL: there is none. */
static bly_status used_chunk_locked(struct blyi_trace_chunk **chunk)
{
    *chunk = NULL;
    if (blyi_rec.ring > 0) {
        uint64_t now = __atomic_load_n(&blyi_rec.file.header->n_events, __ATOMIC_RELAXED);
        if (blyi_rec.n_full > 0 &&
            blyi_rec.full[blyi_rec.full_first].last_seq + blyi_rec.ring <= now)
            *chunk = pop_full_locked();
        return BLY_OK;
    }
    if (blyi_rec.n_spilled == 0 && blyi_rec.n_full >= SPILL_CHUNKS) {
        bly_status status = spill_locked();
        if (status != BLY_OK)
            return status;
    }
    if (blyi_rec.n_spilled > 0) {
        *chunk = pop_full_locked();
        blyi_rec.n_spilled--;
    }
    return BLY_OK;
}

static void begin(struct blyi_recwriter *writer, uint32_t gen, struct blyi_trace_chunk *chunk,
                  uint32_t used)
{
    writer->gen = gen;
    writer->chunk = chunk;
    writer->at = (uint64_t *)(void *)((char *)(chunk + 1) + used);
    writer->end = (uint64_t *)(void *)((char *)chunk + BLYI_TRACE_CHUNK) -
                  (BLYI_TRACE_CONTEXT_WORDS + BLYI_TRACE_EVENT_WORDS);
    writer->context.time_ns = UINT64_MAX; /* no event stands on it: a new one comes first */
}

bly_status blyi_rec_chunk_locked(struct blyi_recwriter *writer, uint32_t gen)
{
    struct blyi_trace_chunk *chunk;
    if (writer->gen != gen)
        writer->chunk = NULL; /* of a recording that has ended */
    blyi_rec_chunk_full_locked(writer);
    if (blyi_rec.n_partly > 0) {
        const struct blyi_recwriter *left = &blyi_rec.partly[--blyi_rec.n_partly];
        begin(writer, gen, left->chunk, left->chunk->used);
        return BLY_OK;
    }
    bly_status status = used_chunk_locked(&chunk);
    if (status == BLY_OK && chunk == NULL)
        status = blyi_recfile_take(&blyi_rec.file, BLYI_TRACE_CHUNK_EVENTS, 1, &chunk, NULL);
    if (status == BLY_OK)
        begin(writer, gen, chunk, 0);
    return status;
}

void blyi_rec_chunks_reset_locked(void)
{
    blyi_rec.full_first = blyi_rec.n_full = blyi_rec.n_spilled = 0;
    blyi_rec.n_partly = 0;
}

/* ── Threads ──────────────────────────────────────────────────────────────────────────────── */

/* What is left of the chunk is for the next thread. */
static void leave_chunk_locked(struct blyi_recthread *thread)
{
    struct blyi_recwriter *writer = &thread->writer;
    if (writer->chunk == NULL || !blyi_rec_is_on(writer->gen))
        return;
    void *partly = blyi_rec.partly;
    if (writer->at < writer->end &&
        push(&partly, &blyi_rec.partly_room, blyi_rec.n_partly, sizeof(*blyi_rec.partly))) {
        blyi_rec.partly = partly;
        blyi_rec.partly[blyi_rec.n_partly++] = *writer;
        return;
    }
    blyi_rec_chunk_full_locked(writer);
}

static void on_thread_exit(void *arg)
{
    struct blyi_recthread *thread = arg;
    blyi_lock_take(&blyi_rec.lock);
    leave_chunk_locked(thread);
    *thread->link = thread->next;
    if (thread->next != NULL)
        thread->next->link = thread->link;
    blyi_lock_drop(&blyi_rec.lock);
    blyi_rec_self = NULL; /* other destructors may still use a card */
    blyi_host_free(thread);
}

static void make_key(void)
{
    has_key = pthread_key_create(&at_exit, on_thread_exit) == 0;
}

BLYI_COLD struct blyi_recthread *blyi_rec_make_thread(void)
{
    pthread_once(&key_once, make_key);
    struct blyi_recthread *thread = has_key ? blyi_host_calloc(1, sizeof(*thread)) : NULL;
    if (thread == NULL)
        return NULL;
    if (pthread_setspecific(at_exit, thread) != 0) {
        blyi_host_free(thread);
        return NULL;
    }
    blyi_lock_take(&blyi_rec.lock);
    thread->number = ++blyi_rec.n_threads;
    thread->next = blyi_rec.threads;
    thread->link = &blyi_rec.threads;
    if (thread->next != NULL)
        thread->next->link = &thread->next;
    blyi_rec.threads = thread;
    blyi_lock_drop(&blyi_rec.lock);
    blyi_rec_self = thread;
    return thread;
}

void blyi_rec_forget_threads(void)
{
    blyi_rec_self = NULL; /* the structures of the parent's threads are lost */
    if (has_key)
        pthread_setspecific(at_exit, NULL);
    blyi_rec.threads = NULL;
    blyi_rec.n_threads = 0;
}

bool blyi_rec_quiet_locked(void)
{
    for (struct blyi_recthread *thread = blyi_rec.threads; thread != NULL; thread = thread->next)
        if (thread != blyi_rec_self && atomic_load_explicit(&thread->busy, memory_order_acquire))
            return false;
    return true;
}

bly_status blyi_rec_name_thread_locked(struct blyi_recthread *thread)
{
    char name[17] = "";
    uint32_t head[2] = {thread->number, (uint32_t)syscall(SYS_gettid)};
    prctl(PR_GET_NAME, name, 0, 0, 0);
    return blyi_recfile_meta(&blyi_rec.file, BLYI_TRACE_META_THREAD, head, sizeof(head), name,
                             strlen(name));
}
