/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that are built from bound streams; labels, switches, activation. */
#include "graph_test.h"

#define HEAD  ACL_MODEL_STREAM_FLAG_HEAD
#define LATER ACL_MODEL_STREAM_FLAG_DEFAULT

static aclrtStream bound[4];

static aclmdlRI begin(int n)
{
    aclmdlRI graph;
    OK(aclmdlRIBuildBegin(&graph, 0));
    for (int i = 0; i < n; i++) {
        OK(aclrtCreateStreamWithConfig(&bound[i], 0, ACL_STREAM_PERSISTENT));
        OK(aclmdlRIBindStream(graph, bound[i], i == 0 ? HEAD : LATER));
    }
    return graph;
}

static void end(aclmdlRI graph, int n)
{
    for (int i = 0; i < n; i++)
        OK(aclmdlRIUnbindStream(graph, bound[i]));
    OK(aclmdlRIDestroy(graph));
    for (int i = 0; i < n; i++)
        OK(aclrtDestroyStream(bound[i]));
}

TEST(bound_streams_run_when_the_graph_runs)
{
    aclmdlRI graph;
    uint32_t n = 4;
    aclrtStream streams[4];
    open_all();
    graph = begin(1);
    put(0, 3);
    copy_word(1, 0, bound[0]);
    OK(aclrtSynchronizeStream(bound[0]));
    CHECK_EQ(get(1), 0);
    CHECK_ACL(aclmdlRIExecuteAsync(graph, first), 107026);
    CHECK_ACL(aclmdlRIBuildEnd(graph, NULL), 507000); /* without an end */
    CHECK_MESSAGE("end task");
    OK(aclmdlRIEndTask(graph, bound[0]));
    CHECK_ACL(aclmdlRIEndTask(graph, bound[0]), 107000);
    OK(aclmdlRIBuildEnd(graph, NULL));
    CHECK_ACL(aclmdlRIBuildEnd(graph, NULL), 107000);
    CHECK_ACL(aclrtMemsetAsync(words, 8, 0, 8, bound[0]), 107005);
    CHECK_ACL(aclrtDestroyStream(bound[0]), 107005);
    for (uint64_t i = 1; i < 10; i++) {
        put(0, i);
        run(graph, first);
        CHECK_EQ(get(1), i);
    }
    OK(aclmdlRIExecute(graph, 1000));
    CHECK_ACL(aclmdlRIExecute(graph, 0), 107000);
    OK(aclmdlRIGetStreams(graph, streams, &n));
    CHECK_EQ(n, 1);
    CHECK(streams[0] == bound[0]);
    end(graph, 1);
}

TEST(building_refuses)
{
    aclmdlRI graph, captured;
    open_all();
    CHECK_ACL(aclmdlRIBuildBegin(NULL, 0), 100000);
    CHECK_ACL(aclmdlRIBuildBegin(&graph, 1), 107000);
    graph = begin(1);
    CHECK_ACL(aclmdlRIBindStream(graph, NULL, HEAD), 100000);
    CHECK_ACL(aclmdlRIBindStream(graph, first, HEAD), 107000); /* not PERSISTENT */
    CHECK_ACL(aclmdlRIBindStream(graph, bound[0], HEAD), 107005);
    CHECK_ACL(aclmdlRIBindStream(graph, bound[0], 1), 107000);
    CHECK_ACL(aclmdlRIUnbindStream(graph, first), 107005);
    CHECK_ACL(aclmdlRIEndTask(graph, first), 107005);
    CHECK_ACL(aclrtActiveStream(first, bound[0]), 107005);
    CHECK_ACL(aclrtRecordEvent(sync_event(), bound[0]), 207000);
    CHECK_ACL(aclmdlRICaptureBegin(bound[0], RELAX), 107005);
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureEnd(first, &captured));
    CHECK_ACL(aclmdlRIBindStream(captured, bound[0], HEAD), 107000);
    CHECK_ACL(aclmdlRIBuildEnd(captured, NULL), 107000);
    OK(aclmdlRIDestroy(graph)); /* unbinds */
    copy_word(1, 0, bound[0]);
    OK(aclrtDestroyStream(bound[0]));
}

/* ── Labels ───────────────────────────────────────────────────────────────────────────────── */

TEST(a_label_is_jumped_to_by_an_index)
{
    aclrtLabel labels[3];
    aclrtLabelList list;
    uint32_t *index;
    open_all();
    aclmdlRI graph = begin(1);
    OK(aclrtMalloc((void **)&index, 64, HUGE_FIRST));
    for (int i = 0; i < 3; i++)
        OK(aclrtCreateLabel(&labels[i]));
    OK(aclrtCreateLabelList(labels, 3, &list));
    OK(aclrtSwitchLabelByIndex(index, 3, list, bound[0]));
    for (int i = 0; i < 3; i++) {
        OK(aclrtSetLabel(labels[i], bound[0]));
        OK(launch("add_one", words + i, bound[0]));
    }
    CHECK_ACL(aclrtSetLabel(labels[0], bound[0]), 507000);
    OK(aclmdlRIEndTask(graph, bound[0]));
    OK(aclmdlRIBuildEnd(graph, NULL));
    const uint32_t values[] = {0, 1, 2, 3, 99};
    uint64_t want[3] = {0, 0, 0};
    for (int i = 0; i < 5; i++) {
        uint32_t value = values[i];
        OK(aclrtMemcpy(index, 4, &value, 4, H2D));
        run(graph, first);
        for (uint32_t j = value < 3 ? value : 2; j < 3; j++)
            want[j]++;
        for (int j = 0; j < 3; j++)
            CHECK_EQ(get(j), want[j]);
    }
    OK(aclrtDestroyLabelList(list)); /* the graph keeps what it needs */
    for (int i = 0; i < 3; i++)
        OK(aclrtDestroyLabel(labels[i]));
    run(graph, first);
    end(graph, 1);
    CHECK_ACL(aclrtDestroyLabel(labels[0]), 107017);
    CHECK_ACL(aclrtDestroyLabelList(list), 107017);
}

TEST(a_jump_to_another_stream_stops_this_one)
{
    aclrtLabel label;
    aclrtLabelList list;
    uint32_t *index, zero = 0;
    open_all();
    aclmdlRI graph = begin(2);
    OK(aclrtMalloc((void **)&index, 64, HUGE_FIRST));
    OK(aclrtMemcpy(index, 4, &zero, 4, H2D));
    OK(aclrtCreateLabel(&label));
    OK(aclrtCreateLabelList(&label, 1, &list));
    OK(launch("add_one", words, bound[0]));
    OK(aclrtSwitchLabelByIndex(index, 1, list, bound[0]));
    OK(launch("add_one", words + 1, bound[0])); /* never */
    OK(launch("add_one", words + 2, bound[1])); /* before the label */
    OK(aclrtSetLabel(label, bound[1]));
    OK(launch("add_one", words + 3, bound[1]));
    OK(aclmdlRIEndTask(graph, bound[1]));
    OK(aclmdlRIBuildEnd(graph, NULL));
    for (uint64_t i = 1; i < 5; i++) {
        run(graph, first);
        CHECK_EQ(get(0), i);
        CHECK_EQ(get(1), 0);
        CHECK_EQ(get(2), 0);
        CHECK_EQ(get(3), i);
    }
    end(graph, 2);
}

TEST(labels_refuse)
{
    aclrtLabel label, other;
    aclrtLabelList list;
    uint32_t *index;
    open_all();
    aclmdlRI graph = begin(1), captured;
    OK(aclrtMalloc((void **)&index, 64, HUGE_FIRST));
    OK(aclrtMemset(index, 64, 0, 64));
    OK(aclrtCreateLabel(&label));
    OK(aclrtCreateLabel(&other));
    CHECK_ACL(aclrtCreateLabel(NULL), 100000);
    CHECK_ACL(aclrtCreateLabelList(&label, 0, &list), 107000);
    CHECK_ACL(aclrtCreateLabelList(&label, 65536, &list), 107000);
    aclrtLabel bad[2] = {label, ANY_ADDRESS};
    CHECK_ACL(aclrtCreateLabelList(bad, 2, &list), 107017);
    OK(aclrtCreateLabelList(&label, 1, &list));
    CHECK_ACL(aclrtSetLabel(label, first), 107005);
    CHECK_ACL(aclrtSwitchLabelByIndex(index, 1, list, first), 107005);
    CHECK_ACL(aclrtSwitchLabelByIndex(index, 2, list, bound[0]), 107000);
    CHECK_ACL(aclrtSwitchLabelByIndex(&label, 1, list, bound[0]), 107000);
    OK(aclmdlRICaptureBegin(first, RELAX));
    CHECK_ACL(aclrtSetLabel(label, first), 107027);
    CHECK_ACL(aclrtSwitchLabelByIndex(index, 1, list, first), 107027);
    OK(aclmdlRICaptureEnd(first, &captured));
    /* A label that is set nowhere fails when it is jumped to. */
    OK(aclrtSwitchLabelByIndex(index, 1, list, bound[0]));
    OK(aclmdlRIEndTask(graph, bound[0]));
    OK(aclmdlRIBuildEnd(graph, NULL));
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507000);
    CHECK_MESSAGE("not set in it");
    end(graph, 1);
}

/* ── Switches ─────────────────────────────────────────────────────────────────────────────── */

TEST(a_stream_is_switched_to_by_a_comparison)
{
    int32_t *values, pair[2];
    open_all();
    OK(aclrtMalloc((void **)&values, 64, HUGE_FIRST));
    aclmdlRI graph = begin(4);
    /* 0: switches to 1 if left < right, else goes on to activate 2; both lead to 3. */
    OK(aclrtSwitchStream(values, ACL_RT_LESS, values + 1, ACL_RT_SWITCH_INT32, bound[1], NULL,
                         bound[0]));
    OK(launch("add_one", words, bound[0]));
    OK(aclrtActiveStream(bound[2], bound[0]));
    OK(launch("add_one", words + 1, bound[1]));
    OK(aclrtActiveStream(bound[3], bound[1]));
    OK(launch("add_one", words + 2, bound[2]));
    OK(aclrtActiveStream(bound[3], bound[2]));
    OK(launch("add_one", words + 3, bound[3]));
    OK(aclmdlRIEndTask(graph, bound[3]));
    CHECK_ACL(aclrtSwitchStream(values, (aclrtCondition)6, values, ACL_RT_SWITCH_INT32, bound[1],
                                NULL, bound[0]),
              107000);
    CHECK_ACL(aclrtSwitchStream(values, ACL_RT_EQUAL, values, ACL_RT_SWITCH_INT32, bound[1],
                                bound[2], bound[0]),
              107000);
    CHECK_ACL(aclrtSwitchStream(pair, ACL_RT_EQUAL, values, ACL_RT_SWITCH_INT32, bound[1], NULL,
                                bound[0]),
              107000);
    OK(aclmdlRIBuildEnd(graph, NULL));
    uint64_t want[4] = {0, 0, 0, 0};
    for (int i = 0; i < 20; i++) {
        pair[0] = -1;
        pair[1] = i % 3 - 1;
        bool switches = pair[0] < pair[1];
        OK(aclrtMemcpy(values, 8, pair, 8, H2D));
        run(graph, first);
        want[0] += !switches;
        want[1] += switches;
        want[2] += !switches;
        want[3]++;
        for (int j = 0; j < 4; j++)
            CHECK_EQ(get(j), want[j]);
    }
    end(graph, 4);
}

TEST(a_run_that_never_comes_to_its_end_is_told)
{
    open_all();
    aclmdlRI graph = begin(2);
    OK(launch("add_one", words, bound[0]));
    OK(aclmdlRIEndTask(graph, bound[1])); /* which nobody activates */
    OK(aclmdlRIBuildEnd(graph, NULL));
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507000);
    CHECK_MESSAGE("none came to the end task");
    end(graph, 2);
}

TEST(a_run_is_aborted)
{
    uint32_t *flag, got = 0;
    open_all();
    OK(aclrtMalloc((void **)&flag, 64 * KIB, HUGE_FIRST));
    OK(aclrtMemset(flag, 64, 0, 64));
    aclmdlRI graph = begin(1);
    OK(launch("forever", flag, bound[0]));
    OK(aclmdlRIEndTask(graph, bound[0]));
    OK(aclmdlRIBuildEnd(graph, NULL));
    OK(aclmdlRIAbort(graph)); /* none goes on */
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclmdlRIUnbindStream(graph, bound[0]), 107037);
    for (; got == 0; usleep(1000))
        OK(aclrtMemcpy(&got, 4, flag, 4, D2H));
    CHECK_ACL(aclmdlRIExecute(graph, 50), 507046);
    OK(aclmdlRIAbort(graph));
    CHECK_ACL(aclrtSynchronizeStream(first), 507035); /* the kernel */
    /* The other run begins now, or in a moment. */
    for (; aclmdlRIUnbindStream(graph, bound[0]) != 0; usleep(1000))
        OK(aclmdlRIAbort(graph));
    OK(aclmdlRIDestroy(graph));
    OK(aclrtDestroyStream(bound[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_streams_run_when_the_graph_runs),
        cmocka_unit_test(building_refuses),
        cmocka_unit_test(a_label_is_jumped_to_by_an_index),
        cmocka_unit_test(a_jump_to_another_stream_stops_this_one),
        cmocka_unit_test(labels_refuse),
        cmocka_unit_test(a_stream_is_switched_to_by_a_comparison),
        cmocka_unit_test(a_run_that_never_comes_to_its_end_is_told),
        cmocka_unit_test(a_run_is_aborted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
