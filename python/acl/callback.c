/* SPDX-License-Identifier: Apache-2.0
 *
 * callback.c - the way from the runtime's threads into Python.
 *
 * A thread that waits for the interpreter's lock while the interpreter ends is ended by Python
 * where it stands, with whatever it holds of the runtime. So there is a gate: an atexit handler
 * closes it, waits for the callbacks that are inside, and those that come later are not run; the
 * log has a line for each.
 *
 * Lock: `gate_mutex` guards closed and inside. Nothing is called under it.
 */
#include <pthread.h>
#include <time.h>

#include "acl_module.h"

#define LEAVE_TIMEOUT_S 2 /* a callback that waits for the main thread must not hang the exit */

static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_left;
static unsigned inside;
static bool closed;

static bool gate_enter(void)
{
    pthread_mutex_lock(&gate_mutex);
    bool open = !closed;
    if (open)
        inside++;
    pthread_mutex_unlock(&gate_mutex);
    return open;
}

static void gate_leave(void)
{
    pthread_mutex_lock(&gate_mutex);
    if (inside > 0 && --inside == 0)
        pthread_cond_broadcast(&gate_left);
    pthread_mutex_unlock(&gate_mutex);
}

/* The threads that were inside do not exist in a child. */
static void gate_forked(void)
{
    pthread_mutex_init(&gate_mutex, NULL);
    inside = 0;
}

static void gate_close(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LEAVE_TIMEOUT_S;
    pthread_mutex_lock(&gate_mutex);
    closed = true;
    while (inside > 0 && pthread_cond_timedwait(&gate_left, &gate_mutex, &until) == 0)
        ;
    pthread_mutex_unlock(&gate_mutex);
}

static PyObject *at_exit(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    Py_BEGIN_ALLOW_THREADS
    gate_close();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

bool blyi_py_callbacks_begin(void)
{
    static PyMethodDef method = {"_acl_at_exit", at_exit, METH_NOARGS, NULL};
    static bool begun;
    pthread_condattr_t attributes;
    if (begun)
        return true;
    begun = true;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&gate_left, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_atfork(NULL, NULL, gate_forked);
    PyObject *module = PyImport_ImportModule("atexit"), *done = NULL;
    PyObject *function = PyCFunction_New(&method, NULL);
    if (module != NULL && function != NULL)
        done = PyObject_CallMethod(module, "register", "O", function);
    Py_XDECREF(module);
    Py_XDECREF(function);
    Py_XDECREF(done);
    return done != NULL;
}

bool blyi_py_enter(PyGILState_STATE *state)
{
    if (!gate_enter()) {
        ACL_APP_LOG(ACL_WARNING, "a Python callback was not run: the interpreter is ending");
        return false;
    }
    *state = PyGILState_Ensure();
    return true;
}

void blyi_py_leave(PyGILState_STATE state)
{
    PyGILState_Release(state);
    gate_leave();
}

void blyi_py_finish(PyObject *fn, PyObject *result)
{
    if (result == NULL)
        PyErr_WriteUnraisable(fn);
    Py_XDECREF(result);
}

struct blyi_py_closure *blyi_py_closure_new(PyObject *fn, PyObject *data)
{
    struct blyi_py_closure *closure = PyMem_Calloc(1, sizeof(*closure));
    if (closure == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(fn);
    Py_INCREF(data);
    *closure = (struct blyi_py_closure){.fn = fn, .data = data};
    return closure;
}

void blyi_py_closure_free(struct blyi_py_closure *closure)
{
    Py_XDECREF(closure->fn);
    Py_XDECREF(closure->data);
    PyMem_Free(closure);
}

/* ---- in stream order: once, or in each run of a graph */

/* Kept until it has run; in a graph until that ends. Whoever launches finds out which behind the
 * launch, and until then it is `kept`. */
static void run_launched(void *data)
{
    struct blyi_py_closure *closure = data;
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return;
    blyi_py_finish(closure->fn, PyObject_CallFunctionObjArgs(closure->fn, closure->data, NULL));
    closure->ran = true;
    if (!closure->kept)
        blyi_py_closure_free(closure);
    blyi_py_leave(state);
}

static void end_with_graph(void *data)
{
    PyGILState_STATE state;
    if (!blyi_py_enter(&state))
        return;
    blyi_py_closure_free(data);
    blyi_py_leave(state);
}

/* The graph that the stream is captured into; NULL: none. */
static aclmdlRI graph_of(aclrtStream stream)
{
    aclmdlRICaptureStatus status;
    aclmdlRI graph = NULL;
    if (stream == NULL || aclmdlRICaptureGetInfo(stream, &status, &graph) != ACL_SUCCESS)
        return NULL;
    return graph;
}

/* Bound to a graph that is built, perhaps: nothing tells, so what is launched there is kept. */
static bool is_persistent(aclrtStream stream)
{
    uint32_t flags = 0;
    return stream != NULL && aclrtStreamGetFlags(stream, &flags) == ACL_SUCCESS &&
           (flags & ACL_STREAM_PERSISTENT) != 0;
}

static aclError queue_callback(aclrtStream stream, struct blyi_py_closure *closure, int block)
{
    return aclrtLaunchCallback(run_launched, closure, (aclrtCallbackBlockType)block, stream);
}

static aclError queue_host_func(aclrtStream stream, struct blyi_py_closure *closure, int block)
{
    (void)block;
    return aclrtLaunchHostFunc(stream, run_launched, closure);
}

static PyObject *launch(PyObject *fn, PyObject *data, aclrtStream stream, int block,
                        aclError (*queue)(aclrtStream stream, struct blyi_py_closure *closure,
                                          int block))
{
    aclError ret;
    struct blyi_py_closure *closure = blyi_py_closure_new(fn, data);
    aclmdlRI before = NULL, after = NULL;
    bool persistent = false;
    if (closure == NULL)
        return NULL;
    closure->kept = true;
    BLYI_PY_CALL_BEGIN
    before = graph_of(stream);
    ret = queue(stream, closure, block);
    if (ret == ACL_SUCCESS) {
        after = graph_of(stream);
        persistent = is_persistent(stream);
    }
    BLYI_PY_CALL_END
    if (ret != ACL_SUCCESS) {
        blyi_py_closure_free(closure);
    } else if (before == NULL && after == NULL && !persistent) {
        closure->kept = false;
        if (closure->ran)
            blyi_py_closure_free(closure);
    } else if (before == after && before != NULL) {
        (void)aclmdlRIDestroyRegisterCallback(before, end_with_graph, closure);
    } /* else another thread began or ended a capture meanwhile: kept for good */
    return PyLong_FromLong(ret);
}

PyObject *blyi_py_aclrtLaunchCallback(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.launch_callback", "coip", {"fn", "user_data", "block_type", "stream"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    return launch(call.v[0].o, call.v[1].o, (aclrtStream)(uintptr_t)call.v[3].u, (int)call.v[2].i,
                  queue_callback);
}

PyObject *blyi_py_aclrtLaunchHostFunc(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.launch_host_func", "pco", {"stream", "fn", "args"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    return launch(call.v[1].o, call.v[2].o, (aclrtStream)(uintptr_t)call.v[0].u, 0,
                  queue_host_func);
}
