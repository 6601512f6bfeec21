/* SPDX-License-Identifier: Apache-2.0
 *
 * tdt.c - tensor queues: dimensions as lists, parameters of any type as ints and strs.
 */
#include "acl_module.h"

#define DIMS_MAX 4096u /* far above what a data item has */

PyObject *blyi_py_acltdtCreateDataItem(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.tdt.create_data_item", "ioipu", {"tdt_type", "dims", "data_type", "data", "size"}, 0};
    struct blyi_py_call call;
    void *dims;
    size_t n;
    acltdtDataItem *item;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_numbers_in(&call, 1, 'l', &dims, &n))
        return NULL;
    BLYI_PY_CALL_BEGIN
    item = acltdtCreateDataItem((acltdtTensorType)call.v[0].i, dims, n, (aclDataType)call.v[2].i,
                                (void *)(uintptr_t)call.v[3].u, (size_t)call.v[4].u);
    BLYI_PY_CALL_END
    PyMem_Free(dims);
    return PyLong_FromUnsignedLongLong((uintptr_t)item);
}

PyObject *blyi_py_acltdtGetDimsFromItem(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.tdt.get_dims_from_item", "p", {"data_item"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    const acltdtDataItem *item = (const acltdtDataItem *)(uintptr_t)call.v[0].u;
    size_t n = acltdtGetDimNumFromItem(item);
    n = n < DIMS_MAX ? n : DIMS_MAX;
    int64_t *dims = n > 0 ? PyMem_Calloc(n, sizeof(*dims)) : NULL;
    if (n > 0 && dims == NULL)
        return PyErr_NoMemory();
    aclError ret = acltdtGetDimsFromItem(item, dims, n); /* also says what is wrong with a handle */
    n = ret == ACL_SUCCESS ? n : 0;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *dim = PyLong_FromLongLong(dims[i]);
        if (dim == NULL || PyList_SetItem(list, (Py_ssize_t)i, dim) != 0)
            Py_CLEAR(list);
    }
    PyMem_Free(dims);
    return Py_BuildValue("(Ni)", list, ret);
}

/* ---- attributes of a queue: a name or a depth */

PyObject *blyi_py_acltdtSetQueueAttr(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec by_name = {
        "acl.tdt.set_queue_attr", "pis", {"attr", "type", "param"}, 0};
    static const struct blyi_py_spec by_number = {
        "acl.tdt.set_queue_attr", "piI", {"attr", "type", "param"}, 0};
    struct blyi_py_call call;
    PyObject *last = PyTuple_Size(args) == 3 ? PyTuple_GetItem(args, 2) : NULL;
    bool is_name = last != NULL && PyUnicode_Check(last);
    (void)self;
    if (!blyi_py_begin(&call, is_name ? &by_name : &by_number, args))
        return NULL;
    uint32_t number = (uint32_t)call.v[2].u;
    const void *param = is_name ? (const void *)&call.v[2].s : &number;
    aclError ret = acltdtSetQueueAttr((acltdtQueueAttr *)(uintptr_t)call.v[0].u,
                                      (acltdtQueueAttrType)call.v[1].i,
                                      is_name ? sizeof(char *) : sizeof(number), param);
    blyi_py_end(&call);
    return PyLong_FromLong(ret);
}

/* The name belongs to the attributes, so the interpreter's lock is kept until it is copied. */
PyObject *blyi_py_acltdtGetQueueAttr(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.tdt.get_queue_attr", "pi", {"attr", "type"}, 0};
    struct blyi_py_call call;
    union {
        const char *name;
        uint32_t number;
    } param = {NULL};
    size_t size = 0;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    aclError ret =
        acltdtGetQueueAttr((const acltdtQueueAttr *)(uintptr_t)call.v[0].u,
                           (acltdtQueueAttrType)call.v[1].i, sizeof(param), &size, &param);
    if (ret != ACL_SUCCESS)
        return Py_BuildValue("(ii)", 0, ret);
    if (call.v[1].i == ACL_TDT_QUEUE_NAME_PTR)
        return Py_BuildValue("(Ni)", blyi_py_text(param.name), ret);
    return Py_BuildValue("(Ii)", param.number, ret);
}

/* ---- routes: numbers of 32 bits; the status has a sign */

PyObject *blyi_py_acltdtGetQueueRouteParam(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.tdt.get_queue_route_param", "pi", {"route", "type"}, 0};
    struct blyi_py_call call;
    uint32_t param = 0;
    size_t size = 0;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = acltdtGetQueueRouteParam((const acltdtQueueRoute *)(uintptr_t)call.v[0].u,
                                   (acltdtQueueRouteParamType)call.v[1].i, sizeof(param), &size,
                                   &param);
    BLYI_PY_CALL_END
    if (call.v[1].i == ACL_TDT_QUEUE_ROUTE_STATUS_INT32)
        return Py_BuildValue("(ii)", (int32_t)param, ret);
    return Py_BuildValue("(Ii)", param, ret);
}

PyObject *blyi_py_acltdtSetQueueRouteQueryInfo(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.tdt.set_queue_route_query_info", "piI", {"query_info", "type", "value"}, 0};
    struct blyi_py_call call;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    uint32_t value = (uint32_t)call.v[2].u;
    BLYI_PY_CALL_BEGIN
    ret = acltdtSetQueueRouteQueryInfo((acltdtQueueRouteQueryInfo *)(uintptr_t)call.v[0].u,
                                       (acltdtQueueRouteQueryInfoParamType)call.v[1].i,
                                       sizeof(value), &value);
    BLYI_PY_CALL_END
    return PyLong_FromLong(ret);
}
