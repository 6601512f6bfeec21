/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c - graphs: conditions, streams and tasks as lists, functions that are called at the end.
 *
 * C knows a callback by its address, and there is one for all Python functions. So each graph has
 * one list of them here; the interpreter's lock guards the lists.
 */
#include "acl_module.h"

#define BODIES_MAX 65536u

PyObject *blyi_py_aclmdlRICaptureThreadExchangeMode(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.mdl.ri_capture_thread_exchange_mode", "i", {"mode"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    aclmdlRICaptureMode mode = (aclmdlRICaptureMode)call.v[0].i;
    aclError ret = aclmdlRICaptureThreadExchangeMode(&mode);
    return Py_BuildValue("(ii)", ret == ACL_SUCCESS ? (int)mode : 0, ret);
}

/* ---- conditions */

static const struct blyi_py_field condition_fields[] = {
    {"handle", offsetof(aclmdlRICondTaskParams, handle), 'p', 0, NULL},
    {"type", offsetof(aclmdlRICondTaskParams, type), 'i', 0, NULL},
    {"size", offsetof(aclmdlRICondTaskParams, size), 'I', 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static const struct blyi_py_record condition = {"aclmdlRICondTaskParams", condition_fields,
                                                sizeof(aclmdlRICondTaskParams)};

PyObject *blyi_py_aclmdlRIAddCondTask(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.mdl.ri_add_cond_task", "opI", {"params", "stream", "flags"}, 0};
    struct blyi_py_call call;
    aclmdlRICondTaskParams params = {0};
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !blyi_py_record_in(&call, 0, &condition, &params))
        return NULL;
    if (params.size > BODIES_MAX) {
        (void)blyi_py_wrong(&call, 0, "has size %u, above %u", params.size, BODIES_MAX);
        return NULL;
    }
    params.modelRIArray = PyMem_Calloc((size_t)params.size + 1, sizeof(aclmdlRI));
    if (params.modelRIArray == NULL)
        return PyErr_NoMemory();
    BLYI_PY_CALL_BEGIN
    ret = aclmdlRIAddCondTask(params, (aclrtStream)(uintptr_t)call.v[1].u, (uint32_t)call.v[2].u);
    BLYI_PY_CALL_END
    PyObject *bodies =
        blyi_py_handles_out(params.modelRIArray, ret == ACL_SUCCESS ? params.size : 0);
    PyMem_Free(params.modelRIArray);
    return Py_BuildValue("(Ni)", bodies, ret);
}

/* ---- lists */

/* How many there are, then all; once more where one came between. */
static PyObject *list_of(const char *function, const char *name, PyObject *args,
                         aclError (*fetch)(void *of, void **list, uint32_t *n))
{
    const struct blyi_py_spec spec = {function, "p", {name}, 0};
    struct blyi_py_call call;
    void **handles = NULL;
    uint32_t n = 0, room;
    aclError ret;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    void *of = (void *)(uintptr_t)call.v[0].u;
    do {
        PyMem_Free(handles);
        handles = NULL;
        ret = fetch(of, NULL, &n);
        room = n;
        if (ret != ACL_SUCCESS || n == 0)
            break;
        handles = PyMem_Calloc(n, sizeof(*handles));
        if (handles == NULL)
            return PyErr_NoMemory();
        ret = fetch(of, handles, &n);
    } while (ret == ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY);
    PyObject *list = blyi_py_handles_out(handles, ret != ACL_SUCCESS ? 0 : n < room ? n : room);
    PyMem_Free(handles);
    return Py_BuildValue("(Ni)", list, ret);
}

static aclError fetch_streams(void *graph, void **list, uint32_t *n)
{
    return aclmdlRIGetStreams(graph, list, n);
}

static aclError fetch_tasks(void *stream, void **list, uint32_t *n)
{
    return aclmdlRIGetTasksByStream(stream, list, n);
}

PyObject *blyi_py_aclmdlRIGetStreams(PyObject *self, PyObject *args)
{
    (void)self;
    return list_of("acl.mdl.ri_get_streams", "model_ri", args, fetch_streams);
}

PyObject *blyi_py_aclmdlRIGetTasksByStream(PyObject *self, PyObject *args)
{
    (void)self;
    return list_of("acl.mdl.ri_get_tasks_by_stream", "stream", args, fetch_tasks);
}

/* ---- functions that are called at a graph's end */

struct watched {
    struct watched *next;
    aclmdlRI graph;
    PyObject *calls; /* list of (fn, data) */
};

static struct watched *all;

static struct watched *find(aclmdlRI graph)
{
    struct watched *watched = all;
    while (watched != NULL && watched->graph != graph)
        watched = watched->next;
    return watched;
}

static void drop(struct watched *watched)
{
    struct watched **at = &all;
    while (*at != watched)
        at = &(*at)->next;
    *at = watched->next;
    Py_DECREF(watched->calls);
    PyMem_Free(watched);
}

static void destroyed(void *data)
{
    struct watched *watched = data;
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return;
    PyObject *calls = watched->calls;
    Py_INCREF(calls);
    drop(watched); /* first: a function may make the next graph */
    for (Py_ssize_t i = 0; i < PyList_Size(calls); i++) {
        PyObject *call = PyList_GetItem(calls, i); /* borrowed; nobody else has the list */
        PyObject *fn = PyTuple_GetItem(call, 0);
        blyi_py_finish(fn, PyObject_CallFunctionObjArgs(fn, PyTuple_GetItem(call, 1), NULL));
    }
    Py_DECREF(calls);
    blyi_py_leave(state);
}

/* A graph without functions yet; NULL: an exception, or *ret is not 0. */
static struct watched *watch(aclmdlRI graph, aclError *ret)
{
    struct watched *watched = PyMem_Calloc(1, sizeof(*watched));
    PyObject *calls = PyList_New(0);
    if (watched == NULL || calls == NULL) {
        PyMem_Free(watched);
        Py_XDECREF(calls);
        PyErr_NoMemory();
        return NULL;
    }
    *watched = (struct watched){all, graph, calls};
    all = watched;
    *ret = aclmdlRIDestroyRegisterCallback(graph, destroyed, watched);
    if (*ret == ACL_SUCCESS)
        return watched;
    drop(watched);
    return NULL;
}

PyObject *blyi_py_aclmdlRIDestroyRegisterCallback(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.mdl.ri_destroy_register_callback", "pco", {"model_ri", "fn", "user_data"}, 0};
    struct blyi_py_call call;
    aclError ret = ACL_SUCCESS;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    aclmdlRI graph = (aclmdlRI)(uintptr_t)call.v[0].u;
    PyObject *pair = PyTuple_Pack(2, call.v[1].o, call.v[2].o);
    struct watched *watched = pair != NULL ? find(graph) : NULL;
    if (pair != NULL && watched == NULL)
        watched = watch(graph, &ret);
    bool done = pair != NULL &&
                (watched == NULL ? ret != ACL_SUCCESS : PyList_Append(watched->calls, pair) == 0);
    Py_XDECREF(pair);
    return done ? PyLong_FromLong(ret) : NULL;
}

/* -1: none; -2: an exception. Comparing may run Python code, which may change the list. */
static Py_ssize_t index_of(PyObject *calls, PyObject *fn)
{
    for (Py_ssize_t i = 0; i < PyList_Size(calls); i++) {
        PyObject *call = PyList_GetItem(calls, i);
        Py_INCREF(call);
        int same = PyObject_RichCompareBool(PyTuple_GetItem(call, 0), fn, Py_EQ);
        bool stayed = i < PyList_Size(calls) && PyList_GetItem(calls, i) == call;
        Py_DECREF(call);
        if (same < 0)
            return -2;
        if (same && stayed)
            return i;
    }
    return -1;
}

static void never(void *data)
{
    (void)data;
}

PyObject *blyi_py_aclmdlRIDestroyUnregisterCallback(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.mdl.ri_destroy_unregister_callback", "pc", {"model_ri", "fn"}, 0};
    struct blyi_py_call call;
    aclError ret = ACL_SUCCESS;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    aclmdlRI graph = (aclmdlRI)(uintptr_t)call.v[0].u;
    struct watched *watched = find(graph);
    PyObject *calls = watched != NULL ? watched->calls : NULL;
    Py_XINCREF(calls);
    Py_ssize_t i = calls != NULL ? index_of(calls, call.v[1].o) : -1;
    bool failed = i == -2 || (i >= 0 && PyList_SetSlice(calls, i, i + 1, NULL) != 0);
    if (!failed && i == -1) /* the runtime says what is wrong: the graph, or the function */
        ret = aclmdlRIDestroyUnregisterCallback(graph, never);
    watched = find(graph); /* again: comparing may have let the graph end */
    if (!failed && watched != NULL && watched->calls == calls && PyList_Size(calls) == 0) {
        ret = aclmdlRIDestroyUnregisterCallback(graph, destroyed);
        if (ret == ACL_SUCCESS) /* else it is on its way, and has nothing to call */
            drop(watched);
        ret = ACL_SUCCESS;
    }
    Py_XDECREF(calls);
    return failed ? NULL : PyLong_FromLong(ret);
}
