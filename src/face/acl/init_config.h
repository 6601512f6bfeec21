/* SPDX-License-Identifier: Apache-2.0
 *
 * init_config.h - the JSON file of aclInit: reading it and what it may say.
 */
#ifndef BLYI_ACL_INIT_CONFIG_H
#define BLYI_ACL_INIT_CONFIG_H

#include <stdbool.h>
#include "face/acl/acl_error.h"

struct blyi_init_config {
    char *text; /* the file, or "{}"; from base/host.h */
    size_t length;
    bool shared_errors; /* err_msg_mode "1" */
    int default_card;   /* -1: none */
};

/* path NULL: the defaults. 100003: unreadable; 100005: larger than 10 MiB; 100006: not JSON, or
 * nested deeper than 10; 100000 and 148048: a value outside its range; 200000: no memory. */
aclError blyi_init_config_read(const char *path, struct blyi_init_config *out);
void blyi_init_config_free(struct blyi_init_config *config);
/* Two texts say the same: equal but for blanks outside strings. */
bool blyi_init_config_equal(const char *a, const char *b);

#endif
