/* SPDX-License-Identifier: Apache-2.0
 * Queues of messages, routes between them, shared buffers. */
#include "acl_test.h"

#include <acl/acl_tdt_queue.h>

static uint32_t new_queue(uint32_t depth)
{
    uint32_t id = UINT32_MAX;
    acltdtQueueAttr *attr = acltdtCreateQueueAttr();
    OK(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, sizeof(depth), &depth));
    OK(acltdtCreateQueue(attr, &id));
    OK(acltdtDestroyQueueAttr(attr));
    return id;
}

static void put(uint32_t id, uint64_t number)
{
    OK(acltdtEnqueueData(id, &number, sizeof(number), NULL, 0, 0, 0));
}

static aclError try_put(uint32_t id)
{
    uint64_t number = 0;
    return acltdtEnqueueData(id, &number, sizeof(number), NULL, 0, 0, 0);
}

static uint64_t take(uint32_t id)
{
    uint64_t number = 0;
    size_t size = 0;
    OK(acltdtDequeueData(id, &number, sizeof(number), &size, NULL, 0, 0));
    CHECK_EQ(size, sizeof(number));
    return number;
}

static aclError try_take(uint32_t id)
{
    uint64_t number;
    size_t size;
    return acltdtDequeueData(id, &number, sizeof(number), &size, NULL, 0, 0);
}

TEST(attributes_of_a_queue)
{
    acltdtQueueAttr *attr = acltdtCreateQueueAttr();
    const char *name = "a queue", *got = NULL;
    uint32_t depth = 0;
    size_t size = 0;
    OK(acltdtGetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, sizeof(depth), &size, &depth));
    CHECK(depth == 8 && size == 4);
    OK(acltdtGetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, sizeof(got), &size, &got));
    CHECK(size == 8 && strcmp(got, "") == 0);
    OK(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, sizeof(name), &name));
    OK(acltdtGetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, sizeof(got), &size, &got));
    CHECK(strcmp(got, name) == 0);
    CHECK_ACL(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, 8, &depth), 100000);
    CHECK_ACL(acltdtSetQueueAttr(attr, (acltdtQueueAttrType)2, 4, &depth), 100000);
    CHECK_ACL(acltdtGetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, 3, &size, &depth), 100000);
    OK(acltdtDestroyQueueAttr(attr));
    CHECK_ACL(acltdtDestroyQueueAttr(attr), 100000);
}

TEST(a_queue_belongs_to_a_device)
{
    uint32_t id = 77, other = 77, shallow = 1;
    CHECK_ACL(acltdtCreateQueue(NULL, &id), 107002);
    CHECK_EQ(id, 77);
    setenv("BELAY_CARDS", "2", 1);
    OK(aclrtSetDevice(0));
    OK(acltdtCreateQueue(NULL, &id));
    OK(acltdtCreateQueue(NULL, &other));
    CHECK(id != other);
    for (int i = 0; i < 8; i++) /* the default depth */
        put(id, 1);
    CHECK_ACL(try_put(id), 207014);
    OK(acltdtDestroyQueue(other));
    CHECK_ACL(acltdtDestroyQueue(other), 107000);
    CHECK_ACL(try_put(other), 107000);
    CHECK_MESSAGE("has no queue");
    acltdtQueueAttr *attr = acltdtCreateQueueAttr();
    OK(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &shallow));
    CHECK_ACL(acltdtCreateQueue(attr, &other), 107000);
    OK(acltdtDestroyQueueAttr(attr));
    CHECK_ACL(acltdtCreateQueue(attr, &other), 100000);
    OK(acltdtDestroyQueue(id)); /* with what is in it */
}

TEST(queues_of_one_device_are_not_seen_from_another)
{
    setenv("BELAY_CARDS", "2", 1);
    OK(aclrtSetDevice(0));
    uint32_t id = new_queue(4);
    OK(aclrtSetDevice(1));
    CHECK_ACL(try_put(id), 107000);
    CHECK_MESSAGE("card 1 has no queue");
    OK(aclrtSetDevice(0));
    put(id, 5);
    CHECK_EQ(take(id), 5);
}

TEST(data_of_host_and_card_with_bytes_beside)
{
    OK(aclrtSetDevice(0));
    uint32_t id = new_queue(2);
    char text[100] = "some text", user[96] = "beside", got[100] = "", got_user[96] = "", *card;
    size_t size = 99;
    OK(aclrtMalloc((void **)&card, 4096, HUGE_FIRST));
    OK(aclrtMemset(card, 4096, 3, 4096));
    OK(acltdtEnqueueData(id, text, 10, user, 96, -1, 0));
    OK(acltdtEnqueueData(id, card, 100, NULL, 0, 0, 0));
    CHECK_ACL(acltdtEnqueueData(id, text, 1, user, 97, 0, 0), 107000);
    CHECK_ACL(acltdtDequeueData(id, got, 9, &size, NULL, 0, 0), 107000);
    CHECK_MESSAGE("the message has 10 bytes, the place for it 9");
    CHECK_EQ(size, 99);
    OK(acltdtDequeueData(id, card, 4096, &size, got_user, 96, 0)); /* it was not lost */
    CHECK_EQ(size, 10);
    CHECK(memcmp(user, got_user, 96) == 0);
    OK(aclrtMemcpy(got, 100, card, 100, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(strcmp(got, text) == 0 && got[10] == 3);
    OK(acltdtDequeueData(id, got, 100, &size, NULL, 0, 0));
    CHECK_EQ(size, 100);
    CHECK(got[0] == 3 && got[99] == 3);
    CHECK_ACL(acltdtDequeueData(id, got, 100, &size, NULL, 0, 5), 207013);
    CHECK_ACL(acltdtEnqueueData(id, text, 0, NULL, 0, 0, 0), 100000);
    CHECK_ACL(acltdtEnqueueData(id, ANY_ADDRESS, 8, NULL, 0, 0, 0), 507013);
    CHECK_ACL(try_take(id), 207013);
    OK(acltdtDestroyQueue(id));
}

/* ── Routes ───────────────────────────────────────────────────────────────────────────────── */

static aclError change_route(uint32_t src, uint32_t dst, bool bind, int32_t *status)
{
    acltdtQueueRoute *route = acltdtCreateQueueRoute(src, dst);
    acltdtQueueRouteList *list = acltdtCreateQueueRouteList();
    size_t size = 0;
    OK(acltdtAddQueueRoute(list, route));
    aclError error = bind ? acltdtBindQueueRoutes(list) : acltdtUnbindQueueRoutes(list);
    OK(acltdtGetQueueRoute(list, 0, route));
    OK(acltdtGetQueueRouteParam(route, ACL_TDT_QUEUE_ROUTE_STATUS_INT32, 4, &size, status));
    CHECK_EQ(size, 4);
    OK(acltdtDestroyQueueRouteList(list));
    OK(acltdtDestroyQueueRoute(route));
    return error;
}

static void bind(uint32_t src, uint32_t dst)
{
    int32_t status = 9;
    OK(change_route(src, dst, true, &status));
    CHECK_EQ(status, ACL_TDT_QUEUE_ROUTE_BIND);
}

static void unbind(uint32_t src, uint32_t dst)
{
    int32_t status = 9;
    OK(change_route(src, dst, false, &status));
    CHECK_EQ(status, ACL_TDT_QUEUE_ROUTE_UNBIND);
}

TEST(one_message_goes_to_each_destination)
{
    OK(aclrtSetDevice(0));
    uint32_t src = new_queue(4), a = new_queue(2), b = new_queue(4);
    put(src, 1); /* was there before the route */
    bind(src, a);
    CHECK_EQ(take(a), 1);
    bind(src, b);
    bind(src, b); /* is there already */
    for (uint64_t i = 10; i < 16; i++)
        put(src, i); /* two in each, four wait for room in a */
    CHECK_ACL(try_put(src), 207014);
    CHECK_EQ(take(b), 10);
    CHECK_EQ(take(b), 11);
    CHECK_ACL(try_take(b), 207013); /* both get a message at once */
    CHECK_EQ(take(a), 10);
    CHECK_EQ(take(b), 12);
    put(src, 16);
    unbind(src, a); /* a was the full one */
    for (uint64_t i = 13; i < 17; i++)
        CHECK_EQ(take(b), i);
    CHECK_EQ(take(a), 11);
    CHECK_EQ(take(a), 12);
    CHECK_ACL(try_take(a), 207013);
    unbind(src, a); /* is gone already */
    CHECK_ACL(acltdtDestroyQueue(src), 500001);
    CHECK_ACL(acltdtDestroyQueue(b), 500001);
    CHECK_MESSAGE("unbound first");
    unbind(src, b);
    OK(acltdtDestroyQueue(src));
    OK(acltdtDestroyQueue(a));
    OK(acltdtDestroyQueue(b));
}

TEST(routes_that_cannot_be)
{
    int32_t status = 9;
    OK(aclrtSetDevice(0));
    uint32_t a = new_queue(2), b = new_queue(2), c = new_queue(2);
    CHECK_ACL(change_route(a, a, true, &status), 500001);
    CHECK_EQ(status, 0);
    CHECK_ACL(change_route(a, c + 1, true, &status), 500001);
    bind(a, b);
    CHECK_ACL(change_route(b, c, true, &status), 500001);
    CHECK_MESSAGE("is a destination already");
    CHECK_ACL(change_route(c, a, true, &status), 500001);
    CHECK_ACL(change_route(b, a, true, &status), 500001);
    /* Of several routes the good ones are bound. */
    acltdtQueueRouteList *list = acltdtCreateQueueRouteList();
    acltdtQueueRoute *bad = acltdtCreateQueueRoute(c, c), *good = acltdtCreateQueueRoute(c, b);
    size_t size;
    OK(acltdtAddQueueRoute(list, bad));
    OK(acltdtAddQueueRoute(list, good));
    CHECK_ACL(acltdtBindQueueRoutes(list), 500001);
    OK(acltdtGetQueueRoute(list, 0, bad));
    OK(acltdtGetQueueRouteParam(bad, ACL_TDT_QUEUE_ROUTE_STATUS_INT32, 4, &size, &status));
    CHECK_EQ(status, 0);
    OK(acltdtGetQueueRoute(list, 1, good));
    OK(acltdtGetQueueRouteParam(good, ACL_TDT_QUEUE_ROUTE_STATUS_INT32, 4, &size, &status));
    CHECK_EQ(status, 1);
    CHECK_ACL(acltdtGetQueueRoute(list, 2, good), 100000);
    put(a, 1);
    put(c, 2); /* two sources, one destination */
    CHECK_EQ(take(b), 1);
    CHECK_EQ(take(b), 2);
}

static size_t query(acltdtQueueRouteQueryMode mode, uint32_t src, uint32_t dst, uint32_t *first_dst)
{
    acltdtQueueRouteQueryInfo *info = acltdtCreateQueueRouteQueryInfo();
    acltdtQueueRouteList *list = acltdtCreateQueueRouteList();
    OK(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 4, &mode));
    OK(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32, 4, &src));
    OK(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32, 4, &dst));
    OK(acltdtQueryQueueRoutes(info, list));
    size_t n = acltdtGetQueueRouteNum(list), size;
    if (n > 0) {
        acltdtQueueRoute *route = acltdtCreateQueueRoute(0, 0);
        OK(acltdtGetQueueRoute(list, 0, route));
        OK(acltdtGetQueueRouteParam(route, ACL_TDT_QUEUE_ROUTE_DST_UINT32, 4, &size, first_dst));
        OK(acltdtDestroyQueueRoute(route));
    }
    OK(acltdtDestroyQueueRouteList(list));
    OK(acltdtDestroyQueueRouteQueryInfo(info));
    return n;
}

TEST(queries_find_routes)
{
    uint32_t dst = 99;
    OK(aclrtSetDevice(0));
    uint32_t a = new_queue(2), b = new_queue(2), c = new_queue(2), d = new_queue(2);
    bind(a, c);
    bind(a, d);
    bind(b, c);
    CHECK_EQ(query(ACL_TDT_QUEUE_ROUTE_QUERY_SRC, a, 0, &dst), 2);
    CHECK_EQ(dst, c);
    CHECK_EQ(query(ACL_TDT_QUEUE_ROUTE_QUERY_DST, 0, c, &dst), 2);
    CHECK_EQ(query(ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST, a, d, &dst), 1);
    CHECK_EQ(dst, d);
    CHECK_EQ(query(ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST, b, d, &dst), 0);
    CHECK_EQ(query(ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL, a, c, &dst), 0);
    acltdtQueueRouteQueryInfo *info = acltdtCreateQueueRouteQueryInfo();
    acltdtQueueRouteList *list = acltdtCreateQueueRouteList();
    CHECK_ACL(acltdtQueryQueueRoutes(info, list), 100000);
    CHECK_MESSAGE("mode was never set");
    acltdtQueueRouteQueryMode mode = ACL_TDT_QUEUE_ROUTE_QUERY_DST;
    OK(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 4, &mode));
    CHECK_ACL(acltdtQueryQueueRoutes(info, list), 100000);
    CHECK_MESSAGE("destination queue, which was never set");
}

/* ── Shared buffers ───────────────────────────────────────────────────────────────────────── */

TEST(a_buffer_and_what_is_in_it)
{
    acltdtBuf buf = NULL, copy = NULL;
    char *data = NULL, *same = NULL, user[96] = "";
    size_t size = 0, length = 9;
    OK(acltdtAllocBuf(1000, ACL_TDT_NORMAL_MEM, &buf));
    OK(acltdtGetBufData(buf, (void **)&data, &size));
    CHECK_EQ(size, 1000);
    CHECK_EQ(data[999], 0);
    OK(acltdtGetBufDataLen(buf, &length));
    CHECK_EQ(length, 0);
    strcpy(data, "hello");
    OK(acltdtSetBufDataLen(buf, 6));
    CHECK_ACL(acltdtSetBufDataLen(buf, 1001), 107000);
    OK(acltdtSetBufUserData(buf, "beside", 7, 89));
    CHECK_ACL(acltdtSetBufUserData(buf, "beside", 7, 90), 107000);
    CHECK_ACL(acltdtSetBufUserData(buf, "beside", 7, SIZE_MAX), 107000);
    OK(acltdtCopyBufRef(buf, &copy));
    OK(acltdtFreeBuf(buf));
    CHECK_ACL(acltdtFreeBuf(buf), 107017);
    OK(acltdtGetBufData(copy, (void **)&same, &size));
    CHECK(same == data && strcmp(same, "hello") == 0);
    OK(acltdtGetBufDataLen(copy, &length));
    CHECK_EQ(length, 6);
    OK(acltdtGetBufUserData(copy, user, 96, 0));
    CHECK(strcmp(user + 89, "beside") == 0);
    OK(acltdtFreeBuf(copy));
    CHECK_ACL(acltdtAllocBuf(0, 0, &buf), 107000);
    CHECK_ACL(acltdtAllocBuf((4 * GIB) + 1, 0, &buf), 107000);
    CHECK_ACL(acltdtAllocBuf(1, 2, &buf), 100000);
}

TEST(buffers_form_chains)
{
    acltdtBuf bufs[128], more = NULL, got = NULL;
    uint32_t n = 0;
    for (int i = 0; i < 128; i++)
        OK(acltdtAllocBuf(8, 0, &bufs[i]));
    OK(acltdtGetBufChainNum(bufs[0], &n));
    CHECK_EQ(n, 1);
    CHECK_ACL(acltdtAppendBufChain(bufs[0], bufs[0]), 107000);
    OK(acltdtAppendBufChain(bufs[1], bufs[2]));
    OK(acltdtAppendBufChain(bufs[0], bufs[1]));
    for (int i = 3; i < 128; i++)
        OK(acltdtAppendBufChain(bufs[0], bufs[i]));
    OK(acltdtGetBufChainNum(bufs[0], &n));
    CHECK_EQ(n, 128);
    OK(acltdtAllocBuf(8, 0, &more));
    CHECK_ACL(acltdtAppendBufChain(bufs[0], more), 107000);
    CHECK_MESSAGE("longest has 128");
    for (uint32_t i = 0; i < 128; i++) {
        OK(acltdtGetBufFromChain(bufs[0], i, &got));
        CHECK(got == bufs[i]);
    }
    CHECK_ACL(acltdtGetBufFromChain(bufs[0], 128, &got), 107000);
    CHECK_ACL(acltdtGetBufChainNum(bufs[5], &n), 107000); /* not the head */
    CHECK_ACL(acltdtFreeBuf(bufs[5]), 107000);
    CHECK_ACL(acltdtAppendBufChain(more, bufs[5]), 107000);
    OK(acltdtFreeBuf(bufs[0]));
    CHECK_ACL(acltdtFreeBuf(bufs[5]), 107017); /* freed with the head */
    OK(acltdtFreeBuf(more));
}

TEST(buffers_travel_by_reference)
{
    OK(aclrtSetDevice(0));
    uint32_t src = new_queue(2), a = new_queue(2), b = new_queue(2);
    acltdtBuf buf = NULL, behind = NULL, from_a = NULL, from_b = NULL, got = NULL;
    char *data = NULL, *data_a = NULL, *data_b = NULL, text[8] = "";
    size_t size;
    OK(acltdtAllocBuf(4, 0, &buf));
    OK(acltdtAllocBuf(4, 0, &behind));
    OK(acltdtGetBufData(buf, (void **)&data, &size));
    memcpy(data, "abc", 3);
    OK(acltdtSetBufDataLen(buf, 3));
    OK(acltdtGetBufData(behind, (void **)&data_b, &size));
    memcpy(data_b, "de", 3);
    OK(acltdtSetBufDataLen(behind, 3));
    OK(acltdtAppendBufChain(buf, behind));
    CHECK_ACL(acltdtEnqueue(src, behind, 0), 107000);
    OK(acltdtEnqueue(src, buf, 0));
    CHECK_ACL(acltdtEnqueue(src, buf, 0), 107017); /* it is the queue's */
    CHECK_ACL(acltdtGetBufDataLen(behind, &size), 107017);
    bind(src, a);
    bind(src, b);
    OK(acltdtDequeue(a, &from_a, 0)); /* moved when only a was bound */
    CHECK_ACL(acltdtDequeue(b, &from_b, 1), 500001);
    OK(acltdtEnqueue(src, from_a, 0));
    OK(acltdtDequeue(a, &from_a, -1));
    OK(acltdtDequeue(b, &from_b, -1));
    OK(acltdtGetBufData(from_a, (void **)&data_a, &size));
    OK(acltdtGetBufData(from_b, (void **)&data_b, &size));
    CHECK(data_a == data && data_b == data);
    OK(acltdtGetBufFromChain(from_b, 1, &got));
    OK(acltdtFreeBuf(from_a));
    OK(acltdtEnqueue(src, from_b, 0));
    OK(acltdtDequeueData(a, text, 8, &size, NULL, 0, 0)); /* a chain as bytes */
    CHECK(size == 6 && strcmp(text, "abcde") == 0);
    put(b, 1);
    CHECK_ACL(acltdtEnqueue(b, got, 0), 107017);
    OK(acltdtAllocBuf(4, 0, &buf));
    CHECK_ACL(acltdtEnqueue(b, buf, 0), 500001); /* full */
    OK(acltdtSetBufDataLen(buf, 4));             /* and still ours */
    OK(acltdtFreeBuf(buf));
}

TEST(the_other_name_of_buffers)
{
    aclrtMbuf buf = NULL, copy = NULL, got = NULL;
    uint32_t n = 0;
    size_t length = 0;
    void *data = NULL;
    OK(aclrtAllocBuf(&buf, 16));
    OK(aclrtGetBufData(buf, &data, &length));
    CHECK_EQ(length, 16);
    OK(aclrtSetBufDataLen(buf, 16));
    OK(aclrtGetBufDataLen(buf, &length));
    OK(aclrtSetBufUserData(buf, "u", 2, 0));
    OK(aclrtCopyBufRef(buf, &copy));
    OK(aclrtGetBufUserData(copy, data, 2, 0));
    CHECK(strcmp(data, "u") == 0);
    OK(aclrtAppendBufChain(buf, copy));
    OK(aclrtGetBufChainNum(buf, &n));
    CHECK_EQ(n, 2);
    OK(aclrtGetBufFromChain(buf, 1, &got));
    CHECK(got == copy);
    OK(aclrtFreeBuf(buf));
    CHECK_ACL(aclrtFreeBuf(copy), 107017);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_of_a_queue),
        cmocka_unit_test(a_queue_belongs_to_a_device),
        cmocka_unit_test(queues_of_one_device_are_not_seen_from_another),
        cmocka_unit_test(data_of_host_and_card_with_bytes_beside),
        cmocka_unit_test(one_message_goes_to_each_destination),
        cmocka_unit_test(routes_that_cannot_be),
        cmocka_unit_test(queries_find_routes),
        cmocka_unit_test(a_buffer_and_what_is_in_it),
        cmocka_unit_test(buffers_form_chains),
        cmocka_unit_test(buffers_travel_by_reference),
        cmocka_unit_test(the_other_name_of_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
