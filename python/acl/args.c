/* SPDX-License-Identifier: Apache-2.0
 *
 * args.c - arguments of a method, checked before AscendCL sees them.
 */
#include <float.h>
#include <stdarg.h>
#include <string.h>

#include "acl_module.h"

bool blyi_py_wrong(const struct blyi_py_call *call, int index, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyObject *text = PyUnicode_FromFormatV(format, list);
    va_end(list);
    if (text == NULL)
        return false;
    PyErr_Format(PyExc_TypeError, "%s: argument %d (%s) %U", call->spec->function, index + 1,
                 call->spec->names[index], text);
    Py_DECREF(text);
    return false;
}

/* In [low, 2^64): negative numbers by their two's complement. */
static const char *wide(PyObject *whole, uint64_t *bits)
{
    *bits = PyLong_AsUnsignedLongLong(whole);
    if (*bits != UINT64_MAX || !PyErr_Occurred())
        return NULL;
    PyErr_Clear();
    int64_t number = PyLong_AsLongLong(whole);
    if (PyErr_Occurred() || number >= 0) {
        PyErr_Clear();
        return "does not fit in 64 bits";
    }
    *bits = (uint64_t)number;
    return NULL;
}

static const char *narrow(PyObject *whole, int64_t low, int64_t high, const char *text,
                          uint64_t *bits)
{
    int64_t number = PyLong_AsLongLong(whole);
    if (number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return text;
    }
    if (number < low || number > high)
        return text;
    *bits = (uint64_t)number;
    return NULL;
}

const char *blyi_py_number(PyObject *object, char kind, uint64_t *bits)
{
    PyObject *whole = PyNumber_Index(object);
    const char *wrong;
    if (whole == NULL) {
        PyErr_Clear();
        return "is not an int";
    }
    switch (kind) {
    case 'i':
        wrong = narrow(whole, INT32_MIN, INT32_MAX, "does not fit in 32 bits with a sign", bits);
        break;
    case 'I':
        wrong = narrow(whole, INT32_MIN, UINT32_MAX, "does not fit in 32 bits", bits);
        *bits = (uint32_t)*bits;
        break;
    case 'N':
        wrong = narrow(whole, 0, UINT32_MAX, "does not fit in 32 bits without a sign", bits);
        break;
    case 'H':
        wrong = narrow(whole, INT16_MIN, UINT16_MAX, "does not fit in 16 bits", bits);
        *bits = (uint16_t)*bits;
        break;
    case 'B':
        wrong = narrow(whole, INT8_MIN, UINT8_MAX, "does not fit in 8 bits", bits);
        *bits = (uint8_t)*bits;
        break;
    case 'l':
        wrong = narrow(whole, INT64_MIN, INT64_MAX, "does not fit in 64 bits with a sign", bits);
        break;
    default:
        wrong = wide(whole, bits);
    }
    Py_DECREF(whole);
    return wrong;
}

static bool take_number(struct blyi_py_call *call, int index, PyObject *object, char kind)
{
    uint64_t bits = 0;
    const char *wrong = blyi_py_number(object, kind, &bits);
    if (wrong != NULL)
        return blyi_py_wrong(call, index, "%s: %R", wrong, object);
    call->v[index].u = bits;
    return true;
}

static bool take_float(struct blyi_py_call *call, int index, PyObject *object)
{
    double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return blyi_py_wrong(call, index, "is not a number: %R", object);
    }
    /* Outside float's range a conversion has no defined value. */
    if (value > FLT_MAX)
        value = (double)__builtin_inff();
    if (value < -FLT_MAX)
        value = -(double)__builtin_inff();
    call->v[index].f = value;
    return true;
}

/* File names are passed through as bytes, whatever they are. */
static bool take_text(struct blyi_py_call *call, int index, PyObject *object)
{
    char *text;
    Py_ssize_t length;
    if (!PyUnicode_Check(object))
        return blyi_py_wrong(call, index, "is not a str: %R", object);
    PyObject *bytes = PyUnicode_EncodeFSDefault(object);
    if (bytes == NULL) {
        PyErr_Clear();
        return blyi_py_wrong(call, index, "cannot be encoded: %R", object);
    }
    call->held[index] = bytes;
    if (PyBytes_AsStringAndSize(bytes, &text, &length) != 0)
        return false;
    if (strlen(text) != (size_t)length)
        return blyi_py_wrong(call, index, "has a NUL character: %R", object);
    call->v[index].s = text;
    return true;
}

static bool take(struct blyi_py_call *call, int index, PyObject *object)
{
    char kind = call->spec->kinds[index];
    switch (kind) {
    case 'f':
        return take_float(call, index, object);
    case 'S':
    case 's':
        if (kind == 'S' && object == Py_None)
            return true;
        return take_text(call, index, object);
    case 'C':
    case 'c':
        if (!PyCallable_Check(object) && (kind == 'c' || object != Py_None))
            return blyi_py_wrong(call, index, "is not callable: %R", object);
        call->v[index].o = object == Py_None && kind == 'C' ? NULL : object;
        return true;
    case 'o':
        call->v[index].o = object;
        return true;
    default:
        return take_number(call, index, object, kind);
    }
}

bool blyi_py_begin(struct blyi_py_call *call, const struct blyi_py_spec *spec, PyObject *args)
{
    Py_ssize_t n = PyTuple_Size(args), wanted = (Py_ssize_t)strlen(spec->kinds);
    call->spec = spec;
    memset(call->v, 0, (size_t)wanted * sizeof(call->v[0]));
    memset(call->held, 0, (size_t)wanted * sizeof(PyObject *));
    if (n < 0)
        return false;
    if (n > wanted || n < wanted - spec->optional) {
        PyErr_Format(PyExc_TypeError, "%s takes %s%zd argument%s, not %zd", spec->function,
                     spec->optional > 0 ? "at most " : "", wanted, wanted == 1 ? "" : "s", n);
        return false;
    }
    for (int i = 0; i < (int)n; i++) {
        PyObject *object = PyTuple_GetItem(args, i);
        if (object == NULL || !take(call, i, object)) {
            blyi_py_end(call);
            return false;
        }
    }
    return true;
}

void blyi_py_end(struct blyi_py_call *call)
{
    for (int i = 0; call->spec->kinds[i] != '\0'; i++)
        Py_CLEAR(call->held[i]);
}

PyObject *blyi_py_fail(struct blyi_py_call *call)
{
    blyi_py_end(call);
    return NULL;
}

bool blyi_py_text_length(const struct blyi_py_call *call, int index)
{
    uint64_t length = call->v[index].u;
    bool is_negative = call->spec->kinds[index] == 'i' && call->v[index].i < 0;
    if (is_negative || length < BLYI_PY_TEXT_MAX)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %d (%s) is %llu, above %d", call->spec->function,
                 index + 1, call->spec->names[index], (unsigned long long)length,
                 BLYI_PY_TEXT_MAX - 1);
    return false;
}

PyObject *blyi_py_text(const char *text)
{
    if (text == NULL)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(text);
}
