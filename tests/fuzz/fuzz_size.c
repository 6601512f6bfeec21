/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_size.c - whatever is read as a size is at most 2^63, and its exact text reads the same.
 */
#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
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
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    uint64_t bytes = 0, again = 0;
    if (blyi_size_parse(text, &bytes) == BLY_OK) {
        char buf[BLYI_SIZE_TEXT];
        require(bytes <= (uint64_t)1 << 63);
        snprintf(buf, sizeof(buf), "%" PRIu64, bytes);
        require(blyi_size_parse(buf, &again) == BLY_OK && again == bytes);
        require(strlen(blyi_size_text(bytes, buf)) < sizeof(buf));
    }
    free(text);
    return 0;
}
