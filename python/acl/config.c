/* SPDX-License-Identifier: Apache-2.0
 *
 * config.c - allocations with attributes, and attributes of streams: calls whose structs hold
 * unions, which are dictionaries with the one key that is meant.
 */
#include "acl_module.h"

static bool has_one_key(const struct blyi_py_call *call, int index, PyObject *dict)
{
    if (PyDict_Check(dict) && PyDict_Size(dict) == 1)
        return true;
    return blyi_py_wrong(call, index, "is not a dict with one key: %R", dict);
}

/* ---- aclrtMallocConfig: {"attrs": [{"attr": 1, "value": {"moduleId": 2}}], "numAttrs": 1} */

static const struct blyi_py_field attribute_value_fields[] = {
    {"moduleId", 0, 'H', 0, NULL}, {"deviceId", 0, 'I', 0, NULL}, {"vaFlag", 0, 'I', 0, NULL},
    {"rsv", 0, 'B', 8, NULL},      {NULL, 0, 0, 0, NULL},
};
static const struct blyi_py_record attribute_value = {
    "aclrtMallocAttrValue", attribute_value_fields, sizeof(aclrtMallocAttrValue)};

static bool attribute_in(const struct blyi_py_call *call, int index, PyObject *dict,
                         aclrtMallocAttribute *attribute)
{
    uint64_t bits = 0;
    if (!PyDict_Check(dict))
        return blyi_py_wrong(call, index, "has an attribute that is no dict: %R", dict);
    PyObject *number = PyDict_GetItemString(dict, "attr");
    PyObject *value = PyDict_GetItemString(dict, "value");
    if (number == NULL || value == NULL || PyDict_Size(dict) != 2)
        return blyi_py_wrong(call, index, "has an attribute without attr and value: %R", dict);
    Py_INCREF(value); /* __index__ of the number may change the dict */
    const char *wrong = blyi_py_number(number, 'i', &bits);
    bool done = wrong == NULL || blyi_py_wrong(call, index, "attr %s: %R", wrong, dict);
    attribute->attr = (aclrtMallocAttrType)(int32_t)bits;
    done = done && has_one_key(call, index, value) &&
           blyi_py_dict_in(call, index, value, &attribute_value, &attribute->value);
    Py_DECREF(value);
    return done;
}

static bool check_count(const struct blyi_py_call *call, int index, Py_ssize_t n)
{
    uint64_t count = (uint64_t)n;
    PyObject *dict = call->v[index].o, *given = PyDict_GetItemString(dict, "numAttrs");
    const char *wrong = given != NULL ? blyi_py_number(given, 'u', &count) : NULL;
    if (wrong != NULL || count != (uint64_t)n)
        return blyi_py_wrong(call, index, "has %zd attrs, and numAttrs is another: %R", n, dict);
    return PyDict_Size(dict) == (given != NULL ? 2 : 1) ||
           blyi_py_wrong(call, index, "has other keys than attrs and numAttrs: %R", dict);
}

/* {} is no configuration. *cfg is to be given back with config_free(). */
static bool config_in(const struct blyi_py_call *call, int index, aclrtMallocConfig *cfg,
                      aclrtMallocConfig **used)
{
    PyObject *dict = call->v[index].o;
    *cfg = (aclrtMallocConfig){NULL, 0};
    *used = NULL;
    if (!PyDict_Check(dict))
        return blyi_py_wrong(call, index, "is not a dict: %R", dict);
    if (PyDict_Size(dict) == 0)
        return true;
    PyObject *list = PyDict_GetItemString(dict, "attrs");
    if (list == NULL || !PyList_Check(list))
        return blyi_py_wrong(call, index, "has no list \"attrs\": %R", dict);
    Py_INCREF(list);
    Py_ssize_t n = PyList_Size(list);
    bool done = check_count(call, index, n);
    cfg->attrs = done ? PyMem_Calloc((size_t)n + 1, sizeof(*cfg->attrs)) : NULL;
    if (done && cfg->attrs == NULL) {
        PyErr_NoMemory();
        done = false;
    }
    for (Py_ssize_t i = 0; done && i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        done = item != NULL && attribute_in(call, index, item, &cfg->attrs[i]);
        Py_XDECREF(item);
    }
    Py_DECREF(list);
    if (!done) {
        PyMem_Free(cfg->attrs);
        return false;
    }
    cfg->numAttrs = (size_t)n;
    *used = cfg;
    return true;
}

static PyObject *malloc_with(const char *function, PyObject *args,
                             aclError (*allocate)(void **, size_t, aclrtMemMallocPolicy,
                                                  aclrtMallocConfig *))
{
    const struct blyi_py_spec spec = {function, "uio", {"size", "policy", "cfg"}, 0};
    struct blyi_py_call call;
    aclrtMallocConfig cfg, *used;
    void *memory = NULL;
    aclError ret;
    if (!blyi_py_begin(&call, &spec, args) || !config_in(&call, 2, &cfg, &used))
        return NULL;
    aclrtMemMallocPolicy policy = (aclrtMemMallocPolicy)call.v[1].i;
    BLYI_PY_CALL_BEGIN
    ret = allocate(&memory, (size_t)call.v[0].u, policy, used);
    BLYI_PY_CALL_END
    PyMem_Free(cfg.attrs);
    return Py_BuildValue("(Ki)", (unsigned long long)(uintptr_t)memory, ret);
}

PyObject *blyi_py_aclrtMallocWithCfg(PyObject *self, PyObject *args)
{
    (void)self;
    return malloc_with("acl.rt.malloc_with_cfg", args, aclrtMallocWithCfg);
}

PyObject *blyi_py_aclrtMallocForTaskScheduler(PyObject *self, PyObject *args)
{
    (void)self;
    return malloc_with("acl.rt.malloc_for_task_scheduler", args, aclrtMallocForTaskScheduler);
}

PyObject *blyi_py_aclrtMallocHostWithCfg(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.malloc_host_with_cfg", "uo", {"size", "cfg"}, 0};
    struct blyi_py_call call;
    aclrtMallocConfig cfg, *used;
    void *memory = NULL;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !config_in(&call, 1, &cfg, &used))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtMallocHostWithCfg(&memory, call.v[0].u, used);
    BLYI_PY_CALL_END
    PyMem_Free(cfg.attrs);
    return Py_BuildValue("(Ki)", (unsigned long long)(uintptr_t)memory, ret);
}

/* ---- aclrtStreamAttrValue: which key belongs to which attribute */

static const struct {
    int attribute;
    struct blyi_py_field fields[2];
} stream_values[] = {
    {ACL_STREAM_ATTR_FAILURE_MODE, {{"failureMode", 0, 'u', 0, NULL}}},
    {ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, {{"overflowSwitch", 0, 'I', 0, NULL}}},
    {ACL_STREAM_ATTR_USER_CUSTOM_TAG, {{"userCustomTag", 0, 'I', 0, NULL}}},
    {ACL_STREAM_ATTR_CACHE_OP_INFO, {{"cacheOpInfoSwitch", 0, 'I', 0, NULL}}},
    {ACL_STREAM_ATTR_PRIORITY, {{"streamPriority", 0, 'I', 0, NULL}}},
    {-1, {{"reserved", 0, 'I', 4, NULL}}}, /* any other */
};

static struct blyi_py_record stream_value(int attribute)
{
    size_t i = 0, last = sizeof(stream_values) / sizeof(stream_values[0]) - 1;
    while (i < last && stream_values[i].attribute != attribute)
        i++;
    return (struct blyi_py_record){"aclrtStreamAttrValue", stream_values[i].fields,
                                   sizeof(aclrtStreamAttrValue)};
}

PyObject *blyi_py_aclrtSetStreamAttribute(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.set_stream_attribute", "pio", {"stream", "stm_attr_type", "value"}, 0};
    struct blyi_py_call call;
    aclrtStreamAttrValue value = {0};
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !has_one_key(&call, 2, call.v[2].o))
        return NULL;
    struct blyi_py_record description = stream_value((int)call.v[1].i);
    if (!blyi_py_record_in(&call, 2, &description, &value))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtSetStreamAttribute((aclrtStream)(uintptr_t)call.v[0].u, (aclrtStreamAttr)call.v[1].i,
                                  &value);
    BLYI_PY_CALL_END
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtGetStreamAttribute(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.get_stream_attribute", "pi", {"stream", "stm_attr_type"}, 0};
    struct blyi_py_call call;
    aclrtStreamAttrValue value = {0};
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    struct blyi_py_record description = stream_value((int)call.v[1].i);
    BLYI_PY_CALL_BEGIN
    ret = aclrtGetStreamAttribute((aclrtStream)(uintptr_t)call.v[0].u, (aclrtStreamAttr)call.v[1].i,
                                  &value);
    BLYI_PY_CALL_END
    return Py_BuildValue("(Ni)", blyi_py_record_out(&description, &value), ret);
}

/* ---- pools: switches are uint32_t, the rest is uint64_t */

static bool is_switch(int attr)
{
    return attr >= ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attr <= ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

PyObject *blyi_py_aclrtMemPoolSetAttr(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.mem_pool_set_attr", "piu", {"mem_pool", "attr", "value"}, 0};
    struct blyi_py_call call;
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    uint64_t bytes = call.v[2].u;
    uint32_t word = bytes != 0;
    int attr = (int)call.v[1].i;
    Py_BEGIN_ALLOW_THREADS
    ret = aclrtMemPoolSetAttr((aclrtMemPool)(uintptr_t)call.v[0].u, (aclrtMemPoolAttr)attr,
                              is_switch(attr) ? (void *)&word : (void *)&bytes);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtMemPoolGetAttr(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.mem_pool_get_attr", "pi", {"mem_pool", "attr"}, 0};
    struct blyi_py_call call;
    uint64_t bytes = 0; /* a switch takes the lower half: little endian */
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    ret = aclrtMemPoolGetAttr((aclrtMemPool)(uintptr_t)call.v[0].u, (aclrtMemPoolAttr)call.v[1].i,
                              &bytes);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("(Ki)", (unsigned long long)bytes, ret);
}
