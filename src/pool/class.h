/* SPDX-License-Identifier: Apache-2.0
 *
 * class.h - the sizes of slots: steps of 512 bytes up to 4 KiB, then eight to each doubling, so
 * that a slot is at most 12.5 % larger than what was asked for, or 511 bytes.
 */
#ifndef BLYI_CLASS_H
#define BLYI_CLASS_H

#include "base/compiler.h"

#define BLYI_SLOT_MIN   UINT64_C(512)
#define BLYI_SLOT_MAX   (512 * KiB)
#define BLYI_CLASSES    64u
#define BLYI_SLAB_SLOTS 128u /* of a slab at most */
#define BLYI_SLAB_MIN   (64 * KiB)
#define BLYI_SLAB_MAX   (512 * KiB)
#define BLYI_SLAB_FEW   (256 * KiB) /* of slots above an eighth of that */

/* The smallest class that holds `size` bytes, 1 to BLYI_SLOT_MAX. */
static inline unsigned blyi_class_of(uint64_t size)
{
    uint64_t last = size - 1;
    unsigned shift = 60u - (unsigned)__builtin_clzll(last | 4096);
    return (unsigned)(last >> shift) + 8 * shift - 72;
}

/* Bytes of a slot. */
static inline uint64_t blyi_class_size(unsigned class)
{
    return class < 8 ? (class + 1) * BLYI_SLOT_MIN : (class % 8 + UINT64_C(9)) << (class / 8 + 8);
}

/* Slots of a slab: eight, or as many as make it 64 KiB without a rest; slots of less than a quantum
 * come by eight for that. Of more than 64 KiB they are fewer, as a slab stays where one of them is
 * alive: with eight of all sizes up to 2 MiB small jobs held 2 % more. */
static inline unsigned blyi_class_slots(unsigned class)
{
    uint64_t size = blyi_class_size(class);
    if (8 * size > BLYI_SLAB_MAX)
        return size < BLYI_SLAB_FEW ? (unsigned)(BLYI_SLAB_FEW / size) : 1;
    uint64_t n = (BLYI_SLAB_MIN + size - 1) / size;
    return (unsigned)blyi_align_up(n < 8 ? 8 : n, 8);
}

/* As few as make 64 KiB, two at least, and no rest of a quantum: where sizes do not come again many
 * classes have few slots each, and what is free in a slab serves its class alone. */
static inline unsigned blyi_class_slots_least(unsigned class)
{
    uint64_t size = blyi_class_size(class), n = (BLYI_SLAB_MIN + size - 1) / size;
    if (8 * size > BLYI_SLAB_MAX || n > 8)
        return blyi_class_slots(class);
    uint64_t unit = size & -size; /* divides it, a power of two */
    return (unsigned)blyi_align_up(n < 2 ? 2 : n, unit < 4096 ? 4096 / unit : 1);
}

#endif
