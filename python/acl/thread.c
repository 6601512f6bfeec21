/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.c - acl.util.start_thread and stop_thread: threads that take callbacks off streams. A
 * thread's number is the one that acl.rt.subscribe_report wants.
 *
 * The list of live threads is under the interpreter's lock; only these can be joined.
 */
#include <errno.h>
#include <pthread.h>

#include "acl_module.h"

struct thread {
    struct thread *next;
    pthread_t id;
    PyObject *fn, *argument;
    PyObject *failure; /* repr of what it raised, or NULL */
};

static struct thread *threads;

/* The exception that ended the thread: shown at once, and kept for stop_thread. */
static PyObject *take_failure(PyObject *fn)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *text = value != NULL ? PyObject_Repr(value) : NULL;
    if (text == NULL)
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    PyErr_WriteUnraisable(fn);
    return text;
}

static void *run(void *data)
{
    struct thread *thread = data;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = thread->argument == Py_None
                           ? PyObject_CallObject(thread->fn, NULL)
                           : PyObject_CallFunctionObjArgs(thread->fn, thread->argument, NULL);
    if (result == NULL)
        thread->failure = take_failure(thread->fn);
    Py_XDECREF(result);
    Py_CLEAR(thread->fn);
    Py_CLEAR(thread->argument);
    PyGILState_Release(state);
    return NULL;
}

static void thread_free(struct thread *thread)
{
    Py_XDECREF(thread->fn);
    Py_XDECREF(thread->argument);
    Py_XDECREF(thread->failure);
    PyMem_Free(thread);
}

PyObject *blyi_py_start_thread(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.util.start_thread", "co", {"fn", "args"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    struct thread *thread = PyMem_Calloc(1, sizeof(*thread));
    if (thread == NULL)
        return PyErr_NoMemory();
    Py_INCREF(call.v[0].o);
    Py_INCREF(call.v[1].o);
    thread->fn = call.v[0].o;
    thread->argument = call.v[1].o;
    int error = pthread_create(&thread->id, NULL, run, thread); /* it waits for our lock */
    if (error != 0) {
        thread_free(thread);
        return Py_BuildValue("(Ki)", 0ULL, error);
    }
    thread->next = threads;
    threads = thread;
    return Py_BuildValue("(Ki)", (unsigned long long)thread->id, 0);
}

static struct thread *unlink_thread(uint64_t id)
{
    for (struct thread **at = &threads; *at != NULL; at = &(*at)->next) {
        struct thread *found = *at;
        if ((uint64_t)found->id != id)
            continue;
        *at = found->next;
        return found;
    }
    return NULL;
}

PyObject *blyi_py_stop_thread(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.util.stop_thread", "u", {"thread_id"}, 0};
    struct blyi_py_call call;
    int error;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    if (call.v[0].u == (uint64_t)pthread_self())
        return PyLong_FromLong(EDEADLK);
    struct thread *thread = unlink_thread(call.v[0].u);
    if (thread == NULL)
        return PyLong_FromLong(ESRCH);
    Py_BEGIN_ALLOW_THREADS
    error = pthread_join(thread->id, NULL);
    Py_END_ALLOW_THREADS
    if (thread->failure != NULL) {
        PyErr_Format(PyExc_RuntimeError, "thread %llu raised %U", (unsigned long long)call.v[0].u,
                     thread->failure);
        thread_free(thread);
        return NULL;
    }
    thread_free(thread);
    return PyLong_FromLong(error);
}
