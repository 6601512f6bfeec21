/* SPDX-License-Identifier: Apache-2.0 */
/* What is inside of captured graphs: task groups and their updates, conditions, tasks. */
#include "graph_test.h"

/* ── Groups ───────────────────────────────────────────────────────────────────────────────── */

static aclrtTaskGrp capture_group(aclmdlRI *graph)
{
    aclrtTaskGrp group = NULL;
    OK(aclmdlRICaptureBegin(first, RELAX));
    copy_word(9, 8, first);
    OK(aclmdlRICaptureTaskGrpBegin(first));
    OK(launch("add_one", words, first));
    OK(launch("add_one", words + 1, first));
    OK(aclmdlRICaptureTaskGrpEnd(first, &group));
    OK(launch("add_one", words + 2, first));
    OK(aclmdlRICaptureEnd(first, graph));
    CHECK(group != NULL);
    return group;
}

TEST(a_group_is_updated_in_the_order_of_a_stream)
{
    aclmdlRI graph;
    struct hold hold;
    open_all();
    aclrtTaskGrp group = capture_group(&graph);
    run(graph, first);
    hold_stream(&hold, second);
    OK(aclmdlRICaptureTaskUpdateBegin(second, group));
    OK(launch("add_one", words + 4, second));
    OK(launch("add_one", words + 5, second));
    OK(aclmdlRICaptureTaskUpdateEnd(second));
    run(graph, first); /* the update has not run yet */
    CHECK_EQ(get(0), 2);
    CHECK_EQ(get(1), 2);
    let_go(&hold);
    OK(aclrtSynchronizeStream(second));
    run(graph, first);
    CHECK_EQ(get(0), 2);
    CHECK_EQ(get(1), 2);
    CHECK_EQ(get(2), 3);
    CHECK_EQ(get(4), 1);
    CHECK_EQ(get(5), 1);
    OK(aclmdlRIDestroy(graph));
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(second, group), 107017);
}

TEST(an_update_may_run_beside_the_graph)
{
    aclmdlRI graph;
    aclrtEvent ready;
    aclrtTaskGrp group;
    open_all();
    OK(aclrtCreateEventWithFlag(&ready, ACL_EVENT_EXTERNAL));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtStreamWaitEvent(first, ready));
    OK(aclrtResetEvent(ready, first));
    OK(aclmdlRICaptureTaskGrpBegin(first));
    OK(launch("add_one", words, first));
    OK(aclmdlRICaptureTaskGrpEnd(first, &group));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (int i = 0; i < 40; i++) {
        OK(aclmdlRIExecuteAsync(graph, first));
        OK(aclmdlRICaptureTaskUpdateBegin(second, group));
        OK(launch("add_one", words + i, second));
        OK(aclmdlRICaptureTaskUpdateEnd(second));
        OK(aclrtRecordEvent(ready, second));
        OK(aclrtSynchronizeStream(first));
    }
    for (int i = 0; i < 40; i++)
        CHECK_EQ(get(i), 1);
    OK(aclmdlRIDestroy(graph));
}

TEST(groups_refuse)
{
    aclmdlRI graph;
    aclrtTaskGrp group, other;
    open_all();
    aclrtEvent out = sync_event(), back = sync_event();
    CHECK_ACL(aclmdlRICaptureTaskGrpBegin(first), 107029);
    CHECK_ACL(aclmdlRICaptureTaskGrpEnd(first, &group), 107029);
    OK(aclmdlRICaptureBegin(first, RELAX));
    CHECK_ACL(aclmdlRICaptureTaskGrpEnd(first, &group), 107033);
    OK(aclmdlRICaptureTaskGrpBegin(first));
    CHECK_ACL(aclmdlRICaptureTaskGrpBegin(first), 107033);
    CHECK_ACL(aclrtMemsetAsync(words, 8, 0, 8, first), 507009);
    CHECK_MESSAGE("kernels alone");
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 107033);
    /* Another stream's task in between. */
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtRecordEvent(out, first));
    OK(aclrtStreamWaitEvent(second, out));
    OK(aclmdlRICaptureTaskGrpBegin(first));
    OK(launch("add_one", words, first));
    CHECK_ACL(launch("add_one", words, second), 107034);
    CHECK_ACL(aclmdlRICaptureTaskGrpEnd(first, &group), 107034);
    OK(aclrtRecordEvent(back, second));
    OK(aclrtStreamWaitEvent(first, back));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDestroy(graph));

    group = capture_group(&graph);
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(second), 107033);
    OK(aclmdlRICaptureTaskUpdateBegin(second, group));
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(second, group), 107033);
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(first, group), 107033);
    CHECK_ACL(aclrtMemsetAsync(words, 8, 0, 8, second), 507009);
    CHECK_ACL(aclrtDestroyStream(second), 107033);
    OK(launch("add_one", words, second));
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(second), 507000);
    CHECK_MESSAGE("1 of the 2 kernels");
    OK(aclmdlRICaptureTaskUpdateBegin(second, group));
    OK(launch("add_one", words, second));
    OK(launch("add_one", words, second));
    CHECK_ACL(launch("add_one", words, second), 107040);
    OK(aclmdlRICaptureTaskUpdateEnd(second));
    OK(aclrtSynchronizeStream(second));
    OK(aclmdlRICaptureBegin(first, RELAX));
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(first, group), 107027);
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(first), 107027);
    OK(aclmdlRICaptureEnd(first, &other));
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(first, ANY_ADDRESS), 107017);
}

/* ── Conditions ───────────────────────────────────────────────────────────────────────────── */

struct choice {
    aclmdlRI graph, bodies[3];
    aclmdlRICondHandle handle;
    uint64_t *word;
};

/* A condition whose bodies copy word 20, 21, 22 to word 0. */
static void capture_choice(struct choice *c, aclmdlRICondTaskType type, uint32_t size,
                           aclmdlRICondHandleFlag flag)
{
    OK(aclmdlRICaptureBegin(first, THREAD));
    OK(aclmdlRICaptureGetInfo(first, NULL, &c->graph));
    OK(aclmdlRICondHandleCreate(c->graph, 1, flag, &c->handle));
    OK(aclmdlRICondHandleGetCondPtr(c->handle, &c->word));
    aclmdlRICondTaskParams params = {c->handle, type, size, c->bodies};
    OK(aclmdlRIAddCondTask(params, first, 0));
    for (uint32_t i = 0; i < size; i++) {
        OK(aclmdlRICaptureToModelRIBegin(second, c->bodies[i], THREAD));
        copy_word(0, 20 + (int)i, second);
        OK(aclmdlRICaptureEnd(second, i == 0 ? NULL : &c->bodies[i]));
    }
    copy_word(1, 0, first);
    OK(aclmdlRICaptureEnd(first, &c->graph));
    for (uint64_t i = 0; i < 3; i++)
        put(20 + (int)i, 100 + i);
}

static void check_choice(struct choice *c, uint64_t word, uint64_t want)
{
    put(0, 5);
    OK(aclrtMemcpy(c->word, 8, &word, 8, H2D));
    run(c->graph, first);
    CHECK_EQ(get(1), want);
}

TEST(if_and_switch_choose_a_body)
{
    struct choice c;
    open_all();
    capture_choice(&c, ACL_MODEL_RI_COND_TYPE_IF, 2, (aclmdlRICondHandleFlag)0);
    check_choice(&c, 1, 100);
    check_choice(&c, 0, 101);
    check_choice(&c, UINT64_MAX, 100);
    CHECK_ACL(aclmdlRIDestroy(c.bodies[0]), 207000);
    CHECK_ACL(aclmdlRIExecuteAsync(c.bodies[0], first), 107000);
    CHECK_ACL(aclmdlRICaptureToModelRIBegin(first, c.bodies[0], RELAX), 107026);
    OK(aclmdlRIDestroy(c.graph));
    CHECK_ACL(aclmdlRIDestroy(c.bodies[0]), 107017);
    CHECK_ACL(aclmdlRICondHandleGetCondPtr(c.handle, &c.word), 107017);
    capture_choice(&c, ACL_MODEL_RI_COND_TYPE_IF, 1, (aclmdlRICondHandleFlag)0);
    check_choice(&c, 3, 100);
    check_choice(&c, 0, 5);
    OK(aclmdlRIDestroy(c.graph));
    capture_choice(&c, ACL_MODEL_RI_COND_TYPE_SWITCH, 3, (aclmdlRICondHandleFlag)0);
    for (uint64_t i = 0; i < 3; i++)
        check_choice(&c, i, 100 + i);
    check_choice(&c, 3, 5);
    OK(aclmdlRIDestroy(c.graph));
}

TEST(each_run_begins_with_the_given_value)
{
    struct choice c;
    open_all();
    capture_choice(&c, ACL_MODEL_RI_COND_TYPE_SWITCH, 3, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT);
    for (uint64_t i = 0; i < 3; i++)
        check_choice(&c, i, 101);
    OK(aclmdlRIDestroy(c.graph));
}

TEST(while_runs_its_body_as_long_as_it_holds)
{
    aclmdlRI graph, body, inner;
    aclmdlRICondHandle loop, twice;
    uint64_t *left, *more;
    open_all();
    /* The outer loop runs 3 times, each time the inner one twice. */
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureGetInfo(first, NULL, &graph));
    OK(aclmdlRICondHandleCreate(graph, 3, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &loop));
    OK(aclmdlRICondHandleGetCondPtr(loop, &left));
    aclmdlRICondTaskParams params = {loop, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &body};
    OK(aclmdlRIAddCondTask(params, first, 0));
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 0), 107000);
    OK(aclmdlRICaptureToModelRIBegin(second, body, RELAX));
    OK(launch("add_one", words, second));
    OK(aclmdlRICondHandleCreate(body, 0, (aclmdlRICondHandleFlag)0, &twice));
    OK(aclmdlRICondHandleGetCondPtr(twice, &more));
    OK(aclrtValueWrite(more, 2, 0, second));
    aclmdlRICondTaskParams inside = {twice, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &inner};
    OK(aclmdlRIAddCondTask(inside, second, 0));
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 107045);
    OK(aclrtSynchronizeStream(first)); /* the capture is over, the body's too */
    OK(aclrtSynchronizeDevice());
    OK(aclrtSynchronizeStream(second));

    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureGetInfo(first, NULL, &graph));
    OK(aclmdlRICondHandleCreate(graph, 3, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &loop));
    OK(aclmdlRICondHandleGetCondPtr(loop, &left));
    params.handle = loop;
    OK(aclmdlRIAddCondTask(params, first, 0));
    aclrtStream third, fourth;
    OK(aclrtCreateStream(&third));
    OK(aclrtCreateStream(&fourth));
    OK(aclmdlRICaptureToModelRIBegin(third, body, RELAX));
    OK(launch("add_one", words, third));
    OK(aclmdlRICondHandleCreate(body, 0, (aclmdlRICondHandleFlag)0, &twice));
    OK(aclmdlRICondHandleGetCondPtr(twice, &more));
    OK(aclrtValueWrite(more, 2, 0, third));
    inside.handle = twice;
    OK(aclmdlRIAddCondTask(inside, third, 0));
    OK(aclmdlRICaptureToModelRIBegin(fourth, inner, RELAX));
    OK(launch("add_one", words + 1, fourth));
    OK(launch("subtract_one", more, fourth));
    OK(aclmdlRICaptureEnd(fourth, NULL));
    OK(launch("subtract_one", left, third));
    OK(aclmdlRICaptureEnd(third, NULL));
    OK(launch("add_one", words + 2, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (uint64_t i = 1; i <= 4; i++) {
        run(graph, i % 2 ? first : second);
        CHECK_EQ(get(0), 3 * i);
        CHECK_EQ(get(1), 6 * i);
        CHECK_EQ(get(2), i);
    }
    OK(aclmdlRIDestroy(graph));
}

TEST(an_endless_loop_is_aborted)
{
    aclmdlRI graph, body;
    aclmdlRICondHandle loop;
    uint64_t got = 0;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureGetInfo(first, NULL, &graph));
    OK(aclmdlRICondHandleCreate(graph, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &loop));
    aclmdlRICondTaskParams params = {loop, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &body};
    OK(aclmdlRIAddCondTask(params, first, 0));
    OK(aclmdlRICaptureToModelRIBegin(second, body, RELAX));
    OK(launch("add_one", words, second));
    OK(aclmdlRICaptureEnd(second, &body));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIExecuteAsync(graph, first));
    while (got < 100)
        got = get(0);
    OK(aclrtStreamAbort(first));
    got = get(0);
    OK(aclrtSynchronizeStream(first));
    CHECK_EQ(get(0), got);
    /* A failure in the body ends the loop too. */
    OK(aclmdlRIExecuteAsync(graph, second));
    OK(aclrtDeviceTaskAbort(0, 0));
    OK(aclmdlRIDestroy(graph));
}

TEST(a_failure_ends_a_loop)
{
    aclmdlRI graph, body;
    aclmdlRICondHandle loop;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureGetInfo(first, NULL, &graph));
    OK(aclmdlRICondHandleCreate(graph, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &loop));
    aclmdlRICondTaskParams params = {loop, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &body};
    OK(aclmdlRIAddCondTask(params, first, 0));
    OK(aclmdlRICaptureToModelRIBegin(second, body, RELAX));
    OK(launch("trap", words, second));
    OK(aclmdlRICaptureEnd(second, &body));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507035);
    OK(aclrtSynchronizeStream(first));
    OK(aclmdlRIDestroy(graph));
}

TEST(conditions_refuse)
{
    aclmdlRI graph, other, bodies[3];
    aclmdlRICondHandle handle;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureGetInfo(first, NULL, &graph));
    CHECK_ACL(aclmdlRICondHandleCreate(graph, 0, (aclmdlRICondHandleFlag)2, &handle), 107000);
    OK(aclmdlRICondHandleCreate(graph, 0, (aclmdlRICondHandleFlag)0, &handle));
    aclmdlRICondTaskParams params = {handle, ACL_MODEL_RI_COND_TYPE_IF, 3, bodies};
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 0), 107000);
    params.size = 0;
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 0), 107000);
    params.type = ACL_MODEL_RI_COND_TYPE_SWITCH;
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 0), 107000);
    params.size = 2;
    params.type = ACL_MODEL_RI_COND_TYPE_WHILE;
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 0), 107000);
    params.type = (aclmdlRICondTaskType)3;
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 0), 107000);
    params.type = ACL_MODEL_RI_COND_TYPE_IF;
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 1), 107000);
    CHECK_ACL(aclmdlRIAddCondTask(params, second, 0), 107029);
    OK(aclmdlRICaptureBegin(second, RELAX));
    CHECK_ACL(aclmdlRIAddCondTask(params, second, 0), 107000); /* of another graph */
    OK(aclmdlRICaptureEnd(second, &other));
    CHECK_ACL(aclmdlRICondHandleCreate(other, 0, (aclmdlRICondHandleFlag)0, &handle), 107000);
    CHECK_ACL(aclmdlRICaptureToModelRIBegin(second, other, RELAX), 107000); /* no body */
    params.handle = NULL;
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 0), 100000);
    params.handle = ANY_ADDRESS;
    CHECK_ACL(aclmdlRIAddCondTask(params, first, 0), 107017);
    OK(aclmdlRICaptureEnd(first, &graph));
    /* Events of a body do not cross its border. */
    struct choice c;
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureGetInfo(first, NULL, &c.graph));
    OK(aclmdlRICondHandleCreate(c.graph, 0, (aclmdlRICondHandleFlag)0, &c.handle));
    aclmdlRICondTaskParams one = {c.handle, ACL_MODEL_RI_COND_TYPE_IF, 1, c.bodies};
    OK(aclmdlRIAddCondTask(one, first, 0));
    OK(aclmdlRICaptureToModelRIBegin(second, c.bodies[0], RELAX));
    CHECK_ACL(aclrtRecordEventWithFlag(sync_event(), second, 1), 207000);
    OK(aclmdlRICaptureEnd(second, NULL));
    OK(aclmdlRICaptureEnd(first, &c.graph));
}

/* ── Tasks ────────────────────────────────────────────────────────────────────────────────── */

static uint32_t tasks_of(aclmdlRI graph, aclmdlRITask *tasks, uint32_t room)
{
    aclrtStream streams[4];
    uint32_t n = 4, count = room;
    OK(aclmdlRIGetStreams(graph, streams, &n));
    OK(aclmdlRIGetTasksByStream(streams[0], tasks, &count));
    return count;
}

static aclmdlRITaskType type_of(aclmdlRITask task)
{
    aclmdlRITaskType type;
    OK(aclmdlRITaskGetType(task, &type));
    return type;
}

TEST(tasks_are_told)
{
    aclmdlRI graph;
    aclmdlRITask tasks[16];
    aclmdlRITaskParams params;
    aclrtStream streams[4];
    uint32_t n = 1, id;
    open_all();
    aclrtEvent event = sync_event();
    OK(aclmdlRICaptureBegin(first, RELAX));
    copy_word(1, 0, first);
    OK(aclrtRecordEvent(event, first));
    OK(aclrtStreamWaitEvent(first, event));
    OK(aclrtValueWrite(words + 3, 4, 0, first));
    OK(aclrtValueWait(words + 3, 4, ACL_STREAM_WAIT_VALUE_EQ, first));
    OK(launch("add_one", words + 2, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIGetStreams(graph, NULL, &n));
    CHECK_EQ(n, 1);
    n = 0;
    CHECK_ACL(aclmdlRIGetStreams(graph, streams, &n), 107039);
    n = 4;
    OK(aclmdlRIGetStreams(graph, streams, &n));
    CHECK_EQ(n, 1);
    n = 99;
    OK(aclmdlRIGetTasksByStream(streams[0], NULL, &n));
    CHECK_EQ(n, 6);
    n = 5;
    CHECK_ACL(aclmdlRIGetTasksByStream(streams[0], tasks, &n), 107039);
    CHECK_EQ(n, 5);
    CHECK_ACL(aclmdlRIGetTasksByStream(first, tasks, &n), 107000);
    CHECK_EQ(tasks_of(graph, tasks, 16), 6);
    const int types[] = {0, 2, 3, 5, 6, 1};
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(type_of(tasks[i]), types[i]);
        OK(aclmdlRITaskGetSeqId(tasks[i], &id));
        CHECK_EQ(id, i);
    }
    CHECK_ACL(aclmdlRITaskGetParams(tasks[0], &params), 107000);
    OK(aclmdlRITaskGetParams(tasks[1], &params));
    CHECK(params.eventRecordTaskParams.event == event);
    CHECK_EQ(params.eventRecordTaskParams.eventFlag, ACL_EVENT_SYNC);
    OK(aclmdlRITaskGetParams(tasks[3], &params));
    CHECK(params.valueWriteTaskParams.devAddr == words + 3);
    CHECK_EQ(params.valueWriteTaskParams.value, 4);
    OK(aclmdlRITaskGetParams(tasks[4], &params));
    CHECK_EQ(params.valueWaitTaskParams.flag, ACL_STREAM_WAIT_VALUE_EQ);
    OK(aclmdlRITaskGetParams(tasks[5], &params));
    CHECK_EQ(params.type, ACL_MODEL_RI_TASK_KERNEL);
    CHECK(params.kernelTaskParams.funcHandle == function("add_one"));
    CHECK_EQ(params.kernelTaskParams.numBlocks, 1);
    CHECK_EQ(params.kernelTaskParams.argsSize, sizeof(void *));
    CHECK(*(void **)params.kernelTaskParams.args == words + 2);
    /* The graph's own stream takes nothing and ends with it. */
    CHECK_ACL(aclrtMemsetAsync(words, 8, 0, 8, streams[0]), 107005);
    CHECK_ACL(aclrtDestroyStream(streams[0]), 107005);
    CHECK_ACL(aclmdlRICaptureBegin(streams[0], RELAX), 107005);
    OK(aclmdlRIDestroy(graph));
    CHECK_ACL(aclmdlRITaskGetType(tasks[0], NULL), 100000);
    aclmdlRITaskType type;
    CHECK_ACL(aclmdlRITaskGetType(tasks[0], &type), 107017);
    CHECK_ACL(aclmdlRIGetTasksByStream(streams[0], NULL, &n), 107017);
}

TEST(tasks_are_changed_and_disabled)
{
    aclmdlRI graph;
    aclmdlRITask tasks[16];
    aclmdlRITaskParams params;
    struct hold hold;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(launch("add_one", words, first));
    OK(aclrtValueWrite(words + 1, 7, 0, first));
    OK(aclrtValueWait(words + 1, 7, ACL_STREAM_WAIT_VALUE_EQ, first));
    OK(launch("add_one", words + 2, first));
    copy_word(4, 1, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    CHECK_EQ(tasks_of(graph, tasks, 16), 5);
    run(graph, first);

    OK(aclmdlRITaskGetParams(tasks[0], &params));
    void *pointer = words + 3;
    params.kernelTaskParams.args = &pointer;
    OK(aclmdlRITaskSetParams(tasks[0], &params));
    pointer = NULL; /* it was read */
    OK(aclmdlRITaskGetParams(tasks[1], &params));
    params.valueWriteTaskParams.value = 8;
    OK(aclmdlRITaskSetParams(tasks[1], &params));
    OK(aclmdlRITaskGetParams(tasks[2], &params));
    params.valueWaitTaskParams.value = 8;
    OK(aclmdlRITaskSetParams(tasks[2], &params));
    OK(aclmdlRITaskDisable(tasks[3]));
    CHECK_ACL(aclmdlRITaskDisable(tasks[4]), 107000);
    CHECK_ACL(aclmdlRITaskSetParams(tasks[3], &params), 107000); /* of another kind */
    params.type = ACL_MODEL_RI_TASK_EVENT_RECORD;
    CHECK_ACL(aclmdlRITaskSetParams(tasks[3], &params), 107000);
    run(graph, first); /* not yet */
    CHECK_EQ(get(0), 2);
    CHECK_EQ(get(2), 2);
    OK(aclmdlRIUpdate(graph));
    OK(aclmdlRIUpdate(graph));
    run(graph, first);
    CHECK_EQ(get(0), 2);
    CHECK_EQ(get(3), 1);
    CHECK_EQ(get(1), 8);
    CHECK_EQ(get(2), 2);
    CHECK_EQ(get(4), 8);
    /* Set back what was told. */
    OK(aclmdlRITaskGetParams(tasks[0], &params));
    OK(aclmdlRITaskSetParams(tasks[0], &params));
    OK(aclmdlRIUpdate(graph));
    run(graph, first);
    CHECK_EQ(get(3), 2);
    hold_stream(&hold, first);
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclmdlRITaskDisable(tasks[0]), 107040);
    CHECK_ACL(aclmdlRIUpdate(graph), 107040);
    let_go(&hold);
    OK(aclrtSynchronizeStream(first));
    OK(aclmdlRIDestroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_updated_in_the_order_of_a_stream),
        cmocka_unit_test(an_update_may_run_beside_the_graph),
        cmocka_unit_test(groups_refuse),
        cmocka_unit_test(if_and_switch_choose_a_body),
        cmocka_unit_test(each_run_begins_with_the_given_value),
        cmocka_unit_test(while_runs_its_body_as_long_as_it_holds),
        cmocka_unit_test(an_endless_loop_is_aborted),
        cmocka_unit_test(a_failure_ends_a_loop),
        cmocka_unit_test(conditions_refuse),
        cmocka_unit_test(tasks_are_told),
        cmocka_unit_test(tasks_are_changed_and_disabled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
