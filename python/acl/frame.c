/* SPDX-License-Identifier: Apache-2.0
 *
 * frame.c - tells Belay the lines of Python that a call comes from (belay/frame.h).
 *
 * They are looked at before the interpreter's lock is given up; afterwards nobody may. A line is
 * known by its code object and the instruction in it, so that its name is asked for once.
 */
#include "acl_module.h"

#include <dlfcn.h>

#define KNOWN_MAX 4096u /* a power of two */

/* Not in the limited interface of 3.8, nor in every version: NULL, and attributes must do. */
static PyObject *(*get_code)(PyObject *frame);
static PyObject *(*get_back)(PyObject *frame);
static int (*get_lasti)(PyObject *frame);

/* All under the interpreter's lock. */
static struct known {
    PyObject *code; /* held, so that its address is no other's; NULL: empty */
    int at;
    uint32_t line;
} known[KNOWN_MAX];
static size_t n_known;

static void *look_up(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

void blyi_py_frames_begin(void)
{
    *(void **)&get_code = look_up("PyFrame_GetCode");
    *(void **)&get_back = look_up("PyFrame_GetBack");
    *(void **)&get_lasti = look_up("PyFrame_GetLasti");
    (void)bly_frames_hide((const void *)(uintptr_t)blyi_py_frames_begin);
    (void)bly_frames_hide(look_up("PyEval_GetFrame"));
}

static int number_of(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    long number = value != NULL && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return (int)number;
}

static PyObject *code_of(PyObject *frame)
{
    return get_code != NULL ? get_code(frame) : PyObject_GetAttrString(frame, "f_code");
}

/* New, NULL at the outermost. */
static PyObject *back_of(PyObject *frame)
{
    PyObject *back = get_back != NULL ? get_back(frame) : PyObject_GetAttrString(frame, "f_back");
    if (back == Py_None)
        Py_CLEAR(back);
    PyErr_Clear();
    return back;
}

/* A text of the code object as bytes, whatever is in it. */
static PyObject *bytes_of(PyObject *code, const char *name)
{
    PyObject *text = PyObject_GetAttrString(code, name);
    PyObject *bytes = text != NULL ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    Py_XDECREF(text);
    PyErr_Clear();
    return bytes;
}

static uint32_t name_line(PyObject *frame, PyObject *code)
{
    PyObject *function = bytes_of(code, "co_qualname"); /* since 3.11 */
    if (function == NULL)
        function = bytes_of(code, "co_name");
    PyObject *file = bytes_of(code, "co_filename");
    uint32_t line = 0;
    if (function != NULL && file != NULL)
        line = bly_frame(PyBytes_AsString(function), PyBytes_AsString(file),
                         (uint32_t)number_of(frame, "f_lineno"));
    Py_XDECREF(function);
    Py_XDECREF(file);
    return line;
}

/* The end of a code object may run Python, which may come here again: the table is empty first. */
static void forget_all(void)
{
    PyObject *codes[KNOWN_MAX];
    for (size_t i = 0; i < KNOWN_MAX; i++) {
        codes[i] = known[i].code;
        known[i].code = NULL;
    }
    n_known = 0;
    for (size_t i = 0; i < KNOWN_MAX; i++)
        Py_XDECREF(codes[i]);
}

/* Where it is, or the empty place where it belongs; at most half are in use. */
static struct known *find_known(PyObject *code, int at)
{
    uint64_t hash = ((uintptr_t)code + (uint64_t)(unsigned)at * 16) * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(hash >> 32) & (KNOWN_MAX - 1);
    while (known[i].code != NULL && (known[i].code != code || known[i].at != at))
        i = (i + 1) & (KNOWN_MAX - 1);
    return &known[i];
}

static uint32_t line_of(PyObject *frame)
{
    PyObject *code = code_of(frame);
    if (code == NULL) {
        PyErr_Clear();
        return 0;
    }
    int at = get_lasti != NULL ? get_lasti(frame) : number_of(frame, "f_lasti");
    const struct known *there = find_known(code, at);
    uint32_t line = there->code != NULL ? there->line : name_line(frame, code);
    struct known *place = find_known(code, at); /* again: naming it may have run Python */
    if (place->code != NULL || line == 0) {
        Py_DECREF(code);
        return line;
    }
    *place = (struct known){code, at, line};
    if (++n_known > KNOWN_MAX / 2)
        forget_all();
    return line;
}

static uint32_t look_around(uint32_t lines[BLYI_PY_FRAMES])
{
    uint32_t n = 0, wanted = bly_frames_wanted();
    PyObject *frame = (PyObject *)PyEval_GetFrame(); /* borrowed */
    if (wanted > BLYI_PY_FRAMES)
        wanted = BLYI_PY_FRAMES;
    Py_XINCREF(frame);
    while (frame != NULL) {
        lines[n] = line_of(frame);
        n += lines[n] != 0;
        PyObject *outer = n < wanted ? back_of(frame) : NULL;
        Py_DECREF(frame);
        frame = outer;
    }
    return n;
}

void blyi_py_scope_begin(struct blyi_py_scope *scope)
{
    scope->frames = (bly_frames){.n = look_around(scope->lines), .lines = scope->lines};
    scope->outer = bly_frames_set(&scope->frames);
    scope->state = PyEval_SaveThread();
}

void blyi_py_scope_end(struct blyi_py_scope *scope)
{
    (void)bly_frames_set(scope->outer); /* first: a thread may end in the next line */
    PyEval_RestoreThread(scope->state);
}
