/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_crew.c - see replay_crew.h.
 */
#include "replay_crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"

struct member {
    pthread_t thread;
    pthread_cond_t called;
    struct replay_crew *crew;
    bool busy;
};

struct replay_crew {
    pthread_mutex_t lock;
    pthread_cond_t done;
    replay_task *task;
    void *context;
    const void *argument;
    bool over;
    bly_status status;
    char sentence[BLYI_FAIL_MAX];
    uint32_t n, next;
    struct member members[];
};

static void *work(void *argument)
{
    struct member *me = argument;
    struct replay_crew *crew = me->crew;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!me->busy && !crew->over)
            pthread_cond_wait(&me->called, &crew->lock);
        if (!me->busy)
            break;
        crew->status = crew->task(crew->context, crew->argument);
        if (crew->status != BLY_OK)
            snprintf(crew->sentence, sizeof(crew->sentence), "%s", blyi_fail_text());
        me->busy = false;
        pthread_cond_signal(&crew->done);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

bly_status replay_crew_make(uint32_t n_threads, replay_task *task, void *context,
                            struct replay_crew **out)
{
    struct replay_crew *crew = calloc(1, sizeof(*crew) + n_threads * sizeof(crew->members[0]));
    if (crew == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %u threads", n_threads);
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->done, NULL);
    crew->task = task;
    crew->context = context;
    for (; crew->n < n_threads; crew->n++) {
        struct member *member = &crew->members[crew->n];
        member->crew = crew;
        pthread_cond_init(&member->called, NULL);
        if (pthread_create(&member->thread, NULL, work, member) != 0) {
            pthread_cond_destroy(&member->called);
            bly_status status = blyi_fail(BLY_E_SYSTEM, "%u threads are asked for, %u can be had",
                                          n_threads, crew->n);
            replay_crew_drop(crew);
            return status;
        }
    }
    *out = crew;
    return BLY_OK;
}

bly_status replay_crew_run(struct replay_crew *crew, const void *argument)
{
    struct member *member = &crew->members[crew->next];
    crew->next = (crew->next + 1) % crew->n;
    pthread_mutex_lock(&crew->lock);
    crew->argument = argument;
    member->busy = true;
    pthread_cond_signal(&member->called);
    while (member->busy)
        pthread_cond_wait(&crew->done, &crew->lock);
    bly_status status = crew->status;
    pthread_mutex_unlock(&crew->lock);
    if (status != BLY_OK)
        blyi_fail_put(status, "%s", crew->sentence);
    return status;
}

void replay_crew_drop(struct replay_crew *crew)
{
    if (crew == NULL)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->over = true;
    for (uint32_t i = 0; i < crew->n; i++)
        pthread_cond_signal(&crew->members[i].called);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->n; i++) {
        pthread_join(crew->members[i].thread, NULL);
        pthread_cond_destroy(&crew->members[i].called);
    }
    pthread_cond_destroy(&crew->done);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}
