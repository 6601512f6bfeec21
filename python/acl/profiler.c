/* SPDX-License-Identifier: Apache-2.0
 *
 * profiler.c - acl.profiler: what the program does with memory between start() and stop().
 *
 * It is a recording (belay/trace.h): one of its own, in memory or in a file that the caller names,
 * or a part of the one that is under way, between two marks. stop() copies it into a file without a
 * name, which analyze() reads. All is under the interpreter's lock but what is in a scope; while
 * one call is in there the others find the state BUSY.
 */
#include "acl_module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <belay/top.h>
#include <belay/trace.h>

static enum { IDLE, RECORDING, STOPPED, BUSY } state;
static bool is_own;      /* the recording is ours to end */
static unsigned session; /* in the names of marks */
static int copy = -1;    /* the file that stop() left */
static struct stat copy_is;
static PyObject *report; /* of the last recording, or NULL */
static PyObject *module; /* acl.profiler; borrowed, it lives as long as we do */

#define MARK_TEXT 64
static const char *mark_name(const char *what, char buf[MARK_TEXT])
{
    snprintf(buf, MARK_TEXT, "acl.profiler.%s %u of %d", what, session, (int)getpid());
    return buf;
}

static PyObject *fail(const char *what, bly_status status)
{
    PyObject *kind = status == BLY_E_HOST_MEMORY ? PyExc_MemoryError
                     : status == BLY_E_IO        ? PyExc_OSError
                                                 : PyExc_RuntimeError;
    const char *sentence = bly_last_error();
    return PyErr_Format(kind, "acl.profiler.%s: %s", what,
                        sentence[0] != '\0' ? sentence : bly_status_text(status));
}

static bool is_busy(const char *what)
{
    if (state != BUSY)
        return false;
    PyErr_Format(PyExc_RuntimeError, "acl.profiler.%s: another thread is in a call of the profiler",
                 what);
    return true;
}

/* The program may have closed all descriptors, and the number may be another file's by now. */
static bool is_copy_ours(void)
{
    struct stat now;
    return copy >= 0 && fstat(copy, &now) == 0 && now.st_dev == copy_is.st_dev &&
           now.st_ino == copy_is.st_ino;
}

static void drop_copy(void)
{
    if (is_copy_ours())
        close(copy);
    copy = -1;
}

/* A converter of PyArg_Parse. */
static int path_or_none(PyObject *object, void *out)
{
    if (object == NULL || object == Py_None)
        return 1;
    return PyUnicode_FSConverter(object, out);
}

/* ── start ────────────────────────────────────────────────────────────────────────────────── */

/* E_STATE when a recording is under way that is not ours. */
static bly_status begin(const char *path, uint32_t depth)
{
    bly_trace_opts opts = bly_trace_opts_default();
    char mark[MARK_TEXT];
    opts.stack_depth = depth;
    bly_status status = bly_trace_start(path, &opts);
    is_own = status == BLY_OK;
    if (status == BLY_E_STATE && path == NULL)
        status = BLY_OK;
    session++;
    if (status == BLY_OK)
        status = bly_mark(mark_name("start", mark));
    if (status != BLY_OK && is_own)
        (void)bly_trace_stop();
    return status;
}

PyObject *blyi_py_profiler_start(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char first[] = "what", second[] = "path", third[] = "stacks";
    static char *names[] = {first, second, third, NULL};
    unsigned long what = BLYI_PY_PROFILER_MEMORY_EVENT;
    PyObject *where = NULL; /* bytes */
    int stacks = 0;
    bly_status status;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|kO&i:start", names, &what, path_or_none,
                                     &where, &stacks))
        return NULL;
    if (what != BLYI_PY_PROFILER_MEMORY_EVENT) {
        PyErr_Format(PyExc_ValueError,
                     "acl.profiler.start: what %lu is not acl.PROFILER_MEMORY_EVENT (%d)", what,
                     BLYI_PY_PROFILER_MEMORY_EVENT);
    } else if (stacks < 0 || stacks > 128) {
        PyErr_Format(PyExc_ValueError, "acl.profiler.start: stacks of %d frames; 0 to 128 are kept",
                     stacks);
    } else if (state == RECORDING) {
        PyErr_SetString(PyExc_RuntimeError, "acl.profiler.start: it was started already; stop() it "
                                            "first");
    } else if (!is_busy("start")) {
        state = BUSY;
        drop_copy();
        Py_CLEAR(report); /* analyze() must not tell of what was before */
        BLYI_PY_CALL_BEGIN
        status = begin(where != NULL ? PyBytes_AsString(where) : NULL, (uint32_t)stacks);
        BLYI_PY_CALL_END
        state = status == BLY_OK ? RECORDING : IDLE;
        if (status != BLY_OK)
            (void)fail("start", status);
    }
    Py_XDECREF(where);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* ── stop ─────────────────────────────────────────────────────────────────────────────────── */

/* A file of the temporary folder that has no name any more; -1 and errno. */
static int nameless_file(void)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/belay-profiler-XXXXXX",
                     folder != NULL && folder[0] == '/' ? folder : "/tmp");
    if (n < 0 || (size_t)n >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

#define FD_PATH 32
static const char *path_of(int fd, char buf[FD_PATH])
{
    snprintf(buf, FD_PATH, "/proc/self/fd/%d", fd);
    return buf;
}

static bly_status end(int fd)
{
    char mark[MARK_TEXT], path[FD_PATH];
    (void)bly_mark(mark_name("stop", mark));
    bly_status status = bly_trace_dump(path_of(fd, path));
    if (is_own) { /* a file that could not grow any more tells so now */
        bly_status stopped = bly_trace_stop();
        status = status == BLY_OK ? stopped : status;
    }
    return status;
}

PyObject *blyi_py_profiler_stop(PyObject *self, PyObject *args)
{
    bly_status status;
    (void)self, (void)args;
    if (is_busy("stop"))
        return NULL;
    if (state != RECORDING)
        return PyErr_Format(PyExc_RuntimeError, "acl.profiler.stop: it was not started");
    int fd = nameless_file();
    if (fd < 0)
        return PyErr_SetFromErrno(PyExc_OSError); /* it goes on */
    state = BUSY;
    BLYI_PY_CALL_BEGIN
    status = end(fd);
    BLYI_PY_CALL_END
    state = status == BLY_OK ? STOPPED : IDLE;
    if (status != BLY_OK || fstat(fd, &copy_is) != 0) {
        close(fd);
        return fail("stop", status);
    }
    copy = fd;
    Py_RETURN_NONE;
}

/* ── analyze ──────────────────────────────────────────────────────────────────────────────── */

static bly_status look(bly_top *top)
{
    char first[MARK_TEXT], last[MARK_TEXT], path[FD_PATH];
    return bly_top_read(path_of(copy, path), mark_name("start", first), mark_name("stop", last),
                        top);
}

PyObject *blyi_py_profiler_analyze(PyObject *self, PyObject *args)
{
    bly_top top = {0};
    bly_status status;
    (void)self, (void)args;
    if (is_busy("analyze"))
        return NULL;
    if (state == RECORDING)
        return PyErr_Format(PyExc_RuntimeError, "acl.profiler.analyze: stop() it first");
    if (copy < 0 && report != NULL) {
        Py_INCREF(report);
        return report;
    }
    if (copy < 0)
        return PyErr_Format(PyExc_RuntimeError, "acl.profiler.analyze: nothing was recorded; "
                                                "start() and stop() come first");
    if (!is_copy_ours()) {
        copy = -1;
        return PyErr_Format(PyExc_RuntimeError, "acl.profiler.analyze: the program has closed the "
                                                "file that stop() left");
    }
    state = BUSY;
    Py_BEGIN_ALLOW_THREADS
    status = look(&top);
    Py_END_ALLOW_THREADS
    state = IDLE;
    if (status != BLY_OK)
        return fail("analyze", status);
    PyObject *made = blyi_py_report_new(&top);
    if (made == NULL || PyObject_SetAttrString(module, "report", made) != 0) {
        Py_XDECREF(made);
        return NULL;
    }
    drop_copy();
    Py_XDECREF(report);
    report = made;
    Py_INCREF(report);
    return report;
}

/* ── What the program is doing ────────────────────────────────────────────────────────────── */

static PyObject *tell(const char *what, PyObject *args, bly_status (*call)(const char *name))
{
    const char *name;
    bly_status status;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    BLYI_PY_CALL_BEGIN
    status = call(name);
    BLYI_PY_CALL_END
    if (status != BLY_OK)
        return fail(what, status);
    Py_RETURN_NONE;
}

PyObject *blyi_py_profiler_range_push(PyObject *self, PyObject *args)
{
    (void)self;
    return tell("range_push", args, bly_range_push);
}

PyObject *blyi_py_profiler_mark(PyObject *self, PyObject *args)
{
    (void)self;
    return tell("mark", args, bly_mark);
}

PyObject *blyi_py_profiler_range_pop(PyObject *self, PyObject *args)
{
    bly_status status;
    (void)self, (void)args;
    BLYI_PY_CALL_BEGIN
    status = bly_range_pop();
    BLYI_PY_CALL_END
    if (status != BLY_OK)
        return fail("range_pop", status);
    Py_RETURN_NONE;
}

PyObject *blyi_py_profiler_tag(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.profiler.tag", "ps", {"address", "name"}, 0};
    struct blyi_py_call call;
    bly_status status;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    status = bly_tag((const void *)(uintptr_t)call.v[0].u, call.v[1].s);
    BLYI_PY_CALL_END
    blyi_py_end(&call);
    if (status != BLY_OK)
        return fail("tag", status);
    Py_RETURN_NONE;
}

bool blyi_py_profiler_begin(PyObject *acl)
{
    module = PyObject_GetAttrString(acl, "profiler");
    if (module == NULL)
        return false;
    Py_DECREF(module); /* sys.modules has it */
    return PyModule_AddIntConstant(acl, "PROFILER_MEMORY_EVENT", BLYI_PY_PROFILER_MEMORY_EVENT) ==
               0 &&
           PyObject_SetAttrString(module, "report", Py_None) == 0 && blyi_py_report_begin(module);
}
