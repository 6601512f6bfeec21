/* SPDX-License-Identifier: Apache-2.0
 *
 * defragment.c - a card with plenty of free memory that has no 1 GiB page to give, because what is
 * left of many small blocks lies all over it; then bly_card_defrag() moves these blocks together
 * under their addresses. The one example here that knows Belay: the call has no twin in AscendCL.
 */
#include "acl_check.h"

#include <belay/card.h>
#include <stdint.h>
#include <string.h>

#define MIB   ((size_t)1 << 20)
#define BLOCK (2 * MIB)
#define MAX   4096

static char *blocks[MAX];
static int n_blocks;

static void fill_card(void)
{
    size_t free, total;
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &free, &total));
    for (; n_blocks < MAX && (size_t)(n_blocks + 1) * BLOCK <= free; n_blocks++)
        CHECK_ACL(aclrtMallocAlign32((void **)&blocks[n_blocks], BLOCK, ACL_MEM_MALLOC_HUGE_FIRST));
}

/* One block of eight stays, with content. */
static void scatter(void)
{
    for (int i = 0; i < n_blocks; i++) {
        if (i % 8 == 0) {
            CHECK_ACL(aclrtMemset(blocks[i], BLOCK, i / 8, BLOCK));
        } else {
            CHECK_ACL(aclrtFree(blocks[i]));
            blocks[i] = NULL;
        }
    }
}

static void check_content(void)
{
    for (int i = 0; i < n_blocks; i += 8) {
        unsigned char last;
        CHECK_ACL(aclrtMemcpy(&last, 1, blocks[i] + BLOCK - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        if (last != (unsigned char)(i / 8)) {
            fprintf(stderr, "block %d is damaged\n", i);
            exit(1);
        }
    }
}

static void show(const char *when)
{
    bly_card card = {.struct_size = sizeof card};
    if (bly_card_info(0, &card) != BLY_OK)
        exit(1);
    printf("%-8s free %5zu MiB   longest run %5zu MiB   free 1 GiB pages %d\n", when,
           card.free / MIB, card.longest_run / MIB, (int)(card.free_giants >> 30));
}

int main(void)
{
    void *giant = NULL;
    setenv("BELAY_HBM", "4GiB", 0);
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    fill_card();
    scatter();
    show("before");
    aclError error = aclrtMallocWithCfg(&giant, (size_t)1 << 30, ACL_MEM_MALLOC_HUGE1G_ONLY, NULL);
    printf("\none page of 1 GiB: refused with %d\n  %s\n\n", error, aclGetRecentErrMsg());

    bly_defrag defrag = {.struct_size = sizeof defrag};
    if (bly_card_defrag(&defrag) != BLY_OK) {
        fprintf(stderr, "%s\n", bly_last_error());
        return 1;
    }
    printf("moved %zu MiB in %.1f ms, %.1f GB/s; no address changed\n\n", defrag.moved / MIB,
           (double)defrag.time_ns / 1e6, (double)defrag.copied / (double)defrag.time_ns);
    show("after");
    check_content();
    CHECK_ACL(aclrtMallocWithCfg(&giant, (size_t)1 << 30, ACL_MEM_MALLOC_HUGE1G_ONLY, NULL));
    printf("\none page of 1 GiB: allocated at %p\n", giant);

    CHECK_ACL(aclrtFree(giant));
    for (int i = 0; i < n_blocks; i += 8)
        CHECK_ACL(aclrtFree(blocks[i]));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return error == ACL_SUCCESS;
}
