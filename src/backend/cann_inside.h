/* SPDX-License-Identifier: Apache-2.0
 *
 * cann_inside.h - what cann.c, the device and its memory, and cann_lane.c, its streams, share.
 */
#ifndef BLYI_CANN_INSIDE_H
#define BLYI_CANN_INSIDE_H

#include "backend/cann.h"
#include "backend/cann_library.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/lock.h"

struct blyi_cann_record {
    struct blyi_list link; /* in its lane, oldest first; or unused */
    aclrtEvent event;
    blyi_mark number;
};

struct blyi_lane {
    struct blyi_list link;
    aclrtStream stream;
    struct blyi_list records; /* that were not seen to be complete */
    blyi_mark next, done;     /* number of the next record; all up to `done` are complete */
    bool ended;
};

struct blyi_cann {
    struct blyi_backend backend;
    struct blyi_cann_library acl;
    int device;
    uint64_t granule;
    aclrtPhysicalMemProp prop;
    struct blyi_lock lock; /* rank LANES: guards lanes and records */
    struct blyi_list lanes, unused;
};

static inline struct blyi_cann *blyi_cann_of(struct blyi_backend *backend)
{
    return BLYI_CONTAINER(backend, struct blyi_cann, backend);
}

/* The sentence of a call that failed. E_NO_MEMORY, E_SYSTEM. */
bly_status blyi_cann_failed(struct blyi_cann *cann, const char *name, aclError error);
/* Logs a failure of what cannot be undone. */
void blyi_cann_expect(struct blyi_cann *cann, const char *name, aclError error);

/* As backend.h. */
bly_status blyi_cann_hold(struct blyi_backend *backend, void *stream, struct blyi_lane **out);
void blyi_cann_let_go(struct blyi_backend *backend, struct blyi_lane *lane);
const blyi_mark *blyi_cann_marks(struct blyi_backend *backend, struct blyi_lane *lane);
bool blyi_cann_passed(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at);
bly_status blyi_cann_wait(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at,
                          uint64_t limit_ns);
bly_status blyi_cann_order(struct blyi_backend *backend, struct blyi_lane *lane,
                           struct blyi_lane *other, blyi_mark at);
bool blyi_cann_knows(struct blyi_backend *backend, struct blyi_lane *lane, struct blyi_lane *other,
                     blyi_mark at);
void blyi_cann_awaited(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at,
                       char *text, size_t size);
uint32_t blyi_cann_number(struct blyi_backend *backend, struct blyi_lane *lane);
bool blyi_cann_has_ended(struct blyi_backend *backend, struct blyi_lane *lane);
void blyi_cann_drop_records(struct blyi_cann *cann, struct blyi_list *records);

#endif
