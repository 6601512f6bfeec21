/* SPDX-License-Identifier: Apache-2.0
 *
 * list.c - calls with arrays, which are lists. Lengths that C takes beside them follow from the
 * lists.
 */
#include "acl_module.h"

PyObject *blyi_py_aclGetCannAttributeList(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.get_cann_attribute_list", "", {NULL}, 0};
    struct blyi_py_call call;
    const aclCannAttr *attributes = NULL;
    size_t n = 0;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    aclError ret = aclGetCannAttributeList(&attributes, &n);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *item = PyLong_FromLong((long)attributes[i]);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
            Py_CLEAR(list);
    }
    return Py_BuildValue("(NKi)", list, (unsigned long long)n, ret);
}

PyObject *blyi_py_aclrtCheckMemType(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.check_mem_type", "oII", {"addr_list", "mem_type", "reserve"}, 0};
    struct blyi_py_call call;
    void *addresses;
    size_t n;
    uint32_t result = 0;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_numbers_in(&call, 0, 'p', &addresses, &n))
        return NULL;
    void *none = NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtCheckMemType(n > 0 ? addresses : &none, (uint32_t)n, (uint32_t)call.v[1].u, &result,
                            (uint32_t)call.v[2].u);
    BLYI_PY_CALL_END
    PyMem_Free(addresses);
    return Py_BuildValue("(Ii)", result, ret);
}

PyObject *blyi_py_aclrtCreateLabelList(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.rt.create_label_list", "o", {"labels"}, 0};
    struct blyi_py_call call;
    void *labels;
    size_t n;
    aclrtLabelList list = NULL;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_numbers_in(&call, 0, 'p', &labels, &n))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtCreateLabelList(labels, n, &list);
    BLYI_PY_CALL_END
    PyMem_Free(labels);
    return Py_BuildValue("(Ki)", (unsigned long long)(uintptr_t)list, ret);
}

#define GROUP_WORDS 256

/* All attributes of groups are one or more int32_t. */
PyObject *blyi_py_aclrtGetGroupInfoDetail(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.get_group_info_detail", "pii", {"group_info", "group_index", "attr"}, 0};
    struct blyi_py_call call;
    int32_t words[GROUP_WORDS] = {0};
    size_t size = 0;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtGetGroupInfoDetail((const aclrtGroupInfo *)(uintptr_t)call.v[0].u,
                                  (int32_t)call.v[1].i, (aclrtGroupAttr)call.v[2].i, words,
                                  sizeof(words), &size);
    BLYI_PY_CALL_END
    size_t n = ret != ACL_SUCCESS     ? 0
               : size < sizeof(words) ? size / sizeof(words[0])
                                      : GROUP_WORDS;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *word = PyLong_FromLong(words[i]);
        if (word == NULL || PyList_SetItem(list, (Py_ssize_t)i, word) != 0)
            Py_CLEAR(list);
    }
    return Py_BuildValue("(Ni)", list, ret);
}

PyObject *blyi_py_aclrtNotifyBatchReset(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.rt.notify_batch_reset", "o", {"notifies"}, 0};
    struct blyi_py_call call;
    void *notifies;
    size_t n;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_numbers_in(&call, 0, 'p', &notifies, &n))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtNotifyBatchReset(notifies, n);
    BLYI_PY_CALL_END
    PyMem_Free(notifies);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtMemSetAccess(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.mem_set_access", "puo", {"vir_ptr", "size", "desc"}, 0};
    struct blyi_py_call call;
    void *grants;
    size_t n;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) ||
        !blyi_py_records_in(&call, 2, &blyi_py_aclrtMemAccessDesc, &grants, &n))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtMemSetAccess((void *)(uintptr_t)call.v[0].u, (size_t)call.v[1].u, grants, n);
    BLYI_PY_CALL_END
    PyMem_Free(grants);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtGetMemUceInfo(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.get_mem_uce_info", "iu", {"device_id", "array_size"}, 0};
    struct blyi_py_call call;
    size_t n = 0;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    aclrtMemUceInfo *infos = PyMem_Calloc((size_t)call.v[1].u, sizeof(*infos));
    if (infos == NULL)
        return PyErr_NoMemory();
    BLYI_PY_CALL_BEGIN
    ret = aclrtGetMemUceInfo((int32_t)call.v[0].i, infos, (size_t)call.v[1].u, &n);
    BLYI_PY_CALL_END
    PyObject *list = blyi_py_records_out(&blyi_py_aclrtMemUceInfo, infos, n);
    PyMem_Free(infos);
    return Py_BuildValue("(Ni)", list, ret);
}

PyObject *blyi_py_aclrtMemUceRepair(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.mem_uce_repair", "io", {"device_id", "mem_uce_info_array"}, 0};
    struct blyi_py_call call;
    void *infos;
    size_t n;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) ||
        !blyi_py_records_in(&call, 1, &blyi_py_aclrtMemUceInfo, &infos, &n))
        return NULL;
    aclrtMemUceInfo none = {0};
    BLYI_PY_CALL_BEGIN
    ret = aclrtMemUceRepair((int32_t)call.v[0].i, n > 0 ? infos : &none, n);
    BLYI_PY_CALL_END
    PyMem_Free(infos);
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtGetMemUsageInfo(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.get_mem_usage_info", "iu", {"device_id", "input_num"}, 0};
    struct blyi_py_call call;
    size_t n = 0;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    aclrtMemUsageInfo *infos = PyMem_Calloc((size_t)call.v[1].u, sizeof(*infos));
    if (infos == NULL)
        return PyErr_NoMemory();
    BLYI_PY_CALL_BEGIN
    ret = aclrtGetMemUsageInfo((int32_t)call.v[0].i, infos, (size_t)call.v[1].u, &n);
    BLYI_PY_CALL_END
    size_t filled = n < call.v[1].u ? n : (size_t)call.v[1].u; /* n may tell of more */
    PyObject *list = blyi_py_records_out(&blyi_py_aclrtMemUsageInfo, infos, filled);
    PyMem_Free(infos);
    return Py_BuildValue("(Ni)", list, ret);
}

/* ---- batches of copies: lists of equal length, attributes with the index each begins at */

struct batch {
    void *dsts, *maxima, *srcs, *sizes, *attrs, *indexes;
    size_t n, n_attrs;
};

static void batch_free(struct batch *batch)
{
    PyMem_Free(batch->dsts);
    PyMem_Free(batch->maxima);
    PyMem_Free(batch->srcs);
    PyMem_Free(batch->sizes);
    PyMem_Free(batch->attrs);
    PyMem_Free(batch->indexes);
}

static bool same_length(const struct blyi_py_call *call, int index, size_t n, size_t wanted)
{
    return n == wanted || blyi_py_wrong(call, index, "has %zu items, not %zu", n, wanted);
}

static bool batch_in(const struct blyi_py_call *call, struct batch *b)
{
    size_t n;
    *b = (struct batch){0};
    if (blyi_py_numbers_in(call, 0, 'p', &b->dsts, &b->n) &&
        blyi_py_numbers_in(call, 1, 'u', &b->maxima, &n) && same_length(call, 1, n, b->n) &&
        blyi_py_numbers_in(call, 2, 'p', &b->srcs, &n) && same_length(call, 2, n, b->n) &&
        blyi_py_numbers_in(call, 3, 'u', &b->sizes, &n) && same_length(call, 3, n, b->n) &&
        blyi_py_records_in(call, 4, &blyi_py_aclrtMemcpyBatchAttr, &b->attrs, &b->n_attrs) &&
        blyi_py_numbers_in(call, 5, 'u', &b->indexes, &n) && same_length(call, 5, n, b->n_attrs))
        return true;
    batch_free(b);
    return false;
}

/* `failed` chooses the call that tells which copy failed. */
static aclError batch_run(const struct batch *b, bool in_stream, aclrtStream stream, size_t *failed)
{
    if (in_stream && failed != NULL)
        return aclrtMemcpyBatchAsync(b->dsts, b->maxima, b->srcs, b->sizes, b->n, b->attrs,
                                     b->indexes, b->n_attrs, failed, stream);
    if (in_stream)
        return aclrtMemcpyBatchAsyncV2(b->dsts, b->maxima, b->srcs, b->sizes, b->n, b->attrs,
                                       b->indexes, b->n_attrs, stream);
    if (failed != NULL)
        return aclrtMemcpyBatch(b->dsts, b->maxima, b->srcs, b->sizes, b->n, b->attrs, b->indexes,
                                b->n_attrs, failed);
    return aclrtMemcpyBatchV2(b->dsts, b->maxima, b->srcs, b->sizes, b->n, b->attrs, b->indexes,
                              b->n_attrs);
}

static PyObject *copy_batch(const char *function, PyObject *args, bool in_stream, bool tells_index)
{
    const struct blyi_py_spec spec = {
        function,
        in_stream ? "oooooop" : "oooooo",
        {"dsts", "dest_maxs", "srcs", "sizes", "attrs", "attrs_indexes", "stream"},
        0};
    struct blyi_py_call call;
    struct batch b;
    size_t failed = SIZE_MAX;
    aclError ret;
    if (!blyi_py_begin(&call, &spec, args) || !batch_in(&call, &b))
        return NULL;
    aclrtStream stream = in_stream ? (aclrtStream)(uintptr_t)call.v[6].u : NULL;
    BLYI_PY_CALL_BEGIN
    ret = batch_run(&b, in_stream, stream, tells_index ? &failed : NULL);
    BLYI_PY_CALL_END
    batch_free(&b);
    if (!tells_index)
        return PyLong_FromLong(ret);
    return Py_BuildValue("(Ki)", (unsigned long long)failed, ret);
}

PyObject *blyi_py_aclrtMemcpyBatch(PyObject *self, PyObject *args)
{
    (void)self;
    return copy_batch("acl.rt.memcpy_batch", args, false, true);
}

PyObject *blyi_py_aclrtMemcpyBatchV2(PyObject *self, PyObject *args)
{
    (void)self;
    return copy_batch("acl.rt.memcpy_batch_v2", args, false, false);
}

PyObject *blyi_py_aclrtMemcpyBatchAsync(PyObject *self, PyObject *args)
{
    (void)self;
    return copy_batch("acl.rt.memcpy_batch_async", args, true, true);
}

PyObject *blyi_py_aclrtMemcpyBatchAsyncV2(PyObject *self, PyObject *args)
{
    (void)self;
    return copy_batch("acl.rt.memcpy_batch_async_v2", args, true, false);
}
