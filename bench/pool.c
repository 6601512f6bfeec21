/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - the pool beside allocators of host memory that are installed: pairs by size, the spread
 * of single calls, threads, frees of another thread, many blocks; host memory for each block.
 *
 *   pool [--json] [--quick] [metadata | pairs | single | threads | crossing | crowd]...
 *
 * With --pair SIZE ROUNDS, --steady ROUNDS or --crowd BLOCKS ROUNDS it does that many pairs and
 * nothing else: scripts/bench.sh --instructions counts what they take.
 */
#include <belay/pool.h>

#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pool_bench.h"

static bly_pool *pool;
static aclrtStream stream;

static void must(bly_status status, const char *what)
{
    if (status != BLY_OK)
        bench_cannot("%s: %s: %s", what, bly_status_name(status), bly_last_error());
}

static void *pool_alloc(size_t size)
{
    void *block = NULL;
    if (unlikely(bly_pool_alloc(pool, size, stream, &block) != BLY_OK))
        bench_cannot("bly_pool_alloc of %zu bytes: %s", size, bly_last_error());
    return block;
}

static void pool_free(void *block)
{
    if (unlikely(bly_pool_free(block) != BLY_OK))
        bench_cannot("bly_pool_free: %s", bly_last_error());
}

struct peer pool_peers[PEERS_MAX + 1] = {{"pool", pool_alloc, pool_free}};
size_t pool_n_peers;

static void pairs(const struct peer *peer, size_t size, long rounds)
{
    for (long i = 0; i < rounds; i++)
        peer->free(peer->alloc(size));
}

static void row(const struct bench *bench, const char *what, const char *unit,
                const struct bench_samples *samples, enum bench_target kind, double target)
{
    bench_row(bench, &(struct bench_row){what, unit, samples, NULL, kind, target});
}

void pool_rows(const struct bench *bench, const char *what, const char *unit,
               const struct bench_samples *samples, enum bench_target kind, double target)
{
    for (size_t i = 0; i < pool_n_peers; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s: %s", what, pool_peers[i].name);
        row(bench, text, unit, &samples[i], i == 0 && target > 0 ? kind : BENCH_NO_TARGET, target);
    }
}

static void measure_pairs(const struct bench *bench)
{
    static const struct {
        const char *what;
        size_t size;
        double target;
    } sizes[] = {{"512 B", 512, 12},         {"4 KiB", 4096, 12}, {"64 KiB", 64 * KiB, 12},
                 {"512 KiB", 512 * KiB, 12}, {"1 MiB", MiB, 100}, {"20 MiB", 20 * MiB, 100}};
    bench_section(bench, "a block is allocated and freed, over and over");
    for (size_t i = 0; i < BLYI_COUNT(sizes); i++) {
        struct bench_samples ns[PEERS_MAX + 1] = {{0}};
        for (int rep = 0; rep < (bench->quick ? 5 : 21); rep++)
            for (size_t a = 0; a < pool_n_peers; a++) {
                pairs(&pool_peers[a], sizes[i].size, 100);
                uint64_t start = bench_ns();
                pairs(&pool_peers[a], sizes[i].size, 20000);
                bench_add(&ns[a], (double)(bench_ns() - start) / 20000);
            }
        pool_rows(bench, sizes[i].what, "ns", ns, BENCH_OURS_AT_MOST, sizes[i].target);
    }
}

static void measure_metadata(const struct bench *bench)
{
    static const struct {
        const char *what;
        size_t size;
        double target;
    } sizes[] = {{"512 B", 512, 48}, {"64 KiB", 64 * KiB, 48}, {"2 MiB", 2 * MiB, 0}};
    size_t n = bench->quick ? 1000 : 8000;
    void **blocks = malloc(n * sizeof(*blocks));
    bench_section(bench, "host memory that describes a block, %zu of them live", n);
    for (size_t i = 0; blocks != NULL && i < BLYI_COUNT(sizes); i++) {
        struct bench_samples bytes = {0};
        bly_pool_info before = {.struct_size = sizeof(before)};
        bly_pool_info after = {.struct_size = sizeof(after)};
        must(bly_pool_get_info(pool, &before), "bly_pool_get_info");
        for (size_t b = 0; b < n; b++)
            blocks[b] = pool_alloc(sizes[i].size);
        must(bly_pool_get_info(pool, &after), "bly_pool_get_info");
        bench_add(&bytes, (double)(after.metadata - before.metadata) / (double)n);
        for (size_t b = 0; b < n; b++)
            pool_free(blocks[b]);
        row(bench, sizes[i].what, "bytes", &bytes,
            sizes[i].target > 0 ? BENCH_OURS_AT_MOST : BENCH_NO_TARGET, sizes[i].target);
    }
    free(blocks);
}

static void open_pool(void)
{
    if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS ||
        aclrtCreateStream(&stream) != ACL_SUCCESS)
        bench_cannot("no card: %s", aclGetRecentErrMsg());
    must(bly_pool_create(NULL, &pool), "bly_pool_create");
}

/* False: no such mode. */
static bool run_counted(int argc, char **argv)
{
    const struct peer *ours = &pool_peers[0];
    const char *mode = argc >= 3 ? argv[1] : "";
    if (argc == 3 && strcmp(mode, "--steady") == 0) {
        open_pool();
        pool_run_steady(ours, strtol(argv[2], NULL, 0));
    } else if (argc == 4 && strcmp(mode, "--pair") == 0) {
        open_pool();
        uint64_t size = strtoull(argv[2], NULL, 0);
        void *block;
        for (long i = strtol(argv[3], NULL, 0); i > 0; i--)
            if (bly_pool_alloc(pool, size, stream, &block) != BLY_OK || bly_pool_free(block) != 0)
                bench_cannot("a pair: %s", bly_last_error());
    } else if (argc == 4 && strcmp(mode, "--crowd") == 0) {
        open_pool();
        pool_run_crowd(ours, strtoull(argv[2], NULL, 0), strtol(argv[3], NULL, 0));
    } else {
        return false;
    }
    return true;
}

struct part {
    const char *name;
    void (*measure)(const struct bench *bench);
    bool named;
};

/* Takes the names of parts out of the arguments; the others are bench.h's. */
static int take_names(int argc, char **argv, struct part *parts, size_t n)
{
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        size_t at = 0;
        while (at < n && strcmp(argv[i], parts[at].name) != 0)
            at++;
        if (i > 0 && at < n)
            parts[at].named = true;
        else
            argv[kept++] = argv[i];
    }
    return kept;
}

int main(int argc, char **argv)
{
    struct part parts[] = {
        {"metadata", measure_metadata, false},   {"pairs", measure_pairs, false},
        {"single", pool_measure_spread, false},  {"threads", pool_measure_threads, false},
        {"crossing", pool_measure_cross, false}, {"crowd", pool_measure_crowd, false}};
    struct bench bench;
    if (run_counted(argc, argv))
        return 0;
    int left = take_names(argc, argv, parts, BLYI_COUNT(parts));
    bench_begin(&bench, "pool", left, argv);
    open_pool();
    pool_n_peers = 1 + peers_find(pool_peers + 1);
    for (size_t i = 0; i < BLYI_COUNT(parts); i++)
        if (parts[i].named || left == argc)
            parts[i].measure(&bench);
    must(bly_pool_destroy(pool), "bly_pool_destroy");
    bench_end(&bench);
    return 0;
}
