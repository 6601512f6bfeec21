/* SPDX-License-Identifier: Apache-2.0
 *
 * attach.c - linked into tests that use the layers without the AscendCL face: the checker looks at
 * them all the same. A test that is right has no findings; one is told and ends the process with 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/host.h"
#include "observe/check_live.h"

__attribute__((constructor)) static void start(void)
{
    if (blyi_check_live_start() != BLY_OK || blyi_check_live_groups() == 0) {
        fprintf(stderr, "attach.c: nothing is checked: %s\n", bly_last_error());
        _exit(1);
    }
}

__attribute__((destructor)) static void look(void)
{
    struct blyi_finding *list;
    size_t n;
    if (blyi_check_live_groups() == 0)
        return; /* the child of a fork */
    if (blyi_check_live_read(&list, &n) != BLY_OK || n > 0 || blyi_check_live_stopped() != NULL ||
        !blyi_check_live_audit()) {
        fprintf(stderr, "attach.c: %zu findings\n", n);
        fflush(NULL);
        _exit(1);
    }
    blyi_host_free(list);
}
