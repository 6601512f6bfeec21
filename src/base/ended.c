/* SPDX-License-Identifier: Apache-2.0
 *
 * ended.c - one number.
 */
#include "base/ended.h"

uint64_t blyi_ended_count;

void blyi_ended_tell(bool told)
{
    if (told)
        __atomic_fetch_or(&blyi_ended_count, BLYI_ENDED_TOLD, __ATOMIC_RELEASE);
    else
        __atomic_fetch_and(&blyi_ended_count, ~BLYI_ENDED_TOLD, __ATOMIC_RELEASE);
}
