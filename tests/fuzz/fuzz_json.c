/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_json.c - the JSON reader takes any bytes; lookups run even where the check refuses, as
 * they must not crash either.
 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
    if (!cond)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"", "a", "a.b", "defaultDevice.default_device", "\xc3\xa9"};
    bly_status at_16 = blyi_json_check((const char *)data, size, 16);
    bly_status at_max = blyi_json_check((const char *)data, size, 1024);
    require(at_16 != BLY_OK || at_max == BLY_OK);

    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char buf[32];
        memset(buf, 'x', sizeof(buf));
        bool found = blyi_json_lookup(text, paths[i], buf, sizeof(buf));
        require(found ? memchr(buf, '\0', sizeof(buf)) != NULL : buf[0] == 'x');
    }
    free(text);
    return 0;
}
