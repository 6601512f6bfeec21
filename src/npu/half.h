/* SPDX-License-Identifier: Apache-2.0
 *
 * half.h - the two formats of half precision, to and from float; rounded to nearest even.
 */
#ifndef BLYI_HALF_H
#define BLYI_HALF_H

#include <stdint.h>
#include <string.h>

static inline float blyi_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t blyi_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float blyi_from_bf16(uint16_t half)
{
    return blyi_float_of((uint32_t)half << 16);
}

static inline uint16_t blyi_to_bf16(float value)
{
    uint32_t bits = blyi_bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u); /* a NaN stays one */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline float blyi_from_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
    if (rest >= 0x7c00u)
        return blyi_float_of(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x400u)
        return blyi_float_of(sign | ((rest << 13) + (112u << 23)));
    float small = (float)rest * 0x1p-24f;
    return sign != 0 ? -small : small;
}

static inline uint16_t blyi_to_fp16(float value)
{
    uint32_t bits = blyi_bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u); /* rounds to infinity */
    if (rest >= 0x38800000u) {
        rest -= 112u << 23;
        return (uint16_t)(sign | (rest + 0xfffu + (rest >> 13 & 1)) >> 13);
    }
    /* Subnormal: the sum puts the unit of the result at the last bit of a float. */
    return (uint16_t)(sign | (blyi_bits_of(blyi_float_of(rest) + 0.5f) - blyi_bits_of(0.5f)));
}

#endif
