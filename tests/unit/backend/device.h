/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h - what the suite needs of a device beside its backend: streams that can be held.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include "backend/backend.h"

#define DEVICE_TOTAL (UINT64_C(256) << 20)

struct device {
    const char *name;
    struct blyi_backend *(*open)(void); /* a card of DEVICE_TOTAL, or little less */
    void (*close)(struct blyi_backend *backend);
    void *(*make_stream)(void);
    void (*end_stream)(struct blyi_backend *backend, void *stream);
    void (*hold)(void *stream, uintptr_t memory); /* work is queued that does not end, */
    void (*go)(void *stream);                     /* until now */
};

extern const struct device device_npu, device_sim, device_cann;

#endif
