/* SPDX-License-Identifier: Apache-2.0
 *
 * module.c - the module acl with its parts, as pyACL's, over libascendcl.so.
 */
#include <base/acl_log.h>

#include "acl_module.h"

PyObject *blyi_py_aclInit(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.init", "S", {"config_path"}, 1};
    struct blyi_py_call call;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclInit(call.v[0].s);
    BLYI_PY_CALL_END
    blyi_py_end(&call);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclAppLog(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.app_log", "is", {"log_level", "message"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    aclAppLog((aclLogLevel)call.v[0].i, "app_log", "acl", 0, "%s", call.v[1].s);
    BLYI_PY_CALL_END
    blyi_py_end(&call);
    Py_RETURN_NONE;
}

PyObject *blyi_py_acllogRecord(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.log_record", "iis", {"module_id", "level", "message"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    acllogRecord((int32_t)call.v[0].i, (int32_t)call.v[1].i, "%s", call.v[2].s);
    BLYI_PY_CALL_END
    blyi_py_end(&call);
    Py_RETURN_NONE;
}

/* C wants NULL for the reserved flags; pyACL returns 0 for them. */
PyObject *blyi_py_aclrtGetPrimaryCtxState(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.rt.get_primary_ctx_state", "i", {"device_id"}, 0};
    struct blyi_py_call call;
    int32_t active = 0;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtGetPrimaryCtxState((int32_t)call.v[0].i, NULL, &active);
    BLYI_PY_CALL_END
    return Py_BuildValue("(iii)", active, 0, ret);
}

/* pyACL returns the descriptor, which it was given. */
PyObject *blyi_py_aclrtSetMemcpyDesc(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.set_memcpy_desc",
        "pippup",
        {"desc", "kind", "src_addr", "dst_addr", "count", "config"},
        0};
    struct blyi_py_call call;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtSetMemcpyDesc((void *)(uintptr_t)call.v[0].u, (aclrtMemcpyKind)call.v[1].i,
                             (void *)(uintptr_t)call.v[2].u, (void *)(uintptr_t)call.v[3].u,
                             (size_t)call.v[4].u, (void *)(uintptr_t)call.v[5].u);
    BLYI_PY_CALL_END
    return Py_BuildValue("(Ki)", (unsigned long long)call.v[0].u, ret);
}

static PyMethodDef util_methods[] = {
    {"numpy_to_ptr", blyi_py_numpy_to_ptr, METH_VARARGS,
     "numpy_to_ptr($module, array, /)\n--\n\nAddress of the array's data; the array must live on."},
    {"numpy_contiguous_to_ptr", blyi_py_numpy_contiguous_to_ptr, METH_VARARGS,
     "numpy_contiguous_to_ptr($module, array, /)\n--\n\n-> address, contiguous array that has it"},
    {"ptr_to_numpy", blyi_py_ptr_to_numpy, METH_VARARGS,
     "ptr_to_numpy($module, ptr, shape, dtype, /)\n--\n\n"
     "Array over host memory; dtype is NumPy's type number. Nothing is copied."},
    {"bytes_to_ptr", blyi_py_bytes_to_ptr, METH_VARARGS,
     "bytes_to_ptr($module, data, /)\n--\n\nAddress of the bytes; the object must live on."},
    {"ptr_to_bytes", blyi_py_ptr_to_bytes, METH_VARARGS,
     "ptr_to_bytes($module, ptr, size, /)\n--\n\nCopy of host memory."},
    {"start_thread", blyi_py_start_thread, METH_VARARGS,
     "start_thread($module, fn, args, /)\n--\n\nRuns fn(args), or fn() for None -> thread, ret"},
    {"stop_thread", blyi_py_stop_thread, METH_VARARGS,
     "stop_thread($module, thread_id, /)\n--\n\nWaits for its end -> ret"},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef profiler_methods[] = {
    {"start", (PyCFunction)(void (*)(void))blyi_py_profiler_start, METH_VARARGS | METH_KEYWORDS,
     "start($module, what=acl.PROFILER_MEMORY_EVENT, path=None, stacks=0)\n--\n\n"
     "Records from here on; the recording is kept at `path`, with stacks of so many frames."},
    {"stop", blyi_py_profiler_stop, METH_NOARGS, "stop($module)\n--\n\nEnds what start() began."},
    {"analyze", blyi_py_profiler_analyze, METH_NOARGS,
     "analyze($module)\n--\n\nA Report of what was recorded last; acl.profiler.report from then "
     "on."},
    {"range_push", blyi_py_profiler_range_push, METH_VARARGS,
     "range_push($module, name, /)\n--\n\nWhat this thread does from here on is part of `name`."},
    {"range_pop", blyi_py_profiler_range_pop, METH_NOARGS,
     "range_pop($module)\n--\n\nThe thread's innermost range ends."},
    {"mark", blyi_py_profiler_mark, METH_VARARGS,
     "mark($module, name, /)\n--\n\nOne moment, with a name."},
    {"tag", blyi_py_profiler_tag, METH_VARARGS,
     "tag($module, address, name, /)\n--\n\nThe block around the address is known as `name`."},
    {NULL, NULL, 0, NULL},
};

static bool add_constants(PyObject *module)
{
    for (const struct blyi_py_constant *c = blyi_py_constants; c->name != NULL; c++)
        if (PyModule_AddIntConstant(module, c->name, (long)c->value) != 0)
            return false;
    for (const struct blyi_py_text_constant *c = blyi_py_texts; c->name != NULL; c++)
        if (PyModule_AddStringConstant(module, c->name, c->value) != 0)
            return false;
    return true;
}

/* In sys.modules too, so that `import acl.rt` and `from acl.rt import malloc` work. */
static bool add_submodule(PyObject *module, const char *name, const char *full,
                          PyMethodDef *methods)
{
    PyObject *submodule = PyImport_AddModule(full); /* borrowed */
    if (submodule == NULL || PyModule_AddFunctions(submodule, methods) != 0)
        return false;
    Py_INCREF(submodule);
    if (PyModule_AddObject(module, name, submodule) == 0)
        return true;
    Py_DECREF(submodule);
    return false;
}

PyMODINIT_FUNC PyInit_acl(void); /* the one name that is exported */

PyMODINIT_FUNC PyInit_acl(void)
{
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        "acl",
        "AscendCL on Belay's software NPU, by the conventions of pyACL.",
        -1,
        blyi_py_methods_acl,
        NULL,
        NULL,
        NULL,
        NULL};
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    blyi_py_frames_begin();
    if (add_constants(module) && add_submodule(module, "rt", "acl.rt", blyi_py_methods_acl_rt) &&
        add_submodule(module, "mdl", "acl.mdl", blyi_py_methods_acl_mdl) &&
        add_submodule(module, "tdt", "acl.tdt", blyi_py_methods_acl_tdt) &&
        add_submodule(module, "util", "acl.util", util_methods) &&
        add_submodule(module, "profiler", "acl.profiler", profiler_methods) &&
        blyi_py_profiler_begin(module) && blyi_py_callbacks_begin())
        return module;
    Py_DECREF(module);
    return NULL;
}
