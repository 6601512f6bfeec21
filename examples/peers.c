/* SPDX-License-Identifier: Apache-2.0
 *
 * peers.c - three ways by which a card reaches what lies on another: run it with BELAY_CARDS=2 or
 * more.
 *
 *   copy        all of it is copied to a block of the own card, then read there
 *   mapping     a handle of the other card is mapped, access is granted, parts are read in place
 *   broadcast   one card's data to all others: one copy each, all streams at once
 *
 * The smaller the part that is needed, the better the mapping; what is read again and again is
 * better copied. On the software card both ways have the host's bandwidth; the figures show what
 * the ways cost beside it.
 */
#include "acl_check.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#define MIB    ((size_t)1 << 20)
#define SIZE   (64 * MIB)
#define PIECE  ((size_t)64 << 10)
#define ROUNDS 8
#define MAX    64

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Memory of card 1, contiguous as peers like it, at an address that card 0 may use too. */
static char *map_far(aclrtDrvMemHandle *handle)
{
    void *range;
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_MEM_P2P_HUGE,
                                 .location = {1, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtMemAccessDesc reader = {
        ACL_RT_MEM_ACCESS_FLAGS_READWRITE, {0, ACL_MEM_LOCATION_TYPE_DEVICE}, {0}};
    CHECK_ACL(aclrtReserveMemAddress(&range, SIZE, 0, NULL, 0));
    CHECK_ACL(aclrtMallocPhysical(handle, SIZE, &prop, 0));
    CHECK_ACL(aclrtMapMem(range, SIZE, 0, *handle, 0));
    CHECK_ACL(aclrtMemSetAccess(range, SIZE, &reader, 1));
    CHECK_ACL(aclrtMemset(range, SIZE, 0x5a, SIZE));
    return range;
}

/* Reads every `step`th piece of `from` into `to`. */
static void read_pieces(char *to, const char *from, size_t step, aclrtStream stream)
{
    for (size_t at = 0; at < SIZE; at += step * PIECE)
        CHECK_ACL(
            aclrtMemcpyAsync(to, PIECE, from + at, PIECE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
}

static void compare(const char *far, char *near, char *piece, aclrtStream stream)
{
    static const size_t steps[] = {1, 4, 16, 64, 1024};
    printf("%-28s %14s %14s\n", "of 64 MiB are needed", "copied, us", "mapped, us");
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        double copied = 0, mapped = 0;
        for (int round = 0; round <= ROUNDS; round++) {
            double start = now_us();
            CHECK_ACL(aclrtMemcpyAsync(near, SIZE, far, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
            read_pieces(piece, near, steps[i], stream);
            double middle = now_us();
            read_pieces(piece, far, steps[i], stream);
            if (round > 0) { /* the first touch of the memory is not compared */
                copied += middle - start;
                mapped += now_us() - middle;
            }
        }
        printf("%20zu KiB     %14.0f %14.0f\n", SIZE / steps[i] >> 10, copied / ROUNDS,
               mapped / ROUNDS);
    }
}

/* From card 0 to all others, each by a stream of card 0. */
static void broadcast(int32_t n_cards, const char *source)
{
    char *targets[MAX];
    aclrtStream streams[MAX];
    for (int32_t i = 1; i < n_cards; i++) {
        CHECK_ACL(aclrtSetDevice(i));
        CHECK_ACL(
            aclrtMallocWithCfg((void **)&targets[i], SIZE, ACL_MEM_MALLOC_HUGE_FIRST_P2P, NULL));
        CHECK_ACL(aclrtMemset(targets[i], SIZE, 0, SIZE));
        CHECK_ACL(aclrtSetDevice(0));
        CHECK_ACL(aclrtCreateStream(&streams[i]));
    }
    double start = now_us();
    for (int32_t i = 1; i < n_cards; i++)
        CHECK_ACL(aclrtMemcpyAsync(targets[i], SIZE, source, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                   streams[i]));
    for (int32_t i = 1; i < n_cards; i++)
        CHECK_ACL(aclrtSynchronizeStream(streams[i]));
    double us = now_us() - start;
    printf("\nbroadcast of 64 MiB to %d cards: %.0f us, %.1f GB/s in sum\n", (int)n_cards - 1, us,
           (double)SIZE * (n_cards - 1) / us / 1e3);
    for (int32_t i = 1; i < n_cards; i++) {
        unsigned char last;
        CHECK_ACL(aclrtMemcpy(&last, 1, targets[i] + SIZE - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        if (last != 0x5a)
            exit(1);
        CHECK_ACL(aclrtDestroyStream(streams[i]));
        CHECK_ACL(aclrtFree(targets[i]));
    }
}

int main(void)
{
    uint32_t n_cards;
    aclrtDrvMemHandle handle;
    aclrtStream stream;
    char *near, *piece;
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtGetDeviceCount(&n_cards));
    if (n_cards < 2) {
        printf("this example needs two cards: set BELAY_CARDS=2\n");
        return 0;
    }
    for (uint32_t i = 0; i < n_cards; i++)
        CHECK_ACL(aclrtSetDevice((int32_t)i));
    CHECK_ACL(aclrtSetDevice(0));
    for (uint32_t i = 1; i < n_cards; i++) {
        int32_t can;
        CHECK_ACL(aclrtDeviceCanAccessPeer(&can, 0, (int32_t)i));
        if (can == 0) {
            printf("cards 0 and %u share no switch (BELAY_PEER)\n", i);
            return 0;
        }
        CHECK_ACL(aclrtDeviceEnablePeerAccess((int32_t)i, 0));
    }
    CHECK_ACL(aclrtCreateStream(&stream));
    CHECK_ACL(aclrtMalloc((void **)&near, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMalloc((void **)&piece, PIECE, ACL_MEM_MALLOC_HUGE_FIRST));
    char *far = map_far(&handle);
    compare(far, near, piece, stream);
    broadcast((int32_t)n_cards, near);

    CHECK_ACL(aclrtFree(near));
    CHECK_ACL(aclrtFree(piece));
    CHECK_ACL(aclrtUnmapMem(far));
    CHECK_ACL(aclrtFreePhysical(handle));
    CHECK_ACL(aclrtReleaseMemAddress(far));
    CHECK_ACL(aclrtDestroyStream(stream));
    for (uint32_t i = 0; i < n_cards; i++)
        CHECK_ACL(aclrtResetDevice((int32_t)i));
    CHECK_ACL(aclFinalize());
    return 0;
}
