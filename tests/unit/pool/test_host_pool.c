/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory: exact, used again, in the order of streams, by nodes. */
#include "pool_test.h"

#include "pool/host_pool.h"

static bly_host_pool_info host_info(bly_host_pool *host)
{
    bly_host_pool_info info = {.struct_size = sizeof(info)};
    assert_ok(bly_host_pool_get_info(host, &info));
    assert_int_equal(info.live + info.idle + info.waiting, info.pinned);
    assert_int_equal(info.blocks, info.allocs - info.frees);
    struct blyi_pinned_figures figures;
    blyi_pinned_figures(&figures);
    assert_int_equal(figures.live, info.pinned);
    return info;
}

static bly_host_pool *new_host(bly_pool *pool)
{
    bly_host_pool *host = NULL;
    assert_ok(bly_host_pool_create(pool, NULL, &host));
    return host;
}

static char *pin(bly_host_pool *host, uint64_t size)
{
    void *block = NULL;
    assert_ok(bly_host_pool_alloc(host, size, &block));
    assert_int_equal((uintptr_t)block % (size < 4096 ? 64 : 4096), 0);
    return block;
}

/* Seventeen blocks of 17 MiB pin 289 MiB, not 544. */
static void sizes_are_exact(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host = new_host(pool);
    char *blocks[17];
    uint64_t released;
    for (unsigned i = 0; i < 17; i++) {
        blocks[i] = pin(host, 17 * MiB);
        memset(blocks[i], (int)i, 17 * MiB);
    }
    bly_host_pool_info info = host_info(host);
    assert_int_equal(info.pinned, 289 * MiB);
    assert_int_equal(info.live, 289 * MiB);
    assert_int_equal(info.asked, 289 * MiB);
    assert_int_equal(info.pins, 17);
    for (unsigned i = 0; i < 17; i++) {
        assert_int_equal(blocks[i][17 * MiB - 1], i);
        assert_ok(bly_host_pool_free(host, blocks[i]));
    }
    assert_int_equal(host_info(host).idle, 289 * MiB);
    assert_ok(bly_host_pool_trim(host, 0, &released));
    assert_int_equal(released, 289 * MiB);
    info = host_info(host);
    assert_int_equal(info.pinned, 0);
    assert_int_equal(info.pinned_peak, 289 * MiB);
    assert_ok(bly_host_pool_destroy(host));
    end_pool(pool);
}

static void memory_is_used_again(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host = new_host(pool);
    for (unsigned round = 0; round < 10000; round++)
        assert_ok(bly_host_pool_free(host, pin(host, MiB)));
    bly_host_pool_info info = host_info(host);
    assert_int_equal(info.pins, 1);
    assert_int_equal(info.pinned, MiB);
    assert_ok(bly_host_pool_destroy(host));
    end_pool(pool);
}

static void blocks_are_divided_and_joined(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host = new_host(pool);
    char *large = pin(host, 4 * MiB), *parts[64];
    assert_ok(bly_host_pool_free(host, large));
    for (unsigned i = 0; i < 64; i++)
        parts[i] = pin(host, 64 * KiB - 100 * i);
    bly_host_pool_info info = host_info(host);
    assert_int_equal(info.pins, 1);
    assert_int_equal(info.blocks, 64);
    for (unsigned i = 0; i < 64; i++)
        assert_ok(bly_host_pool_free(host, parts[i * 37 % 64]));
    assert_ptr_equal(pin(host, 4 * MiB), large);
    assert_ok(bly_host_pool_free(host, large));
    /* Small ones share a segment. */
    uint64_t asked = 0;
    assert_ok(bly_host_pool_trim(host, 0, NULL));
    for (unsigned i = 0; i < 64; i++) {
        parts[i] = pin(host, 1 + i * 50);
        asked += 1 + i * 50;
        memset(parts[i], (int)i, 1 + i * 50);
    }
    info = host_info(host);
    assert_int_equal(info.pinned, MiB);
    assert_int_equal(info.asked, asked);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(parts[i][i * 50], i);
        assert_ok(bly_host_pool_free(host, parts[i]));
    }
    assert_ok(bly_host_pool_destroy(host));
    assert_ok(bly_host_pool_destroy(NULL));
    end_pool(pool);
}

static void frees_are_in_order(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host = new_host(pool);
    void *stream = new_stream(), *device = take(pool, MiB, stream);
    char *block = pin(host, MiB);
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_copy_async(device, block, MiB, stream, 0));
    assert_ok(bly_host_pool_free_on(host, block, stream));
    assert_int_equal(host_info(host).waiting, MiB);
    assert_status(bly_host_pool_free(host, block), BLY_E_INVALID);
    assert_sentence("waits for work of a stream");
    assert_ptr_not_equal(pin(host, MiB), block);
    assert_ok(blyi_stream_resume(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_ptr_equal(pin(host, MiB), block);
    assert_ok(bly_host_pool_free_on(host, block, stream));
    assert_int_equal(host_info(host).waiting, 0);
    assert_ok(bly_host_pool_destroy(host));
    assert_ok(bly_pool_free(device));
    end_pool(pool);
}

static void limits_hold(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host;
    bly_host_pool_opts opts = bly_host_pool_opts_default();
    void *none;
    opts.limit = 8 * MiB;
    opts.keep = 2 * MiB;
    assert_ok(bly_host_pool_create(pool, &opts, &host));
    char *first = pin(host, 3 * MiB), *second = pin(host, 4 * MiB);
    assert_status(bly_host_pool_alloc(host, 2 * MiB, &none), BLY_E_PIN_LIMIT);
    assert_sentence(
        "cannot pin 2097152 bytes: 7340032 are pinned (idle 0, waiting 0), the limit is "
        "8388608");
    assert_ok(bly_host_pool_free(host, first));
    assert_int_equal(host_info(host).pinned, 4 * MiB); /* more than is kept */
    first = pin(host, 4 * MiB);
    assert_ok(bly_host_pool_free(host, first));
    assert_ok(bly_host_pool_free(host, second));
    assert_true(host_info(host).idle <= 2 * MiB);
    assert_ok(bly_host_pool_destroy(host));
    end_pool(pool);
}

/* A segment of 1 MiB is more than is left: small blocks take what they need. */
static void a_small_limit_is_used_up(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host;
    bly_host_pool_opts opts = bly_host_pool_opts_default();
    void *none;
    opts.limit = 12 * 1024;
    assert_ok(bly_host_pool_create(pool, &opts, &host));
    char *a = pin(host, 64), *b = pin(host, 64), *c = pin(host, 5000);
    memset(a, 1, 64);
    memset(c, 2, 5000);
    assert_int_equal(host_info(host).pinned, 12 * 1024);
    assert_int_equal(host_info(host).pins, 2); /* the first two share a page */
    assert_status(bly_host_pool_alloc(host, 4096, &none), BLY_E_PIN_LIMIT);
    assert_sentence("cannot pin 4096 bytes: 12288 are pinned");
    assert_ok(bly_host_pool_free(host, a));
    assert_ok(bly_host_pool_free(host, b));
    assert_ok(bly_host_pool_free(host, pin(host, 4096)));
    assert_ok(bly_host_pool_free(host, c));
    assert_ok(bly_host_pool_destroy(host));
    end_pool(pool);
}

static void faults_are_told(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host = NULL;
    void *block = &host;
    assert_status(bly_host_pool_create(NULL, NULL, &host), BLY_E_HANDLE);
    assert_status(bly_host_pool_create(pool, NULL, NULL), BLY_E_INVALID);
    bly_host_pool_opts opts = {.struct_size = 3};
    assert_status(bly_host_pool_create(pool, &opts, &host), BLY_E_INVALID);
    host = new_host(pool);
    assert_status(bly_host_pool_alloc(host, UINT64_MAX, &block), BLY_E_INVALID);
    assert_status(bly_host_pool_alloc(host, 1, NULL), BLY_E_INVALID);
    assert_status(bly_host_pool_free(host, &host), BLY_E_INVALID);
    char *live = pin(host, 5000);
    assert_status(bly_host_pool_free(host, live + 64), BLY_E_INVALID);
    assert_status(bly_host_pool_free_on(host, live, &host), BLY_E_HANDLE);
    assert_ok(bly_host_pool_free(host, live));
    assert_status(bly_host_pool_free(host, live), BLY_E_INVALID);
    assert_sentence("freed already");
    assert_ok(bly_host_pool_free(host, NULL));
    (void)pin(host, 100);
    assert_ok(bly_host_pool_destroy(host)); /* with a live block */
    end_pool(pool);
}

static unsigned here;
static unsigned node_here(void)
{
    return here;
}

static void nodes_have_memory_of_their_own(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host;
    bly_host_pool_opts opts = bly_host_pool_opts_default();
    assert_ok(blyi_host_pool_make(pool, &opts, 2, node_here, &host));
    here = 0;
    char *first = pin(host, MiB);
    assert_ok(bly_host_pool_free(host, first));
    here = 1;
    char *second = pin(host, MiB), *large;
    assert_ptr_not_equal(first, second);
    assert_int_equal(host_info(host).pinned, 2 * MiB);
    assert_ok(bly_host_pool_free(host, second));
    here = 0;
    assert_ptr_equal(pin(host, MiB), first);
    large = pin(host, 65 * MiB);
    assert_ok(bly_host_pool_free(host, large));
    here = 1;
    assert_ptr_equal(pin(host, 65 * MiB), large);
    here = 77; /* a node that came later */
    (void)pin(host, MiB);
    assert_ok(bly_host_pool_destroy(host));
    end_pool(pool);
}

static void nodes_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned n;
    } rows[] = {{"0\n", 1}, {"0-1\n", 2}, {"0-1,3\n", 4}, {"0,2-7\n", 8}, {"", 1}, {"0-500\n", 64}};
    char path[] = "/tmp/belay-nodes-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, rows[i].text, strlen(rows[i].text), 0),
                         (ssize_t)strlen(rows[i].text));
        assert_int_equal(blyi_host_nodes(path), rows[i].n);
    }
    close(fd);
    unlink(path);
    assert_int_equal(blyi_host_nodes(path), 1);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    bly_host_pool *host = new_host(pool);
    void *block;
    for (uint64_t nth = 1;; nth++) {
        blyi_host_fail_nth(nth);
        bly_status status = bly_host_pool_alloc(host, 5000, &block);
        blyi_host_fail_nth(0);
        if (status == BLY_OK)
            break;
        assert_int_equal(status, BLY_E_HOST_MEMORY);
        assert_int_equal(host_info(host).live, 0);
        assert_ok(bly_host_pool_trim(host, 0, NULL));
        assert_int_equal(host_info(host).pinned, 0);
    }
    assert_ok(bly_host_pool_free(host, block));
    assert_ok(bly_host_pool_destroy(host));
    end_pool(pool);
}

int main(void)
{
    setenv("BELAY_HBM", "1GiB", 1);
    const struct CMUnitTest tests[] = {
        order_test(sizes_are_exact),
        order_test(memory_is_used_again),
        order_test(blocks_are_divided_and_joined),
        order_test(frees_are_in_order),
        order_test(limits_hold),
        order_test(a_small_limit_is_used_up),
        order_test(faults_are_told),
        order_test(nodes_have_memory_of_their_own),
        order_test(nodes_are_counted),
        order_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
