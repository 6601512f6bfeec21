/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.c - kernel binaries and launches with options. Options are lists of {"type": , "value": }
 * or {"id": , "value": }, whatever member of C's union the value is: it lies at its start.
 */
#include "acl_module.h"

static const struct blyi_py_field load_option_fields[] = {
    {"type", offsetof(aclrtBinaryLoadOption, type), 'i', 0, NULL},
    {"value", offsetof(aclrtBinaryLoadOption, value), 'I', 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static const struct blyi_py_record load_option = {"aclrtBinaryLoadOption", load_option_fields,
                                                  sizeof(aclrtBinaryLoadOption)};

static const struct blyi_py_field launch_attribute_fields[] = {
    {"id", offsetof(aclrtLaunchKernelAttr, id), 'i', 0, NULL},
    {"value", offsetof(aclrtLaunchKernelAttr, value), 'u', 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static const struct blyi_py_record launch_attribute = {
    "aclrtLaunchKernelAttr", launch_attribute_fields, sizeof(aclrtLaunchKernelAttr)};

static bool options_in(const struct blyi_py_call *call, int index, aclrtBinaryLoadOptions *options)
{
    void *list;
    if (!blyi_py_records_in(call, index, &load_option, &list, &options->numOpt))
        return false;
    options->options = list;
    return true;
}

bool blyi_py_launch_config_in(const struct blyi_py_call *call, int index, aclrtLaunchKernelCfg *cfg)
{
    void *list;
    if (!blyi_py_records_in(call, index, &launch_attribute, &list, &cfg->numAttrs))
        return false;
    cfg->attrs = list;
    return true;
}

PyObject *blyi_py_aclrtBinaryLoadFromFile(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.binary_load_from_file", "so", {"bin_path", "options"}, 0};
    struct blyi_py_call call;
    aclrtBinaryLoadOptions options;
    aclrtBinHandle handle = NULL;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    if (!options_in(&call, 1, &options))
        return blyi_py_fail(&call);
    BLYI_PY_CALL_BEGIN
    ret = aclrtBinaryLoadFromFile(call.v[0].s, options.numOpt > 0 ? &options : NULL, &handle);
    BLYI_PY_CALL_END
    PyMem_Free(options.options);
    blyi_py_end(&call);
    return Py_BuildValue("(Ki)", (unsigned long long)(uintptr_t)handle, ret);
}

PyObject *blyi_py_aclrtBinaryLoadFromData(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.binary_load_from_data", "puo", {"data", "length", "options"}, 0};
    struct blyi_py_call call;
    aclrtBinaryLoadOptions options;
    aclrtBinHandle handle = NULL;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_reach(&call, 0, call.v[1].u) ||
        !options_in(&call, 2, &options))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtBinaryLoadFromData((const void *)(uintptr_t)call.v[0].u, (size_t)call.v[1].u,
                                  options.numOpt > 0 ? &options : NULL, &handle);
    BLYI_PY_CALL_END
    PyMem_Free(options.options);
    return Py_BuildValue("(Ki)", (unsigned long long)(uintptr_t)handle, ret);
}

PyObject *blyi_py_aclrtLaunchKernelWithConfig(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.launch_kernel_with_config",
        "pIpopp",
        {"func_handle", "num_blocks", "stream", "cfg", "args_handle", "reserve"},
        0};
    struct blyi_py_call call;
    aclrtLaunchKernelCfg cfg;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_launch_config_in(&call, 3, &cfg))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtLaunchKernelWithConfig(
        (aclrtFuncHandle)(uintptr_t)call.v[0].u, (uint32_t)call.v[1].u,
        (aclrtStream)(uintptr_t)call.v[2].u, cfg.numAttrs > 0 ? &cfg : NULL,
        (aclrtArgsHandle)(uintptr_t)call.v[4].u, (void *)(uintptr_t)call.v[5].u);
    BLYI_PY_CALL_END
    PyMem_Free(cfg.attrs);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtLaunchKernelV2(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.launch_kernel_v2",
        "pIpuop",
        {"func_handle", "num_blocks", "args_data", "args_size", "cfg", "stream"},
        0};
    struct blyi_py_call call;
    aclrtLaunchKernelCfg cfg;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_launch_config_in(&call, 4, &cfg))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtLaunchKernelV2((aclrtFuncHandle)(uintptr_t)call.v[0].u, (uint32_t)call.v[1].u,
                              (const void *)(uintptr_t)call.v[2].u, (size_t)call.v[3].u,
                              cfg.numAttrs > 0 ? &cfg : NULL, (aclrtStream)(uintptr_t)call.v[5].u);
    BLYI_PY_CALL_END
    PyMem_Free(cfg.attrs);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtLaunchKernelWithHostArgs(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.rt.launch_kernel_with_host_args",
                                             "pIpopuo",
                                             {"func_handle", "num_blocks", "stream", "cfg",
                                              "host_args", "args_size", "place_holder_array"},
                                             0};
    struct blyi_py_call call;
    aclrtLaunchKernelCfg cfg;
    void *holders;
    size_t n_holders;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_reach(&call, 4, call.v[5].u) ||
        !blyi_py_launch_config_in(&call, 3, &cfg))
        return NULL;
    if (!blyi_py_records_in(&call, 6, &blyi_py_aclrtPlaceHolderInfo, &holders, &n_holders)) {
        PyMem_Free(cfg.attrs);
        return NULL;
    }
    BLYI_PY_CALL_BEGIN
    ret = aclrtLaunchKernelWithHostArgs(
        (aclrtFuncHandle)(uintptr_t)call.v[0].u, (uint32_t)call.v[1].u,
        (aclrtStream)(uintptr_t)call.v[2].u, cfg.numAttrs > 0 ? &cfg : NULL,
        (void *)(uintptr_t)call.v[4].u, (size_t)call.v[5].u, holders, n_holders);
    BLYI_PY_CALL_END
    PyMem_Free(cfg.attrs);
    PyMem_Free(holders);
    return PyLong_FromLong(ret);
}

/* Addresses of the parameters. C has no length beside them, so the runtime finds NULL where the
 * list is shorter than the kernel's parameters, and says which one is missing. */
PyObject *blyi_py_aclrtLaunchKernelWithArgsArray(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.rt.launch_kernel_with_args_array",
                                             "pIpoo",
                                             {"func", "num_blocks", "stream", "cfg", "args"},
                                             0};
    struct blyi_py_call call;
    aclrtLaunchKernelCfg cfg;
    void *given;
    size_t n, wanted = 0;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_launch_config_in(&call, 3, &cfg))
        return NULL;
    void *func = (void *)(uintptr_t)call.v[0].u;
    if (!blyi_py_numbers_in(&call, 4, 'p', &given, &n)) {
        PyMem_Free(cfg.attrs);
        return NULL;
    }
    if (aclrtFunctionGetParamCount(func, &wanted) != ACL_SUCCESS || wanted < n)
        wanted = n; /* what is wrong with the function, the launch says */
    void **places = PyMem_Calloc(wanted + 1, sizeof(*places));
    if (places != NULL) {
        for (size_t i = 0; i < n; i++)
            places[i] = ((void **)given)[i];
        BLYI_PY_CALL_BEGIN
        ret = aclrtLaunchKernelWithArgsArray(func, (uint32_t)call.v[1].u,
                                             (aclrtStream)(uintptr_t)call.v[2].u,
                                             cfg.numAttrs > 0 ? &cfg : NULL, places);
        BLYI_PY_CALL_END
    }
    bool done = places != NULL;
    PyMem_Free(places);
    PyMem_Free(given);
    PyMem_Free(cfg.attrs);
    return done ? PyLong_FromLong(ret) : PyErr_NoMemory();
}
