/* SPDX-License-Identifier: Apache-2.0
 *
 * check_task.c - records of queued tasks.
 */
#include "observe/check_work.h"

#include "base/host.h"

struct blyi_check_task *blyi_task_find(const struct blyi_check_stream *stream, uint64_t number)
{
    struct blyi_check_task *task = stream->first;
    if (number == 0)
        return NULL;
    while (task != NULL && task->number < number)
        task = task->next;
    return task != NULL && task->number == number ? task : NULL;
}

struct blyi_use_range *blyi_task_range(struct blyi_check_task *task, uint32_t i)
{
    return i < task->n_ranges ? &task->range[i] : &task->more[i - task->n_ranges];
}

void blyi_task_release(struct blyi_check *check, struct blyi_check_task *task)
{
    for (uint32_t i = 0; i < blyi_task_ranges(task); i++)
        if (blyi_task_range(task, i)->area != NULL)
            blyi_area_unref(blyi_task_range(task, i)->area);
    blyi_host_free(task->more);
    if (task->host != NULL)
        blyi_host_clock_unref(task->host);
    blyi_mark_unref(task->mark);
    task->next = check->spare;
    check->spare = task;
}

struct blyi_check_task *blyi_task_take(struct blyi_check *check)
{
    struct blyi_check_task *task = check->spare;
    if (task != NULL)
        check->spare = task->next;
    else
        task = blyi_host_alloc(sizeof(*task));
    if (task != NULL)
        *task = (struct blyi_check_task){0};
    else
        blyi_check_stop(check);
    return task;
}

/* Threads may tell their tasks of one stream in another order than that of the numbers. */
static void put_in_order(struct blyi_check_stream *stream, struct blyi_check_task *task)
{
    struct blyi_check_task **at = &stream->first;
    if (stream->last != NULL && stream->last->number < task->number)
        at = &stream->last->next;
    while (*at != NULL && (*at)->number < task->number)
        at = &(*at)->next;
    task->next = *at;
    *at = task;
    if (task->next == NULL)
        stream->last = task;
    stream->n_tasks++;
}

struct blyi_check_task *blyi_task_for(struct blyi_check *check, struct blyi_check_stream *stream,
                                      const struct blyi_probe *probe)
{
    struct blyi_check_task *task = stream->last;
    if (task == NULL || task->number != probe->task)
        task =
            task == NULL || task->number < probe->task ? NULL : blyi_task_find(stream, probe->task);
    if (task != NULL)
        return task;
    task = blyi_task_take(check);
    if (task == NULL)
        return NULL;
    task->number = probe->task;
    task->site = probe->site;
    put_in_order(stream, task);
    return task;
}
