/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/observe.h"

void blyi_observe_attach(void)
{
}
