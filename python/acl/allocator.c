/* SPDX-License-Identifier: Apache-2.0
 *
 * allocator.c - the functions of a program's own allocator, in Python.
 *
 * C hands them to whoever asks for the stream's allocator; the runtime itself calls none. There
 * is one function of each kind at a time, the last that was set, as in pyACL.
 */
#include "acl_module.h"

enum slot { ALLOC, FREE, ADVISE, GET_ADDRESS, SLOTS };

static PyObject *functions[SLOTS]; /* under the interpreter's lock */

/* An int is an address; None, or anything else, is NULL. Takes `arguments`. */
static void *call_slot(enum slot slot, PyObject *arguments)
{
    PyObject *fn = functions[slot], *result = NULL;
    uint64_t address = 0;
    Py_XINCREF(fn);
    if (fn != NULL && arguments != NULL)
        result = PyObject_CallObject(fn, arguments);
    if (result != NULL && result != Py_None)
        (void)blyi_py_number(result, 'p', &address);
    blyi_py_finish(fn, result);
    Py_XDECREF(fn);
    Py_XDECREF(arguments);
    return (void *)(uintptr_t)address;
}

static unsigned long long number(const void *pointer)
{
    return (uintptr_t)pointer;
}

static void *alloc(aclrtAllocator allocator, size_t size)
{
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return NULL;
    void *block =
        call_slot(ALLOC, Py_BuildValue("(KK)", number(allocator), (unsigned long long)size));
    blyi_py_leave(state);
    return block;
}

static void release(aclrtAllocator allocator, aclrtAllocatorBlock block)
{
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return;
    (void)call_slot(FREE, Py_BuildValue("(KK)", number(allocator), number(block)));
    blyi_py_leave(state);
}

static void *alloc_advise(aclrtAllocator allocator, size_t size, aclrtAllocatorAddr address)
{
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return NULL;
    void *block = call_slot(ADVISE, Py_BuildValue("(KKK)", number(allocator),
                                                  (unsigned long long)size, number(address)));
    blyi_py_leave(state);
    return block;
}

static void *get_address(aclrtAllocatorBlock block)
{
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return NULL;
    void *address = call_slot(GET_ADDRESS, Py_BuildValue("(K)", number(block)));
    blyi_py_leave(state);
    return address;
}

static aclError set_in(aclrtAllocatorDesc desc, enum slot slot)
{
    switch (slot) {
    case ALLOC:
        return aclrtAllocatorSetAllocFuncToDesc(desc, alloc);
    case FREE:
        return aclrtAllocatorSetFreeFuncToDesc(desc, release);
    case ADVISE:
        return aclrtAllocatorSetAllocAdviseFuncToDesc(desc, alloc_advise);
    default:
        return aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, get_address);
    }
}

static PyObject *set(const char *function, PyObject *args, enum slot slot)
{
    const struct blyi_py_spec spec = {function, "pc", {"allocator_desc", "fn"}, 0};
    struct blyi_py_call call;
    aclError ret;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = set_in((aclrtAllocatorDesc)(uintptr_t)call.v[0].u, slot);
    BLYI_PY_CALL_END
    if (ret == ACL_SUCCESS) {
        PyObject *old = functions[slot];
        Py_INCREF(call.v[1].o);
        functions[slot] = call.v[1].o;
        Py_XDECREF(old);
    }
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtAllocatorSetAllocFuncToDesc(PyObject *self, PyObject *args)
{
    (void)self;
    return set("acl.rt.allocator_set_alloc_func_to_desc", args, ALLOC);
}

PyObject *blyi_py_aclrtAllocatorSetFreeFuncToDesc(PyObject *self, PyObject *args)
{
    (void)self;
    return set("acl.rt.allocator_set_free_func_to_desc", args, FREE);
}

PyObject *blyi_py_aclrtAllocatorSetAllocAdviseFuncToDesc(PyObject *self, PyObject *args)
{
    (void)self;
    return set("acl.rt.allocator_set_alloc_advise_func_to_desc", args, ADVISE);
}

PyObject *blyi_py_aclrtAllocatorSetGetAddrFromBlockFuncToDesc(PyObject *self, PyObject *args)
{
    (void)self;
    return set("acl.rt.allocator_set_get_addr_from_block_func_to_desc", args, GET_ADDRESS);
}
