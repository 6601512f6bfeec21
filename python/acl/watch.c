/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - Python functions that are told of states and of tasks that fail.
 *
 * A closure that was registered once is kept for good: a thread of the runtime may be on its way
 * into it while another one takes it back.
 */
#include "acl_module.h"

/* ---- states: fn(id, state[, timeout], args) */

static PyObject *call_state(const struct blyi_py_closure *closure, const char *format,
                            unsigned long long id, int state, unsigned timeout)
{
    PyObject *leading = Py_BuildValue(format, id, state, timeout);
    PyObject *last = PyTuple_Pack(1, closure->data);
    PyObject *arguments = leading && last ? PySequence_Concat(leading, last) : NULL;
    PyObject *result = arguments ? PyObject_CallObject(closure->fn, arguments) : NULL;
    Py_XDECREF(leading);
    Py_XDECREF(last);
    Py_XDECREF(arguments);
    return result;
}

static void device_state(int32_t device, aclrtDeviceState value, void *data)
{
    const struct blyi_py_closure *closure = data;
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return;
    blyi_py_finish(closure->fn,
                   call_state(closure, "(Ki)", (unsigned long long)device, (int)value, 0));
    blyi_py_leave(state);
}

static void stream_state(aclrtStream stream, aclrtStreamState value, void *data)
{
    const struct blyi_py_closure *closure = data;
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return;
    blyi_py_finish(closure->fn, call_state(closure, "(Ki)", (unsigned long long)(uintptr_t)stream,
                                           (int)value, 0));
    blyi_py_leave(state);
}

/* What the function returns is the callback's answer; None is 0, a failure -1. */
static int32_t task_abort(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout,
                          void *data)
{
    const struct blyi_py_closure *closure = data;
    PyGILState_STATE state;
    uint64_t answer = 0;
    if (!blyi_py_enter(&state))
        return 0;
    PyObject *result =
        call_state(closure, "(KiI)", (unsigned long long)device, (int)stage, timeout);
    if (result == NULL)
        answer = UINT64_MAX;
    else if (result != Py_None)
        (void)blyi_py_number(result, 'i', &answer);
    blyi_py_finish(closure->fn, result);
    blyi_py_leave(state);
    return (int32_t)answer;
}

/* NULL when there is nothing to call, and then *failed tells why. */
static struct blyi_py_closure *closure_of(struct blyi_py_call *call, bool *failed)
{
    struct blyi_py_closure *closure = NULL;
    if (call->v[1].o != NULL)
        closure = blyi_py_closure_new(call->v[1].o, call->v[2].o);
    *failed = closure == NULL && call->v[1].o != NULL;
    return closure;
}

static aclError set_device_state(const char *name, struct blyi_py_closure *closure)
{
    return aclrtRegDeviceStateCallback(name, closure != NULL ? device_state : NULL, closure);
}

static aclError set_stream_state(const char *name, struct blyi_py_closure *closure)
{
    return aclrtRegStreamStateCallback(name, closure != NULL ? stream_state : NULL, closure);
}

static aclError set_task_abort(const char *name, struct blyi_py_closure *closure)
{
    return aclrtSetDeviceTaskAbortCallback(name, closure != NULL ? task_abort : NULL, closure);
}

static PyObject *register_state(const char *function, PyObject *args,
                                aclError (*set)(const char *, struct blyi_py_closure *))
{
    const struct blyi_py_spec spec = {function, "SCo", {"reg_name", "fn", "args"}, 0};
    struct blyi_py_call call;
    bool failed;
    aclError ret;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    struct blyi_py_closure *closure = closure_of(&call, &failed);
    if (failed)
        return blyi_py_fail(&call);
    BLYI_PY_CALL_BEGIN
    ret = set(call.v[0].s, closure);
    BLYI_PY_CALL_END
    if (ret != ACL_SUCCESS && closure != NULL)
        blyi_py_closure_free(closure);
    blyi_py_end(&call);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtRegDeviceStateCallback(PyObject *self, PyObject *args)
{
    (void)self;
    return register_state("acl.rt.reg_device_state_callback", args, set_device_state);
}

PyObject *blyi_py_aclrtRegStreamStateCallback(PyObject *self, PyObject *args)
{
    (void)self;
    return register_state("acl.rt.reg_stream_state_callback", args, set_stream_state);
}

PyObject *blyi_py_aclrtSetDeviceTaskAbortCallback(PyObject *self, PyObject *args)
{
    (void)self;
    return register_state("acl.rt.set_device_task_abort_callback", args, set_task_abort);
}

/* ---- tasks that fail: fn(info). C tells callbacks apart by their address; there are two for all
 * Python functions, the single one and the one of a list. Both need the interpreter's lock. */

static PyObject *single, *several;

static void call_with(PyObject *fn, aclrtExceptionInfo *info)
{
    PyObject *argument = PyLong_FromVoidPtr(info), *result = NULL;
    if (argument != NULL)
        result = PyObject_CallFunctionObjArgs(fn, argument, NULL);
    Py_XDECREF(argument);
    blyi_py_finish(fn, result);
}

static void tell_single(aclrtExceptionInfo *info)
{
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return;
    PyObject *fn = single;
    if (fn != NULL) {
        Py_INCREF(fn); /* it may unregister itself */
        call_with(fn, info);
        Py_DECREF(fn);
    }
    blyi_py_leave(state);
}

static void tell_several(aclrtExceptionInfo *info)
{
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return;
    PyObject *all = several != NULL ? PySequence_Tuple(several) : NULL;
    for (Py_ssize_t i = 0; all != NULL && i < PyTuple_Size(all); i++)
        call_with(PyTuple_GetItem(all, i), info);
    Py_XDECREF(all);
    PyErr_Clear();
    blyi_py_leave(state);
}

/* Registered by nobody: the runtime says what it thinks of an unknown callback. */
static void unknown(aclrtExceptionInfo *info)
{
    (void)info;
}

PyObject *blyi_py_aclrtSetExceptionInfoCallback(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.rt.set_exception_info_callback", "C", {"fn"}, 1};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    PyObject *old = single, *fn = call.v[0].o;
    aclError ret;
    Py_XINCREF(fn);
    single = fn;
    BLYI_PY_CALL_BEGIN
    ret = aclrtSetExceptionInfoCallback(fn != NULL ? tell_single : NULL);
    BLYI_PY_CALL_END
    Py_XDECREF(old);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtExceptionInfoCallbackRegister(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.exception_info_callback_register", "c", {"fn"}, 0};
    struct blyi_py_call call;
    aclError ret = ACL_SUCCESS;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    if (several == NULL && (several = PyList_New(0)) == NULL)
        return NULL;
    if (PyList_Append(several, call.v[0].o) != 0)
        return NULL;
    if (PyList_Size(several) == 1)
        ret = aclrtExceptionInfoCallbackRegister(tell_several);
    if (ret != ACL_SUCCESS)
        PyList_SetSlice(several, 0, 1, NULL);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtExceptionInfoCallbackUnregister(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.exception_info_callback_unregister", "c", {"fn"}, 0};
    struct blyi_py_call call;
    aclError ret = ACL_SUCCESS;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    Py_ssize_t at = several != NULL ? PySequence_Index(several, call.v[0].o) : -1;
    PyErr_Clear();
    if (at < 0)
        return PyLong_FromLong(aclrtExceptionInfoCallbackUnregister(unknown));
    if (PyList_SetSlice(several, at, at + 1, NULL) != 0)
        return NULL;
    if (PyList_Size(several) == 0)
        ret = aclrtExceptionInfoCallbackUnregister(tell_several);
    return PyLong_FromLong(ret);
}
