/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h - checks of arguments that several entry points share. Each returns 0 or the code
 * that the caller returns, with its sentence recorded. Those that lead to a card attach the
 * sinks of probes first (attach.h).
 */
#ifndef BLYI_ACL_CHECK_H
#define BLYI_ACL_CHECK_H

#include "face/acl/acl_error.h"
#include "npu/context.h"

/* User id -> card. `code` is what a bad id is called: 107001, or 107000 in info calls. */
aclError blyi_acl_check_device(enum blyi_acl_call call, int64_t user, aclError code, int *card);
/* The same, and opens the card. */
aclError blyi_acl_open_device(enum blyi_acl_call call, int64_t user, aclError code,
                              struct blyi_card **card);
/* Milliseconds: -1 is "no limit" (0 ns); 0 and less than -1 are refused with `code`. */
aclError blyi_acl_check_timeout(enum blyi_acl_call call, int32_t timeout_ms, aclError code,
                                uint64_t *timeout_ns);
/* Size rounded by AscendCL's rule (npu/round.h): 0 and overflow are 100000. */
aclError blyi_acl_check_size(enum blyi_acl_call call, uint64_t size, bool padded,
                             uint64_t *rounded);
/* The thread's context: 107002 without. */
aclError blyi_acl_check_context(enum blyi_acl_call call, struct blyi_context **context);
/* The card of that context, for calls that need no more. */
aclError blyi_acl_check_card(enum blyi_acl_call call, struct blyi_card **card);
/* The default stream of that context, and its card (may be NULL). */
aclError blyi_acl_check_default(enum blyi_acl_call call, void **stream, struct blyi_card **card);
/* Memory imported for another card is copied in stream order, between cards, with a kind that says
 * so: 207000 otherwise. */
aclError blyi_acl_check_foreign(enum blyi_acl_call call, const void *dst, const void *src,
                                aclrtMemcpyKind kind, bool in_order);
/* No allocation is larger: 107000. Comes behind the context. */
#define BLYI_ACL_SIZE_MAX ((uint64_t)1 << 50)
aclError blyi_acl_check_limit(enum blyi_acl_call call, uint64_t rounded);

#endif
