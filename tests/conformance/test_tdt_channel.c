/* SPDX-License-Identifier: Apache-2.0
 * Tensor channels: datasets sent and received, capacity, order, threads that wait. */
#include "acl_test.h"

#include <acl/acl_tdt.h>
#include <pthread.h>

static acltdtChannelHandle *open_channel(size_t capacity)
{
    OK(aclrtSetDevice(0));
    acltdtChannelHandle *channel = acltdtCreateChannelWithCapacity(0, "test", capacity);
    CHECK(channel != NULL);
    return channel;
}

static acltdtDataset *dataset_of(acltdtDataItem *item)
{
    acltdtDataset *dataset = acltdtCreateDataset();
    CHECK(dataset != NULL && item != NULL);
    OK(acltdtAddDataItem(dataset, item));
    return dataset;
}

static acltdtDataItem *number_item(int64_t *number)
{
    int64_t one = 1;
    return acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &one, 1, ACL_INT64, number,
                                sizeof(*number));
}

static void drop(acltdtDataset *dataset)
{
    for (size_t i = 0; i < acltdtGetDatasetSize(dataset); i++)
        OK(acltdtDestroyDataItem(acltdtGetDataItem(dataset, i)));
    OK(acltdtDestroyDataset(dataset));
}

static aclError send_number(acltdtChannelHandle *channel, int64_t number, int32_t timeout)
{
    acltdtDataset *dataset = dataset_of(number_item(&number));
    aclError error = acltdtSendTensor(channel, dataset, timeout);
    drop(dataset);
    return error;
}

static int64_t receive_number(acltdtChannelHandle *channel)
{
    acltdtDataset *dataset = acltdtCreateDataset();
    OK(acltdtReceiveTensor(channel, dataset, 0));
    CHECK_EQ(acltdtGetDatasetSize(dataset), 1);
    int64_t number = *(int64_t *)acltdtGetDataAddrFromItem(acltdtGetDataItem(dataset, 0));
    OK(acltdtDestroyDataset(dataset));
    return number;
}

static size_t size_of(acltdtChannelHandle *channel)
{
    size_t size = 99;
    OK(acltdtQueryChannelSize(channel, &size));
    return size;
}

TEST(a_dataset_arrives_as_it_was_sent)
{
    acltdtChannelHandle *channel = open_channel(4);
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    char bytes[3] = {7, 8, 9};
    int64_t dims[2] = {2, 3}, three = 3, got[3] = {-1, -1, -1};
    acltdtDataset *dataset = dataset_of(
        acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, numbers, sizeof(numbers)));
    OK(acltdtAddDataItem(dataset, acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &three, 1, ACL_INT8,
                                                       bytes, sizeof(bytes))));
    OK(acltdtAddDataItem(dataset, acltdtCreateDataItem(ACL_TENSOR_DATA_END_OF_SEQUENCE, NULL, 0,
                                                       ACL_FLOAT, NULL, 0)));
    OK(acltdtSendTensor(channel, dataset, 1000));
    memset(numbers, 0, sizeof(numbers)); /* the message has its own */
    drop(dataset);
    CHECK_EQ(size_of(channel), 1);

    acltdtDataset *received = acltdtCreateDataset();
    OK(acltdtReceiveTensor(channel, received, -1));
    CHECK_EQ(size_of(channel), 0);
    CHECK_EQ(acltdtGetDatasetSize(received), 3);
    CHECK(strcmp(acltdtGetDatasetName(received), "") == 0);
    acltdtDataItem *item = acltdtGetDataItem(received, 0);
    CHECK_EQ(acltdtGetTensorTypeFromItem(item), ACL_TENSOR_DATA_TENSOR);
    CHECK_EQ(acltdtGetDataTypeFromItem(item), ACL_FLOAT);
    CHECK_EQ(acltdtGetDataSizeFromItem(item), 24);
    CHECK_EQ(acltdtGetDimNumFromItem(item), 2);
    CHECK_ACL(acltdtGetDimsFromItem(item, got, 1), 100000);
    OK(acltdtGetDimsFromItem(item, got, 3));
    CHECK(got[0] == 2 && got[1] == 3 && got[2] == -1);
    const float *values = acltdtGetDataAddrFromItem(item);
    for (int i = 0; i < 6; i++)
        CHECK(values[i] == (float)(i + 1));
    CHECK_EQ((uintptr_t)values % 64, 0);
    size_t n_slices = 9, slice = 9;
    OK(acltdtGetSliceInfoFromItem(item, &n_slices, &slice));
    CHECK(n_slices == 0 && slice == 0);
    item = acltdtGetDataItem(received, 1);
    CHECK(memcmp(acltdtGetDataAddrFromItem(item), bytes, 3) == 0);
    item = acltdtGetDataItem(received, 2);
    CHECK_EQ(acltdtGetTensorTypeFromItem(item), ACL_TENSOR_DATA_END_OF_SEQUENCE);
    CHECK_EQ(acltdtGetDataTypeFromItem(item), ACL_DT_UNDEFINED);
    CHECK_EQ(acltdtGetDataSizeFromItem(item), 0);
    CHECK(acltdtGetDataAddrFromItem(item) == NULL);
    CHECK(acltdtGetDataItem(received, 3) == NULL);
    CHECK_MESSAGE("index 3");
    OK(acltdtDestroyDataset(received));
    OK(acltdtDestroyChannel(channel));
}

TEST(tensors_come_from_card_memory_too)
{
    acltdtChannelHandle *channel = open_channel(2);
    int64_t dim = 1024, *card = NULL, host[1024], spare = 1;
    OK(aclrtMalloc((void **)&card, sizeof(host), HUGE_FIRST));
    for (int i = 0; i < 1024; i++)
        host[i] = i * 3;
    OK(aclrtMemcpy(card, sizeof(host), host, sizeof(host), ACL_MEMCPY_HOST_TO_DEVICE));
    acltdtDataset *dataset = dataset_of(
        acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &dim, 1, ACL_INT64, card, sizeof(host)));
    CHECK_ACL(acltdtAddDataItem(dataset, number_item(&spare)), 100000);
    CHECK_MESSAGE("on the host");
    OK(acltdtSendTensor(channel, dataset, 0));
    OK(aclrtFree(card));
    CHECK_ACL(acltdtSendTensor(channel, dataset, 0), 507013); /* its memory is gone */
    CHECK_EQ(size_of(channel), 1);
    acltdtDataset *received = acltdtCreateDataset();
    OK(acltdtReceiveTensor(channel, received, 0));
    CHECK(memcmp(acltdtGetDataAddrFromItem(acltdtGetDataItem(received, 0)), host, sizeof(host)) ==
          0);
    OK(acltdtDestroyDataset(received));
    OK(acltdtDestroyChannel(channel));
}

TEST(a_channel_holds_its_capacity_in_order)
{
    acltdtChannelHandle *channel = open_channel(3);
    acltdtDataset *dataset = acltdtCreateDataset();
    CHECK_ACL(acltdtReceiveTensor(channel, dataset, 0), 207013);
    CHECK_ACL(acltdtReceiveTensor(channel, dataset, 5), 207013);
    CHECK_EQ(acltdtGetDatasetSize(dataset), 0);
    for (int64_t i = 0; i < 3; i++)
        OK(send_number(channel, i, -1));
    CHECK_ACL(send_number(channel, 9, 0), 207014);
    CHECK_MESSAGE("is full: 3 messages");
    CHECK_ACL(send_number(channel, 9, 5), 207014);
    CHECK_EQ(size_of(channel), 3);
    for (int64_t i = 3; i < 10; i++) {
        CHECK_EQ(receive_number(channel), i - 3);
        OK(send_number(channel, i, 0));
    }
    OK(acltdtCleanChannel(channel));
    CHECK_EQ(size_of(channel), 0);
    OK(send_number(channel, 77, 0));
    CHECK_EQ(receive_number(channel), 77);
    CHECK_ACL(acltdtReceiveTensor(channel, dataset, -2), 107000);
    OK(acltdtDestroyDataset(dataset));
    OK(acltdtDestroyChannel(channel));
}

TEST(what_a_dataset_takes)
{
    acltdtChannelHandle *channel = open_channel(4);
    int64_t number = 5;
    OK(send_number(channel, 1, 0));
    OK(send_number(channel, 2, 0));
    acltdtDataItem *item = number_item(&number);
    acltdtDataset *added = dataset_of(item), *received = acltdtCreateDataset();
    CHECK_ACL(acltdtReceiveTensor(channel, added, 0), 100000);
    CHECK_EQ(size_of(channel), 2); /* nothing is lost */
    OK(acltdtReceiveTensor(channel, received, 0));
    acltdtDataItem *old = acltdtGetDataItem(received, 0);
    CHECK_ACL(acltdtAddDataItem(received, item), 200006);
    OK(acltdtReceiveTensor(channel, received, 0)); /* replaces */
    CHECK_EQ(acltdtGetDatasetSize(received), 1);
    CHECK(acltdtGetDataAddrFromItem(old) == NULL);
    CHECK_EQ(*(int64_t *)acltdtGetDataAddrFromItem(acltdtGetDataItem(received, 0)), 2);
    OK(acltdtDestroyDataItem(acltdtGetDataItem(received, 0)));
    OK(acltdtDestroyDataset(received));
    CHECK_ACL(acltdtDestroyDataset(received), 100000);

    OK(acltdtDestroyDataItem(item)); /* still in its dataset */
    CHECK_ACL(acltdtDestroyDataItem(item), 100000);
    CHECK_ACL(acltdtSendTensor(channel, added, 0), 100000);
    OK(acltdtDestroyDataset(added));
    acltdtDataset *empty = acltdtCreateDataset();
    CHECK_ACL(acltdtSendTensor(channel, empty, 0), 107000);
    OK(acltdtAddDataItem(
        empty, acltdtCreateDataItem(ACL_TENSOR_DATA_SLICE_TENSOR, NULL, 0, ACL_INT8, NULL, 0)));
    CHECK_ACL(acltdtSendTensor(channel, empty, 0), 100000);
    CHECK_EQ(size_of(channel), 0);
    OK(acltdtDestroyChannel(channel));
}

TEST(bounds_of_channels_and_items)
{
    int64_t dims[200] = {1};
    CHECK(acltdtCreateChannelWithCapacity(7, "no such device", 4) == NULL);
    CHECK_MESSAGE("107001 acltdtCreateChannelWithCapacity: device 7");
    OK(aclrtSetDevice(0));
    CHECK(acltdtCreateChannelWithCapacity(0, NULL, 4) == NULL);
    CHECK(acltdtCreateChannelWithCapacity(0, "x", 1) == NULL);
    CHECK_MESSAGE("2 .. 8192");
    CHECK(acltdtCreateChannelWithCapacity(0, "x", 8193) == NULL);
    CHECK(acltdtCreateChannelWithCapacity(0, "x", SIZE_MAX) == NULL);
    char name[129];
    memset(name, 'n', 128);
    name[128] = 0;
    CHECK(acltdtCreateChannelWithCapacity(0, name, 2) == NULL);
    name[127] = 0;
    acltdtChannelHandle *channel = acltdtCreateChannelWithCapacity(0, name, 8192);
    CHECK(channel != NULL);
    OK(acltdtDestroyChannel(channel));
    CHECK_ACL(acltdtDestroyChannel(channel), 100000);
    CHECK_ACL(acltdtStopChannel(channel), 100000);
    CHECK(acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 129, ACL_INT8, dims, 1) == NULL);
    CHECK(acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 0, ACL_INT8, dims, 1) == NULL);
    CHECK(acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, NULL, 1, ACL_INT8, dims, 1) == NULL);
    CHECK(acltdtCreateDataItem(ACL_TENSOR_DATA_ABNORMAL, dims, 1, ACL_INT8, dims, 1) == NULL);
    acltdtDataItem *item =
        acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 128, ACL_INT8, dims, 1);
    CHECK_EQ(acltdtGetDimNumFromItem(item), 128);
    OK(acltdtDestroyDataItem(item));
}

/* ── Threads that wait ────────────────────────────────────────────────────────────────────── */

struct waiter {
    acltdtChannelHandle *channel;
    bool sends;
    aclError error;
    atomic_bool done;
};

static void *wait_in_call(void *arg)
{
    struct waiter *waiter = arg;
    acltdtDataset *dataset = acltdtCreateDataset();
    waiter->error = waiter->sends ? send_number(waiter->channel, 1, -1)
                                  : acltdtReceiveTensor(waiter->channel, dataset, -1);
    OK(acltdtDestroyDataset(dataset));
    atomic_store(&waiter->done, true);
    return NULL;
}

TEST(stopping_wakes_those_who_wait)
{
    acltdtChannelHandle *empty = open_channel(2), *full = open_channel(2);
    OK(send_number(full, 1, 0));
    OK(send_number(full, 2, 0));
    struct waiter waiters[2] = {{empty, false, 0, false}, {full, true, 0, false}};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, wait_in_call, &waiters[i]) == 0);
        while (!atomic_load(&waiters[i].done)) /* it may not wait yet */
            OK(acltdtStopChannel(waiters[i].channel));
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK_EQ(waiters[0].error, 207013);
    CHECK_EQ(waiters[1].error, 207014);
    OK(send_number(empty, 3, 0)); /* a stopped channel goes on */
    CHECK_EQ(receive_number(empty), 3);
    OK(acltdtDestroyChannel(empty));
    OK(acltdtDestroyChannel(full));
}

TEST(destroying_a_channel_ends_the_waits_in_it)
{
    acltdtChannelHandle *channel = open_channel(2);
    struct waiter waiter = {channel, false, 0, false};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_in_call, &waiter) == 0);
    OK(acltdtDestroyChannel(channel));
    CHECK(pthread_join(thread, NULL) == 0);
    /* It waited and was told, or came too late. */
    CHECK(waiter.error == 107000 || waiter.error == 100000);
}

#define PER_THREAD 3000

static void *send_many(void *arg)
{
    for (int64_t i = 0; i < PER_THREAD; i++)
        OK(send_number(arg, i, -1));
    return NULL;
}

static atomic_long sum;

static void *receive_many(void *arg)
{
    acltdtDataset *dataset = acltdtCreateDataset();
    for (int64_t i = 0; i < PER_THREAD; i++) {
        OK(acltdtReceiveTensor(arg, dataset, -1));
        atomic_fetch_add(&sum,
                         *(int64_t *)acltdtGetDataAddrFromItem(acltdtGetDataItem(dataset, 0)));
    }
    OK(acltdtDestroyDataset(dataset));
    return NULL;
}

TEST(many_senders_and_receivers_lose_nothing)
{
    acltdtChannelHandle *channel = open_channel(4);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, i < 2 ? send_many : receive_many, channel) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQ(size_of(channel), 0);
    CHECK_EQ(atomic_load(&sum), 2L * PER_THREAD * (PER_THREAD - 1) / 2);
    OK(acltdtDestroyChannel(channel));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dataset_arrives_as_it_was_sent),
        cmocka_unit_test(tensors_come_from_card_memory_too),
        cmocka_unit_test(a_channel_holds_its_capacity_in_order),
        cmocka_unit_test(what_a_dataset_takes),
        cmocka_unit_test(bounds_of_channels_and_items),
        cmocka_unit_test(stopping_wakes_those_who_wait),
        cmocka_unit_test(destroying_a_channel_ends_the_waits_in_it),
        cmocka_unit_test(many_senders_and_receivers_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
