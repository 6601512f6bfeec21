/* SPDX-License-Identifier: Apache-2.0
 *
 * reach.c - host memory that a program names by an address.
 *
 * An address from Python may be anything. The kernel reads it for us: a bad one is an error of
 * the call and not a fault of the process. Where that system call is forbidden (some containers)
 * addresses are trusted, as in C. Copies need none of this, the runtime survives bad ones itself.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "acl_module.h"

#define PIECES 512u /* addresses a system call looks at */

/* Card memory would fault, or without a guard show bytes that a card's host cannot see. */
static bool refuse_card(const struct blyi_py_call *call, int index)
{
    const void *address = (const void *)(uintptr_t)call->v[index].u;
    aclrtPtrAttributes attributes = {0};
    bool known = address != NULL && aclrtPointerGetAttributes(address, &attributes) == ACL_SUCCESS;
    if (!known || attributes.location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %d (%s) is memory of device %u, at %p; acl.rt.memcpy copies it to "
                 "the host",
                 call->spec->function, index + 1, call->spec->names[index],
                 (unsigned)attributes.location.id, address);
    return false;
}

static bool unreadable(const struct blyi_py_call *call, int index, uint64_t n)
{
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %d (%s): this process cannot read %llu bytes at %p",
                 call->spec->function, index + 1, call->spec->names[index], (unsigned long long)n,
                 (void *)(uintptr_t)call->v[index].u);
    return false;
}

static bool is_forbidden(int error)
{
    return error == ENOSYS || error == EPERM || error == EACCES;
}

/* One byte of each page; the pieces of one system call. */
static bool pages_can_be_read(uintptr_t first, size_t pages, size_t page)
{
    struct iovec remote[PIECES];
    char bytes[PIECES];
    for (size_t i = 0; i < pages; i++)
        remote[i] = (struct iovec){.iov_base = (void *)(first + i * page), .iov_len = 1};
    struct iovec local = {.iov_base = bytes, .iov_len = pages};
    ssize_t got = process_vm_readv(getpid(), &local, 1, remote, pages, 0);
    return got == (ssize_t)pages || (got < 0 && is_forbidden(errno));
}

bool blyi_py_reach(const struct blyi_py_call *call, int index, uint64_t n)
{
    uintptr_t start = (uintptr_t)call->v[index].u, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (start == 0 || n == 0)
        return true;
    if (!refuse_card(call, index))
        return false;
    uintptr_t last;
    if (__builtin_add_overflow(start, n - 1, &last))
        return unreadable(call, index, n);
    /* The last page first: a size that is nonsense fails there, before pages are touched. */
    if (!pages_can_be_read(last / page * page, 1, page))
        return unreadable(call, index, n);
    size_t left = (size_t)((last / page) - (start / page)) + 1;
    for (uintptr_t at = start / page * page; left > 0;) {
        size_t pages = left < PIECES ? left : PIECES;
        if (!pages_can_be_read(at, pages, page))
            return unreadable(call, index, n);
        at += pages * page;
        left -= pages;
    }
    return true;
}

bool blyi_py_read(const struct blyi_py_call *call, int index, void *to, uint64_t n)
{
    const char *from = (const char *)(uintptr_t)call->v[index].u;
    if (n == 0)
        return true;
    if (!refuse_card(call, index))
        return false;
    for (uint64_t done = 0; done < n;) {
        struct iovec local = {.iov_base = (char *)to + done, .iov_len = n - done};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)(from + done), .iov_len = n - done};
        ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (got < 0 && is_forbidden(errno)) {
            memcpy((char *)to + done, from + done, n - done);
            return true;
        }
        if (got <= 0)
            return unreadable(call, index, n);
        done += (uint64_t)got;
    }
    return true;
}
