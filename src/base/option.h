/* SPDX-License-Identifier: Apache-2.0
 *
 * option.h - values of the options in option_list.h.
 *
 * The environment is read once, at the first use; a value that cannot be read is told once
 * with a warning (name, value, what is allowed) and the default stands; an unknown BELAY_*
 * variable is warned about once. An empty variable is as good as none. blyi_option_set() is
 * for tools, tests and the native API. LOG, VIRTUAL_CLOCK, FAIL_HOST and FAIL_SYSTEM, where
 * set, take effect as the options are read; failures are counted from that moment. [any thread]
 */
#ifndef BLYI_OPTION_H
#define BLYI_OPTION_H

#include <belay/base.h>
#include <stdbool.h>
#include <stdio.h>

enum blyi_option {
#define BLYI_OPTION_ENUM(name, type, def, lo, hi, help) BLYI_OPT_##name,
#include "base/option_list.h"
    BLYI_OPTIONS(BLYI_OPTION_ENUM)
#undef BLYI_OPTION_ENUM
        BLYI_OPTION_COUNT
};

enum blyi_option_type {
    BLYI_OPTION_SIZE,
    BLYI_OPTION_INT,
    BLYI_OPTION_BOOL,
    BLYI_OPTION_TEXT,
    BLYI_OPTION_CHOICE
};

struct blyi_option_info {
    const char *name;     /* "HBM" */
    const char *variable; /* "BELAY_HBM" */
    const char *flag;     /* "hbm"; '_' becomes '-' */
    const char *def;
    const char *help;
    enum blyi_option_type type;
    int64_t min, max;
};

int64_t blyi_option_int(enum blyi_option option);      /* SIZE, INT, BOOL, CHOICE (its index) */
const char *blyi_option_text(enum blyi_option option); /* TEXT; never NULL, stays readable */
bool blyi_option_is_default(enum blyi_option option);  /* nobody set it */

const struct blyi_option_info *blyi_option_info(enum blyi_option option);
/* By "HBM", "BELAY_HBM" or "hbm"; -1 when there is none. */
int blyi_option_find(const char *name);
/* E_PARSE / E_INVALID with a sentence that names the option, the value and what is allowed. */
bly_status blyi_option_set(enum blyi_option option, const char *value);
/* Value as it would be written in the environment. Writes at most `size` characters. */
const char *blyi_option_format(enum blyi_option option, char *buf, size_t size);
/* Back to the environment's values; for tests. Texts given out before are gone. [excl] */
void blyi_option_reload(void);

#endif
