/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_types.c - sizes of data types, and half precision.
 *
 *   half     15  14 .. 10  9 .. 0      exponent 31 is an ordinary exponent here: infinity is
 *            s   exponent  fraction    65536, as AscendCL has it
 */
#include <string.h>

#include "face/acl/acl_error.h"

#define HALF_MAX 0x7bffu /* 65504 */

size_t bly_acl_aclDataTypeSize(aclDataType dataType)
{
    switch ((int)dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_INT4:
    case ACL_UINT1:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
    case ACL_FLOAT6_E3M2:
    case ACL_FLOAT6_E2M3:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
        return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
        return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
        return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64:
        return 8;
    case ACL_COMPLEX128:
        return 16;
    default: /* strings, and what is no type */
        return 0;
    }
}

float bly_acl_aclFloat16ToFloat(aclFloat16 value)
{
    uint32_t sign = (uint32_t)(value & 0x8000u) << 16;
    uint32_t exponent = (value >> 10) & 0x1fu;
    uint32_t fraction = value & 0x3ffu;
    if (exponent == 0 && fraction != 0) { /* subnormal: normal as a float */
        exponent = 1;
        while ((fraction & 0x400u) == 0) {
            fraction <<= 1;
            exponent--;
        }
        fraction &= 0x3ffu;
    } else if (exponent == 0) {
        exponent = (uint32_t)-112; /* both zeros stay zero */
    }
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    float result;
    memcpy(&result, &bits, sizeof(result));
    return result;
}

aclFloat16 bly_acl_aclFloatToFloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t sign = bits >> 16 & 0x8000u;
    int exponent = (int)(bits >> 23 & 0xffu) - 112;
    uint32_t fraction = (bits & 0x7fffffu) | 0x800000u;
    if (exponent >= 31)
        return (aclFloat16)(sign | HALF_MAX);
    if (exponent < -10)
        return (aclFloat16)sign;
    /* Drop 13 bits, more below the normal range, to the nearest, ties to even. A carry out of
     * the fraction runs into the exponent, which is right. */
    uint32_t dropped = exponent > 0 ? 13 : (uint32_t)(14 - exponent);
    uint32_t kept = fraction >> dropped;
    uint32_t rest = fraction & ((1u << dropped) - 1), half = 1u << (dropped - 1);
    if (rest > half || (rest == half && (kept & 1u) != 0))
        kept++;
    uint32_t result = exponent > 0 ? kept + ((uint32_t)(exponent - 1) << 10) : kept;
    return (aclFloat16)(sign | (result > HALF_MAX ? HALF_MAX : result));
}
