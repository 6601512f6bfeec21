/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that a program opens and closes again; it calls back twice.
 */
#include <stdint.h>

void plugin_call(uint32_t (*call)(void), uint32_t sites[2]);

__attribute__((visibility("default"))) void plugin_call(uint32_t (*call)(void), uint32_t sites[2])
{
    sites[0] = call();
    sites[1] = call();
}
