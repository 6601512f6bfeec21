/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_error.h - what a call returns: the table (call, status) -> code, the messages behind
 * aclGetRecentErrMsg and the thread's last error.
 *
 * A call that fails leaves one line "<code> <function>: <sentence>". The layer that decided the
 * error wrote the sentence (base/fail.h); the face writes it only for what it rejects itself.
 */
#ifndef BLYI_ACL_ERROR_H
#define BLYI_ACL_ERROR_H

#include <stdbool.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/site.h"
#include "npu/told.h"
#include "face/acl/acl_symbols.h"
#include "face/acl/attach.h"

enum blyi_acl_call {
#define BLYI_ACL_CALL_ENUM(name) BLYI_ACL_CALL_##name,
    BLYI_ACL_SYMBOLS(BLYI_ACL_CALL_ENUM)
#undef BLYI_ACL_CALL_ENUM
        BLYI_ACL_CALL_COUNT
};

const char *blyi_acl_call_name(enum blyi_acl_call call);
/* The code of a status in a call, without recording anything. */
aclError blyi_acl_code(enum blyi_acl_call call, bly_status status);

/* Records the thread's sentence under the call and returns the code. status is not BLY_OK. */
aclError blyi_acl_fail(enum blyi_acl_call call, bly_status status);
/* The same for an error that the face decides: the format makes the sentence. */
aclError blyi_acl_reject(enum blyi_acl_call call, aclError code, const char *fmt, ...)
    BLYI_PRINTF(3, 4);

static inline aclError blyi_acl_result(enum blyi_acl_call call, bly_status status)
{
    return likely(status == BLY_OK) ? ACL_SUCCESS : blyi_acl_fail(call, status);
}

/* Short forms for entry points; `function` is the public name. None returns by itself. */
#define acl_result(function, status)    blyi_acl_result(BLYI_ACL_CALL_##function, status)
#define acl_reject(function, code, ...) blyi_acl_reject(BLYI_ACL_CALL_##function, code, __VA_ARGS__)
#define acl_null(function, argument)                                                               \
    blyi_acl_reject(BLYI_ACL_CALL_##function, ACL_ERROR_INVALID_PARAM, argument " is NULL")

/* For calls whose site is only told to probes; in entry points only. */
#define ACL_SITE_IF_TOLD() (blyi_told_wanted() ? BLYI_SITE_HERE() : 0)
/* Where the program called us; first use attaches the sinks. In entry points only. */
#define ACL_SITE() (blyi_acl_enter(), BLYI_SITE_HERE())

#endif
