/* SPDX-License-Identifier: Apache-2.0
 *
 * convert.c - acl.util: between bytes, NumPy arrays and addresses of host memory. NumPy is
 * imported at the first use; the module builds and works without it.
 */
#include <string.h>

#include "acl_module.h"

#define LARGE (1u << 20)

/* NumPy's type numbers 0 .. 23 as its type codes; those that are no plain values are left out. */
static const char type_codes[] = "?bBhHiIlLqQfdgFDG      e";

PyObject *blyi_py_bytes_to_ptr(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.util.bytes_to_ptr", "o", {"data"}, 0};
    struct blyi_py_call call;
    char *data;
    Py_ssize_t size;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    if (!PyBytes_Check(call.v[0].o)) {
        PyErr_Format(PyExc_ValueError, "acl.util.bytes_to_ptr: argument 1 (data) is not bytes: %R",
                     call.v[0].o);
        return NULL;
    }
    if (PyBytes_AsStringAndSize(call.v[0].o, &data, &size) != 0)
        return NULL;
    return PyLong_FromVoidPtr(data);
}

PyObject *blyi_py_ptr_to_bytes(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.util.ptr_to_bytes", "pu", {"ptr", "size"}, 0};
    struct blyi_py_call call;
    char *data;
    Py_ssize_t size;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    if (call.v[1].u > PY_SSIZE_T_MAX / 2) {
        PyErr_Format(PyExc_ValueError, "acl.util.ptr_to_bytes: argument 2 (size) is %llu",
                     (unsigned long long)call.v[1].u);
        return NULL;
    }
    if (call.v[1].u > LARGE && !blyi_py_reach(&call, 0, call.v[1].u))
        return NULL; /* before so much is asked of the host */
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)call.v[1].u);
    if (bytes == NULL)
        return NULL;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) != 0 ||
        !blyi_py_read(&call, 0, data, call.v[1].u))
        Py_CLEAR(bytes);
    return bytes;
}

/* A new reference to an attribute of numpy, or NULL. */
static PyObject *numpy(const char *name)
{
    PyObject *module = PyImport_ImportModule("numpy"), *found = NULL;
    if (module != NULL)
        found = PyObject_GetAttrString(module, name);
    Py_XDECREF(module);
    return found;
}

static bool check_array(const struct blyi_py_call *call)
{
    PyObject *type = numpy("ndarray");
    int is_array = type != NULL ? PyObject_IsInstance(call->v[0].o, type) : -1;
    Py_XDECREF(type);
    if (is_array == 0)
        PyErr_Format(PyExc_ValueError, "%s: argument 1 (array) is not a numpy.ndarray: %R",
                     call->spec->function, call->v[0].o);
    return is_array > 0;
}

/* The address that the array interface tells, as an int. */
static PyObject *address_of(PyObject *array)
{
    PyObject *interface = PyObject_GetAttrString(array, "__array_interface__");
    PyObject *data = interface ? PyMapping_GetItemString(interface, "data") : NULL;
    PyObject *address = data ? PySequence_GetItem(data, 0) : NULL;
    Py_XDECREF(interface);
    Py_XDECREF(data);
    return address;
}

static int is_contiguous(PyObject *array)
{
    PyObject *flags = PyObject_GetAttrString(array, "flags");
    PyObject *flag = flags ? PyObject_GetAttrString(flags, "c_contiguous") : NULL;
    int answer = flag ? PyObject_IsTrue(flag) : -1;
    Py_XDECREF(flags);
    Py_XDECREF(flag);
    return answer;
}

PyObject *blyi_py_numpy_to_ptr(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.util.numpy_to_ptr", "o", {"array"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !check_array(&call))
        return NULL;
    int contiguous = is_contiguous(call.v[0].o);
    if (contiguous < 0)
        return NULL;
    if (contiguous == 0 &&
        PyErr_WarnEx(PyExc_Warning,
                     "acl.util.numpy_to_ptr: the array is not contiguous, so its elements are not "
                     "side by side at this address; acl.util.numpy_contiguous_to_ptr makes a copy",
                     1) != 0)
        return NULL;
    return address_of(call.v[0].o);
}

PyObject *blyi_py_numpy_contiguous_to_ptr(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.util.numpy_contiguous_to_ptr", "o", {"array"}, 0};
    struct blyi_py_call call;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !check_array(&call))
        return NULL;
    PyObject *make = numpy("ascontiguousarray");
    PyObject *array = make ? PyObject_CallFunctionObjArgs(make, call.v[0].o, NULL) : NULL;
    PyObject *address = array ? address_of(array) : NULL;
    Py_XDECREF(make);
    if (address == NULL) {
        Py_XDECREF(array);
        return NULL;
    }
    return Py_BuildValue("(NN)", address, array);
}

/* dtype of a type number; ValueError. */
static PyObject *dtype_of(const struct blyi_py_call *call)
{
    int64_t number = call->v[2].i;
    if (number < 0 || number >= (int64_t)(sizeof(type_codes) - 1) || type_codes[number] == ' ') {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument 3 (dtype) is %lld; numbers, bool and complex are 0 .. 16 and 23",
                     call->spec->function, (long long)number);
        return NULL;
    }
    PyObject *make = numpy("dtype"), *dtype = NULL;
    if (make != NULL)
        dtype = PyObject_CallFunction(make, "s#", &type_codes[number], (Py_ssize_t)1);
    Py_XDECREF(make);
    return dtype;
}

static bool item_size(PyObject *dtype, uint64_t *size)
{
    PyObject *attribute = PyObject_GetAttrString(dtype, "itemsize");
    if (attribute == NULL)
        return false;
    *size = PyLong_AsUnsignedLongLong(attribute);
    Py_DECREF(attribute);
    return !PyErr_Occurred();
}

/* Multiplies *size by the lengths of a shape. */
static bool shape_size(const struct blyi_py_call *call, uint64_t *size)
{
    PyObject *shape = call->v[1].o;
    if (!PyTuple_Check(shape))
        return blyi_py_wrong(call, 1, "is not a tuple: %R", shape);
    for (Py_ssize_t i = 0; i < PyTuple_Size(shape); i++) {
        uint64_t length = 0;
        const char *wrong = blyi_py_number(PyTuple_GetItem(shape, i), 'l', &length);
        if (wrong != NULL)
            return blyi_py_wrong(call, 1, "[%zd] %s: %R", i, wrong, shape);
        if ((int64_t)length < 0 || __builtin_mul_overflow(*size, length, size) ||
            *size > PY_SSIZE_T_MAX) {
            PyErr_Format(PyExc_ValueError, "%s: argument 2 (shape) is no shape: %R",
                         call->spec->function, shape);
            return false;
        }
    }
    return true;
}

/* Over no memory at all, an array of NumPy's own. */
static PyObject *array_over(const struct blyi_py_call *call, PyObject *dtype, uint64_t size)
{
    PyObject *make = numpy("ndarray"), *array = NULL, *view = NULL;
    if (make == NULL)
        return NULL;
    if (size == 0) {
        array = PyObject_CallFunction(make, "OO", call->v[1].o, dtype);
    } else {
        char *memory = (char *)(uintptr_t)call->v[0].u;
        view = PyMemoryView_FromMemory(memory, (Py_ssize_t)size, 0x200 /* PyBUF_WRITE */);
        if (view != NULL)
            array = PyObject_CallFunction(make, "OOO", call->v[1].o, dtype, view);
    }
    Py_XDECREF(view);
    Py_DECREF(make);
    return array;
}

PyObject *blyi_py_ptr_to_numpy(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.util.ptr_to_numpy", "poi", {"ptr", "shape", "dtype"}, 0};
    struct blyi_py_call call;
    uint64_t size = 0;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    PyObject *dtype = dtype_of(&call), *array = NULL;
    if (dtype == NULL)
        return NULL;
    if (item_size(dtype, &size) && shape_size(&call, &size)) {
        if (size > 0 && call.v[0].u == 0)
            PyErr_SetString(PyExc_ValueError, "acl.util.ptr_to_numpy: argument 1 (ptr) is 0");
        else if (blyi_py_reach(&call, 0, size))
            array = array_over(&call, dtype, size);
    }
    Py_DECREF(dtype);
    return array;
}
