/* SPDX-License-Identifier: Apache-2.0
 *
 * profiler_report.c - acl.profiler.Report and its rows, acl.profiler.MemOp.
 */
#include "acl_module.h"

#include <structmember.h>
#include <stdio.h>
#include <string.h>

#include <belay/top.h>

struct report {
    PyObject_HEAD bly_top top;
};

static PyTypeObject *report_type, *row_type;

/* ── Rows ─────────────────────────────────────────────────────────────────────────────────── */

static PyStructSequence_Field row_fields[] = {
    {"name", "the block's tag, else the range it was made in, else the line that asked"},
    {"bytes", "live at the peak"},
    {"share", "of the peak, of all bytes or of all blocks, as `by` says: 0.0 to 1.0"},
    {"count", "blocks live at the peak"},
    {"site", "the line that asked for most of it: 'function file:line'"},
    {"total_bytes", "live at start(), or asked for since"},
    {"total_count", "blocks of total_bytes"},
    {"left_bytes", "asked for since start() and live at stop()"},
    {"left_count", "blocks of left_bytes"},
    {NULL, NULL},
};

/* Texts of a file need not be UTF-8. */
static PyObject *text(const char *from)
{
    return PyUnicode_DecodeUTF8(from, (Py_ssize_t)strlen(from), "replace");
}

static PyObject *number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *row_new(const bly_top *top, const bly_top_row *row, bly_top_by by)
{
    uint64_t whole = by == BLY_TOP_PEAK    ? top->peak_bytes
                     : by == BLY_TOP_TOTAL ? top->total_bytes
                                           : top->total_blocks;
    uint64_t part = by == BLY_TOP_PEAK    ? row->peak_bytes
                    : by == BLY_TOP_TOTAL ? row->total_bytes
                                          : row->total_blocks;
    PyObject *items[] = {text(row->name),
                         number(row->peak_bytes),
                         PyFloat_FromDouble(whole > 0 ? (double)part / (double)whole : 0.0),
                         number(row->peak_blocks),
                         text(row->from),
                         number(row->total_bytes),
                         number(row->total_blocks),
                         number(row->left_bytes),
                         number(row->left_blocks)};
    PyObject *made = PyStructSequence_New(row_type);
    bool ok = made != NULL;
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        ok = ok && items[i] != NULL;
        if (made != NULL)
            PyStructSequence_SetItem(made, (Py_ssize_t)i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (!ok)
        Py_CLEAR(made);
    return made;
}

static bool read_order(const char *name, bly_top_by *by)
{
    static const char *const names[] = {"peak", "total", "count"};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) {
            *by = (bly_top_by)i;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "top_mem_ops: by 'peak', 'total' or 'count', not '%.40s'", name);
    return false;
}

static PyObject *top_mem_ops(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char first[] = "n", second[] = "by";
    static char *names[] = {first, second, NULL};
    bly_top *top = &((struct report *)self)->top;
    Py_ssize_t n = 10;
    const char *order = "peak";
    bly_top_by by;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ns:top_mem_ops", names, &n, &order) ||
        !read_order(order, &by))
        return NULL;
    if (n < 0)
        return PyErr_Format(PyExc_ValueError, "top_mem_ops: n is %zd rows", n);
    (void)bly_top_order(top, by);
    if ((size_t)n > top->n)
        n = (Py_ssize_t)top->n;
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list != NULL && i < n; i++) {
        PyObject *row = row_new(top, &top->rows[i], by);
        if (row == NULL)
            Py_CLEAR(list);
        else
            (void)PyList_SetItem(list, i, row);
    }
    return list;
}

/* ── The report ───────────────────────────────────────────────────────────────────────────── */

static PyObject *report_text(PyObject *self)
{
    bly_top *top = &((struct report *)self)->top;
    PyObject *lines = PyUnicode_FromFormat(
        "peak %llu B in %llu blocks; %llu B in %llu blocks altogether, %llu B in %llu left\n"
        "      bytes    share     blocks  name\n",
        (unsigned long long)top->peak_bytes, (unsigned long long)top->peak_blocks,
        (unsigned long long)top->total_bytes, (unsigned long long)top->total_blocks,
        (unsigned long long)top->left_bytes, (unsigned long long)top->left_blocks);
    (void)bly_top_order(top, BLY_TOP_PEAK);
    for (size_t i = 0; lines != NULL && i < top->n && i < 10; i++) {
        const bly_top_row *row = &top->rows[i];
        char figures[96];
        double share =
            top->peak_bytes > 0 ? 100.0 * (double)row->peak_bytes / (double)top->peak_bytes : 0.0;
        snprintf(figures, sizeof(figures), "%11llu  %5.1f %% %10llu  ",
                 (unsigned long long)row->peak_bytes, share, (unsigned long long)row->peak_blocks);
        PyObject *name = text(row->name);
        PyObject *more = name ? PyUnicode_FromFormat("%U%s%U\n", lines, figures, name) : NULL;
        Py_XDECREF(name);
        Py_DECREF(lines);
        lines = more;
    }
    return lines;
}

static PyObject *report_repr(PyObject *self)
{
    const bly_top *top = &((struct report *)self)->top;
    return PyUnicode_FromFormat("<acl.profiler.Report: %zu ops, peak %llu B>", top->n,
                                (unsigned long long)top->peak_bytes);
}

static void report_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    bly_top_release(&((struct report *)self)->top);
    release(self);
    Py_DECREF(type);
}

#define FIGURE(name, about)                                                                        \
    {                                                                                              \
#name, T_ULONGLONG, offsetof(struct report, top.name), READONLY, about                     \
    }
static PyMemberDef report_members[] = {
    FIGURE(peak_bytes, "most bytes of card memory live at one moment"),
    FIGURE(peak_blocks, "blocks live then"),
    FIGURE(total_bytes, "live at start(), or asked for since"),
    FIGURE(total_blocks, "blocks of total_bytes"),
    FIGURE(left_bytes, "asked for since start() and live at stop()"),
    FIGURE(left_blocks, "blocks of left_bytes"),
    FIGURE(duration_ns, "from start() to stop()"),
    FIGURE(events, "that the recording has"),
    FIGURE(dropped, "events that a ring no longer has: figures are too low"),
    FIGURE(lost, "events that were not written"),
    FIGURE(refused, "requests for memory"),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef report_methods[] = {
    {"top_mem_ops", (PyCFunction)(void (*)(void))top_mem_ops, METH_VARARGS | METH_KEYWORDS,
     "top_mem_ops($self, n=10, by='peak')\n--\n\n"
     "The largest users of card memory, a list of MemOp; by is 'peak', 'total' or 'count'."},
    {NULL, NULL, 0, NULL},
};

PyObject *blyi_py_report_new(const bly_top *top)
{
    allocfunc make = (allocfunc)PyType_GetSlot(report_type, Py_tp_alloc);
    struct report *made = (struct report *)make(report_type, 0);
    if (made == NULL) {
        bly_top release = *top;
        bly_top_release(&release);
        return NULL;
    }
    made->top = *top;
    return (PyObject *)made;
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type, (void)args, (void)kwargs;
    return PyErr_Format(PyExc_TypeError, "a Report comes from acl.profiler.analyze()");
}

bool blyi_py_report_begin(PyObject *module)
{
    static PyStructSequence_Desc row_about = {
        "acl.profiler.MemOp", "One name in a report: who uses memory, how much, from where.",
        row_fields, sizeof(row_fields) / sizeof(*row_fields) - 1};
    static char about[] = "What acl.profiler recorded; all figures are exact.";
    static PyType_Slot slots[] = {{Py_tp_new, refuse_new},
                                  {Py_tp_dealloc, report_free},
                                  {Py_tp_str, report_text},
                                  {Py_tp_repr, report_repr},
                                  {Py_tp_members, report_members},
                                  {Py_tp_methods, report_methods},
                                  {Py_tp_doc, about},
                                  {0, NULL}};
    static PyType_Spec spec = {"acl.profiler.Report", sizeof(struct report), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    row_type = PyStructSequence_NewType(&row_about);
    report_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return row_type != NULL && report_type != NULL &&
           PyObject_SetAttrString(module, "MemOp", (PyObject *)row_type) == 0 &&
           PyObject_SetAttrString(module, "Report", (PyObject *)report_type) == 0;
}
