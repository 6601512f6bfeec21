/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_cache.c - a cache of keys and values that grows while a model generates text, twice:
 *
 *   realloc   a block that is too small is replaced by a larger one, and its content copied: the
 *             address changes, and for a moment both blocks are on the card
 *   mapped    the range for the longest text is reserved at start, without memory; pages are
 *             mapped behind it as the text grows: nothing is copied, the address stays
 *
 * At the end the mapped cache sleeps (its memory goes back to the card) and wakes at its address.
 */
#include "acl_check.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#define MIB         ((size_t)1 << 20)
#define TOKEN       ((size_t)512 << 10) /* keys and values of one token, all layers */
#define LONGEST     1024                /* tokens */
#define PAGE        (8 * MIB)           /* mapped at once */
#define PAGES       (LONGEST * TOKEN / PAGE)
#define FIRST_BLOCK (16 * TOKEN)

struct figures {
    size_t copied, peak;
    int addresses;
    double ms;
};

static char *token; /* what is written, in pinned memory */
static aclrtStream stream;
static size_t free_at_start;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void note_peak(struct figures *figures)
{
    size_t free, total;
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    if (free_at_start - free > figures->peak)
        figures->peak = free_at_start - free;
}

static void write_token(char *cache, int i)
{
    memset(token, i & 0xff, TOKEN);
    CHECK_ACL(aclrtMemcpyAsync(cache + (size_t)i * TOKEN, TOKEN, token, TOKEN,
                               ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
}

/* The last byte of each token is as it was written. */
static void check_tokens(const char *cache)
{
    for (int i = 0; i < LONGEST; i++) {
        unsigned char last;
        CHECK_ACL(aclrtMemcpy(&last, 1, cache + (size_t)(i + 1) * TOKEN - 1, 1,
                              ACL_MEMCPY_DEVICE_TO_HOST));
        if (last != (i & 0xff)) {
            fprintf(stderr, "token %d is damaged: %d\n", i, last);
            exit(1);
        }
    }
}

static struct figures grow_by_realloc(void)
{
    struct figures figures = {.addresses = 1};
    size_t size = FIRST_BLOCK;
    char *cache;
    double start = now_ms();
    CHECK_ACL(aclrtMallocAlign32((void **)&cache, size, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < LONGEST; i++) {
        if ((size_t)(i + 1) * TOKEN > size) {
            char *larger;
            CHECK_ACL(aclrtMallocAlign32((void **)&larger, 2 * size, ACL_MEM_MALLOC_HUGE_FIRST));
            note_peak(&figures);
            CHECK_ACL(aclrtMemcpyAsync(larger, 2 * size, cache, size, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                       stream));
            CHECK_ACL(aclrtSynchronizeStream(stream));
            CHECK_ACL(aclrtFree(cache));
            figures.copied += size;
            figures.addresses++;
            cache = larger;
            size *= 2;
        }
        write_token(cache, i);
    }
    figures.ms = now_ms() - start;
    note_peak(&figures);
    check_tokens(cache);
    CHECK_ACL(aclrtFree(cache));
    return figures;
}

static aclrtDrvMemHandle handles[PAGES];
static size_t n_pages;

static void map_page(char *cache)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    CHECK_ACL(aclrtMallocPhysical(&handles[n_pages], PAGE, &prop, 0));
    CHECK_ACL(aclrtMapMem(cache + n_pages * PAGE, PAGE, 0, handles[n_pages], 0));
    n_pages++;
}

static void unmap_pages(char *cache)
{
    while (n_pages > 0) {
        n_pages--;
        CHECK_ACL(aclrtUnmapMem(cache + n_pages * PAGE));
        CHECK_ACL(aclrtFreePhysical(handles[n_pages]));
    }
}

static struct figures grow_by_mapping(void)
{
    struct figures figures = {.addresses = 1};
    void *range;
    double start = now_ms();
    CHECK_ACL(aclrtReserveMemAddress(&range, LONGEST * TOKEN, 0, NULL, 1));
    char *cache = range;
    for (int i = 0; i < LONGEST; i++) {
        if ((size_t)(i + 1) * TOKEN > n_pages * PAGE)
            map_page(cache);
        write_token(cache, i);
    }
    figures.ms = now_ms() - start;
    note_peak(&figures);
    check_tokens(cache);

    unmap_pages(cache);
    CHECK_ACL(aclrtReleaseMemAddress(range));
    return figures;
}

/* All memory goes back to the card, and other memory comes, at the same address. */
static void sleep_and_wake(void)
{
    size_t awake, asleep, total;
    void *range;
    CHECK_ACL(aclrtReserveMemAddress(&range, LONGEST * TOKEN, 0, NULL, 1));
    for (size_t i = 0; i < PAGES; i++)
        map_page(range);
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &awake, &total));
    unmap_pages(range);
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &asleep, &total));
    map_page(range);
    write_token(range, 7);
    printf("\nasleep a full cache holds nothing (%zu MiB came back), awake it is at %p as before\n",
           (asleep - awake) / MIB, range);
    unmap_pages(range);
    CHECK_ACL(aclrtReleaseMemAddress(range));
}

static void show(const char *what, const struct figures *figures)
{
    printf("%-10s %12.1f %14zu %14zu %12d\n", what, figures->ms, figures->copied / MIB,
           figures->peak / MIB, figures->addresses);
}

int main(void)
{
    size_t total;
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtCreateStream(&stream));
    CHECK_ACL(aclrtMallocHost((void **)&token, TOKEN));
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_at_start, &total));
    printf("%d tokens of %zu KiB: %zu MiB in the end\n\n", LONGEST, TOKEN >> 10,
           LONGEST * TOKEN / MIB);
    (void)grow_by_realloc(); /* the first touch of the card's memory is not compared */
    (void)grow_by_mapping();
    struct figures reallocated = grow_by_realloc();
    struct figures mapped = grow_by_mapping();
    printf("%-10s %12s %14s %14s %12s\n", "", "ms", "copied MiB", "peak MiB", "addresses");
    show("realloc", &reallocated);
    show("mapped", &mapped);
    sleep_and_wake();
    CHECK_ACL(aclrtFreeHost(token));
    CHECK_ACL(aclrtDestroyStream(stream));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return 0;
}
