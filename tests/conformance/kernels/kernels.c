/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that the conformance tests load. */
#include <stdint.h>
#include <string.h>

struct counter {
    uint32_t *value;
};

uint32_t step_width = 1; /* programs may change it */
static uint32_t hidden = 3;

uint32_t *hidden_address(void)
{
    return &hidden;
}

void add_step(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct counter *p = args;
    (void)block, (void)n_blocks;
    *p->value += step_width;
}

/* Squares the number at `value`, a float. */
void square(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct counter *p = args;
    (void)block, (void)n_blocks;
    volatile float *number = (volatile float *)p->value;
    *number = *number * *number;
}

void add_one(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct counter *p = args;
    (void)n_blocks;
    if (block == 0)
        ++*p->value;
}

void subtract_one(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct counter *p = args;
    (void)block, (void)n_blocks;
    --*p->value;
}

void count_blocks(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct counter *p = args;
    p->value[block] += n_blocks;
}

void trap(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)args, (void)block, (void)n_blocks;
    __builtin_trap();
}

/* Runs until it is ended; tells that it runs. */
void forever(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct counter *p = args;
    (void)block, (void)n_blocks;
    volatile uint32_t *value = p->value;
    for (*value = 1; *value != 0;)
        ;
}

void wild_write(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct counter *p = args;
    (void)block, (void)n_blocks;
    *(volatile uint32_t *)p->value = 1;
}

struct packed {
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t *out;
    uint32_t *placed;
};

const uint32_t add_one_params[] = {8};
const uint32_t layout_params[] = {1, 2, 4, 8, 8};
const uint32_t trap_params[] = {8, 0}; /* no parameter has no bytes */

/* Checks the layout of the argument block. */
void layout(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct packed *p = args;
    (void)block, (void)n_blocks;
    p->out[0] = p->one;
    p->out[1] = p->two;
    p->out[2] = p->four;
    p->out[3] = p->placed[0];
    p->out[4] = p->placed[1];
    p->out[5] = (uintptr_t)args % 64;
}
