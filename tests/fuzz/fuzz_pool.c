/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_pool.c - any options and any requests of a pool over a simulated device: what is refused is
 * refused with a sentence and changes nothing; what is granted is as it was asked for; all that
 * must hold holds meanwhile, and at the end nothing is left.
 */
#include <belay/pool.h>

#include <stdlib.h>
#include <string.h>

#include "backend/sim.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "pool/opts.h"
#include "pool/pool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BLOCKS  64u
#define STREAMS 3u
#define STEPS   256u
#define AUDIT   128u

static void require(bool cond)
{
    if (!cond)
        abort();
}

struct input {
    const uint8_t *at, *end;
};

static uint64_t number(struct input *in, unsigned bytes)
{
    uint64_t value = 0;
    for (; bytes > 0 && in->at < in->end; bytes--)
        value = value << 8 | *in->at++;
    return value;
}

/* Of any magnitude, small ones as likely as large ones. */
static uint64_t magnitude(struct input *in)
{
    unsigned bits = (unsigned)number(in, 1) % 65;
    uint64_t value = number(in, 3) | UINT64_C(1) << 24;
    return bits == 0 ? 0 : bits <= 25 ? value >> (25 - bits) : value << (bits - 25);
}

static bool refused(bly_status status)
{
    require(status == BLY_OK || blyi_fail_text()[0] != '\0');
    return status != BLY_OK;
}

static bly_pool *open_pool(struct input *in, struct blyi_sim **sim)
{
    bly_pool_opts asked = bly_pool_opts_default(), opts;
    bly_pool *pool = NULL;
    if (number(in, 1) % 2 == 0) {
        asked.limit = magnitude(in);
        asked.threshold = magnitude(in);
        asked.align = magnitude(in);
        asked.prefill = magnitude(in) % (64 * MiB);
        asked.reserve = magnitude(in);
        asked.small = magnitude(in);
        asked.slack = (uint32_t)magnitude(in);
        asked.reuse = (uint32_t)number(in, 1) % 10;
        asked.profile = (bly_pool_profile)(number(in, 1) % 6);
    }
    if (refused(blyi_opts_read(&asked, &opts)))
        return NULL;
    require(blyi_sim_create(256 * MiB, number(in, 1) % 2 == 0 ? 4 : BLYI_SIM_HELD, sim) == BLY_OK);
    struct blyi_backend *backend = blyi_sim_backend(*sim);
    if (refused(blyi_pool_make(backend, &opts, &pool)))
        backend->ops->close(backend);
    return pool;
}

struct block {
    char *address;
    bly_pool_block is;
};

static void look_at(bly_pool *pool, struct block *block, const bly_pool_request *request)
{
    block->is.struct_size = sizeof(block->is);
    require(bly_pool_find(block->address, &block->is) == BLY_OK);
    require(block->is.address == block->address && block->is.pool == pool);
    require(block->is.asked == (request->size > 0 ? request->size : 1));
    require(block->is.size >= block->is.asked && block->is.region == request->region);
    require((uintptr_t)block->address % (request->align > 512 ? request->align : 512) == 0);
}

static void alloc(bly_pool *pool, struct block *block, struct input *in)
{
    bly_pool_request request = {.struct_size = sizeof(request),
                                .size = magnitude(in),
                                .region = (bly_pool_region)(number(in, 1) % 5),
                                .align = number(in, 1) % 4 == 0 ? magnitude(in) : 0,
                                .flags = (uint32_t)number(in, 1) % 16 == 0};
    void *address = NULL;
    if (!refused(bly_pool_alloc_with(
            pool, &request, blyi_sim_stream((uint32_t)number(in, 1) % STREAMS), &address))) {
        block->address = address;
        look_at(pool, block, &request);
    }
    require((block->address != NULL) == (address != NULL));
}

static void step(bly_pool *pool, struct blyi_sim *sim, struct block *blocks, struct input *in)
{
    struct block *block = &blocks[number(in, 1) % BLOCKS];
    void *stream = blyi_sim_stream((uint32_t)number(in, 1) % STREAMS);
    switch (number(in, 1) % 12) {
    case 0:
        if (block->address != NULL)
            require(bly_pool_use(block->address, stream) == BLY_OK);
        break;
    case 1:
        blyi_sim_complete(sim, stream);
        break;
    case 2:
        require(bly_pool_poll(pool) == BLY_OK);
        break;
    case 3:
        require(bly_pool_trim(pool, magnitude(in), NULL) == BLY_OK);
        break;
    case 4: /* inside a block, which is not where it begins */
        if (block->address != NULL && block->is.asked > 1)
            require(
                refused(bly_pool_free(block->address + 1 + number(in, 4) % (block->is.asked - 1))));
        break;
    default:
        blyi_sim_tick(sim);
        if (block->address == NULL) {
            alloc(pool, block, in);
        } else {
            char *address = block->address;
            block->address = NULL;
            require(bly_pool_free(address) == BLY_OK);
            require(refused(bly_pool_free(address)));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};
    struct block blocks[BLOCKS] = {{NULL, {0}}};
    struct blyi_sim *sim = NULL;
    bly_pool *pool = open_pool(&in, &sim);
    if (pool == NULL)
        return 0;
    for (unsigned i = 0; i < STEPS && in.at < in.end; i++) {
        step(pool, sim, blocks, &in);
        require(i % AUDIT != 0 || bly_pool_audit(pool) == BLY_OK);
    }
    require(bly_pool_audit(pool) == BLY_OK);
    for (unsigned i = 0; i < BLOCKS; i++)
        require(bly_pool_free(blocks[i].address) == BLY_OK);
    for (uint32_t i = 0; i < STREAMS; i++)
        blyi_sim_complete(sim, blyi_sim_stream(i));
    require(bly_pool_poll(pool) == BLY_OK);
    bly_pool_info info = {.struct_size = sizeof(info)};
    require(bly_pool_get_info(pool, &info) == BLY_OK);
    require(info.blocks == 0 && info.live == 0 && info.asked == 0 && info.waiting == 0);
    require(info.parked + info.idle == info.reserved);
    require(bly_pool_destroy(pool) == BLY_OK);
    return 0;
}
