/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_option.c - any text for any option: what is taken can be formatted and taken again with
 * the same meaning, what is refused changes nothing.
 */
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
    if (!cond)
        abort();
}

static void try_option(enum blyi_option option, const char *text)
{
    char buf[256];
    int64_t before = blyi_option_int(option);
    if (blyi_option_set(option, text) != BLY_OK) {
        require(blyi_option_int(option) == before);
        require(strstr(blyi_fail_text(), blyi_option_info(option)->variable) != NULL);
        return;
    }
    int64_t value = blyi_option_int(option);
    if (option == BLYI_OPT_FAIL_HOST || option == BLYI_OPT_FAIL_SYSTEM) {
        blyi_host_fail_nth(0); /* not meant */
        blyi_sys_fail_nth(0, 0);
        return;
    }
    require(blyi_option_set(option, blyi_option_format(option, buf, sizeof(buf))) == BLY_OK);
    require(blyi_option_int(option) == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < BLYI_OPTION_COUNT; i++)
        try_option((enum blyi_option)i, text);
    int found = blyi_option_find(text);
    require(found >= -1 && found < BLYI_OPTION_COUNT);
    blyi_log_set_sink(NULL, NULL);
    blyi_log_set_level(BLYI_LOG_ERROR);
    blyi_option_reload(); /* lets go of the texts */
    free(text);
    return 0;
}
