/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h - what a pool needs of a device, and nothing about policy.
 *
 * Sizes and addresses are multiples of the granule unless said otherwise. All functions are [any],
 * and may be called with a lock of rank POOL held where they are not said to wait or to take locks.
 * Functions that fail leave a sentence and change nothing.
 */
#ifndef BLYI_BACKEND_H
#define BLYI_BACKEND_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_backend;
/* A stream as a backend holds it: stays readable after the stream has ended. */
struct blyi_lane;

struct blyi_backend_info {
    const char *name; /* "npu", "cann", ...: static storage */
    int device;
    uint64_t granule;     /* smallest memory that is mapped, and its alignment */
    uint64_t total, free; /* of the device, now */
};

/* Bytes of all pools: held, of that in no block, of that to be had by others. Atomic. */
struct blyi_cells {
    uint64_t *held, *idle, *spare;
};

/* A moment of a stream: behind all that was queued when it was taken. Grows along a lane; 0 has
 * always passed. */
typedef uint64_t blyi_mark;

struct blyi_backend_ops {
    void (*describe)(struct blyi_backend *backend, struct blyi_backend_info *info);
    void (*close)(struct blyi_backend *backend); /* nothing of it is left: lanes, memory */
    /* BLY_OK, or why none of its memory is there any more (E_STATE: the device was reset;
     * E_FORKED). Everything that was mapped, and every lane's stream, is then gone. */
    bly_status (*alive)(struct blyi_backend *backend);

    /* Whether a thread may change what the device holds: create, release, map, unmap, reserve. The
     * device may be made to stand still (AscendCL: snapshots of a process). pass() waits, with no
     * lock held; E_STATE: for what the calling thread itself would have to do. Both are asked only
     * where *backend->still is not 0. */
    bool (*may_change)(struct blyi_backend *backend);
    bly_status (*pass)(struct blyi_backend *backend);

    /* Memory without an address. E_NO_MEMORY, E_CAP (without a sentence: shortage() has it; nobody
     * is asked to give memory back: relieve() does), E_HOST_MEMORY, E_SYSTEM. */
    bly_status (*create)(struct blyi_backend *backend, uint64_t size, uint64_t *handle);
    void (*release)(struct blyi_backend *backend, uint64_t handle); /* mapped nowhere */

    /* Asks whoever holds memory of the device for reuse, with no lock held; bytes that came back.
     */
    uint64_t (*relieve)(struct blyi_backend *backend, uint64_t bytes);
    /* Adds to the thread's sentence what the device has and who holds it: "; card 0: ...". */
    void (*shortage)(struct blyi_backend *backend, uint64_t size);

    /* Addresses without memory. E_NO_MEMORY: no such range is free. */
    bly_status (*reserve)(struct blyi_backend *backend, uint64_t size, uintptr_t *address);
    void (*unreserve)(struct blyi_backend *backend, uintptr_t address, uint64_t size);

    /* A whole handle, for its device to read and write. E_SYSTEM (mappings of the host),
     * E_HOST_MEMORY. The caller has waited for all work on what it unmaps. */
    bly_status (*map)(struct blyi_backend *backend, uintptr_t address, uint64_t size,
                      uint64_t handle);
    void (*unmap)(struct blyi_backend *backend, uintptr_t address, uint64_t size);

    /* Order. `stream` is the device's own (AscendCL: aclrtStream), not NULL. E_HANDLE. hold(),
     * wait() and order() are called with no lock held. */
    bly_status (*hold)(struct blyi_backend *backend, void *stream, struct blyi_lane **lane);
    void (*let_go)(struct blyi_backend *backend, struct blyi_lane *lane);
    /* Where the lane's mark is read, by an acquire load, as long as the lane is held. */
    const blyi_mark *(*marks)(struct blyi_backend *backend, struct blyi_lane *lane);
    bool (*passed)(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark mark);
    /* In the calling thread; limit_ns of real time, 0: none. E_TIMEOUT; E_STATE: the thread runs
     * user code which the stream waits for. */
    bly_status (*wait)(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark mark,
                       uint64_t limit_ns);
    /* Work queued on `lane` from now on runs behind the mark of `other`. E_CAPTURING: a stream that
     * is captured cannot wait for what is outside. */
    bly_status (*order)(struct blyi_backend *backend, struct blyi_lane *lane,
                        struct blyi_lane *other, blyi_mark mark);
    /* Whether work queued on `lane` from now on does so anyhow, by what it was made to wait for. */
    bool (*knows)(struct blyi_backend *backend, struct blyi_lane *lane, struct blyi_lane *other,
                  blyi_mark mark);
    /* What stands before a mark that has not passed, for sentences: "task 2 (queued at ...)". */
    void (*awaited)(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark mark,
                    char *text, size_t size);
    /* Of the stream, in probes; 0: unknown. */
    uint32_t (*number)(struct blyi_backend *backend, struct blyi_lane *lane);
    /* The stream was destroyed, and all its work has ended. */
    bool (*ended)(struct blyi_backend *backend, struct blyi_lane *lane);

    /* Sums that other processes read, which a pool adds its changes to. NULL: nobody does. */
    void (*cells)(struct blyi_backend *backend, struct blyi_cells *cells);

    /* Host memory that the device reaches; any size. E_PIN_LIMIT, E_HOST_MEMORY. */
    bly_status (*pin)(struct blyi_backend *backend, uint64_t size, void **address);
    void (*unpin)(struct blyi_backend *backend, void *address, uint64_t size);
};

struct blyi_backend {
    const struct blyi_backend_ops *ops;
    const uint32_t *still; /* NULL: never */
};

/* The software card; -1: of the current context. E_DEVICE, E_NO_CONTEXT. */
bly_status blyi_backend_npu(int device, struct blyi_backend **out);
/* A vendor's AscendCL, loaded from `path`, or from where the loader finds libascendcl.so.
 * E_UNSUPPORTED: there is none, or it is Belay's own. */
bly_status blyi_backend_cann(int device, const char *path, struct blyi_backend **out);

#endif
