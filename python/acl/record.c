/* SPDX-License-Identifier: Apache-2.0
 *
 * record.c - dictionaries and lists for structs and arrays. The keys, places and kinds of members
 * are generated from the tables of the C face.
 */
#include <string.h>

#include "acl_module.h"

static size_t kind_size(char kind)
{
    switch (kind) {
    case 'B':
    case 't':
        return 1;
    case 'H':
        return 2;
    case 'i':
    case 'I':
        return 4;
    default:
        return 8;
    }
}

static void store(void *to, char kind, uint64_t bits)
{
    uint8_t b = (uint8_t)bits;
    uint16_t h = (uint16_t)bits;
    uint32_t w = (uint32_t)bits;
    switch (kind_size(kind)) {
    case 1:
        memcpy(to, &b, sizeof(b));
        break;
    case 2:
        memcpy(to, &h, sizeof(h));
        break;
    case 4:
        memcpy(to, &w, sizeof(w));
        break;
    default:
        memcpy(to, &bits, sizeof(bits));
    }
}

static PyObject *fetch(const void *from, char kind)
{
    uint64_t bits = 0;
    int32_t number;
    memcpy(&bits, from, kind_size(kind)); /* little endian */
    if (kind == 'i') {
        memcpy(&number, from, sizeof(number));
        return PyLong_FromLong(number);
    }
    return PyLong_FromUnsignedLongLong(bits);
}

static bool is_array(PyObject *object)
{
    return PyList_Check(object) || PyTuple_Check(object);
}

static bool wrong_member(const struct blyi_py_call *call, int index,
                         const struct blyi_py_field *field, const char *wrong, PyObject *object)
{
    return blyi_py_wrong(call, index, "[\"%s\"] %s: %R", field->key, wrong, object);
}

static bool array_in(const struct blyi_py_call *call, int index, const struct blyi_py_field *field,
                     PyObject *object, char *place)
{
    if (!is_array(object))
        return wrong_member(call, index, field, "is not a list", object);
    Py_ssize_t n = PySequence_Size(object);
    if (n < 0)
        return false;
    if ((size_t)n > field->count)
        return blyi_py_wrong(call, index, "[\"%s\"] has %zd items, more than %zu", field->key, n,
                             field->count);
    for (Py_ssize_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        PyObject *item = PySequence_GetItem(object, i);
        if (item == NULL)
            return false;
        const char *wrong = blyi_py_number(item, field->kind, &bits);
        bool done = wrong == NULL || wrong_member(call, index, field, wrong, item);
        Py_DECREF(item);
        if (!done)
            return false;
        store(place + (size_t)i * kind_size(field->kind), field->kind, bits);
    }
    return true;
}

static bool member_in(const struct blyi_py_call *call, int index, const struct blyi_py_field *field,
                      PyObject *object, char *place)
{
    uint64_t bits = 0;
    if (field->kind == 'r')
        return blyi_py_dict_in(call, index, object, field->record, place);
    if (field->count > 0)
        return array_in(call, index, field, object, place);
    const char *wrong = blyi_py_number(object, field->kind, &bits);
    if (wrong != NULL)
        return wrong_member(call, index, field, wrong, object);
    store(place, field->kind, bits);
    return true;
}

static PyObject *keys_of(const struct blyi_py_record *description)
{
    PyObject *list = PyList_New(0);
    for (const struct blyi_py_field *f = description->fields; list != NULL && f->key != NULL; f++) {
        PyObject *key = PyUnicode_FromString(f->key);
        if (key == NULL || PyList_Append(list, key) != 0)
            Py_CLEAR(list);
        Py_XDECREF(key);
    }
    return list;
}

static bool is_known(PyObject *key, const struct blyi_py_record *description)
{
    if (!PyUnicode_Check(key))
        return false;
    for (const struct blyi_py_field *f = description->fields; f->key != NULL; f++)
        if (PyUnicode_CompareWithASCIIString(key, f->key) == 0)
            return true;
    return false;
}

/* A misspelled key would mean a default where the program set something. */
static bool refuse_unknown_keys(const struct blyi_py_call *call, int index, PyObject *dict,
                                const struct blyi_py_record *description)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (is_known(key, description))
            continue;
        PyObject *known = keys_of(description);
        if (known == NULL)
            return false;
        (void)blyi_py_wrong(call, index, "has the key %R, %s has %R", key, description->name,
                            known);
        Py_DECREF(known);
        return false;
    }
    return true;
}

bool blyi_py_dict_in(const struct blyi_py_call *call, int index, PyObject *dict,
                     const struct blyi_py_record *description, void *record)
{
    if (!PyDict_Check(dict))
        return blyi_py_wrong(call, index, "is not a dict (%s): %R", description->name, dict);
    if (!refuse_unknown_keys(call, index, dict, description))
        return false;
    for (const struct blyi_py_field *f = description->fields; f->key != NULL; f++) {
        PyObject *value = PyDict_GetItemString(dict, f->key); /* borrowed */
        if (value == NULL && f->kind == 'r')
            return blyi_py_wrong(call, index, "has no key \"%s\"", f->key);
        if (value == NULL)
            continue;
        Py_INCREF(value); /* __index__ of a member may change the dict */
        bool done = member_in(call, index, f, value, (char *)record + f->offset);
        Py_DECREF(value);
        if (!done)
            return false;
    }
    return true;
}

bool blyi_py_record_in(const struct blyi_py_call *call, int index,
                       const struct blyi_py_record *description, void *record)
{
    return blyi_py_dict_in(call, index, call->v[index].o, description, record);
}

static PyObject *member_out(const struct blyi_py_field *field, const char *place)
{
    if (field->kind == 'r')
        return blyi_py_record_out(field->record, place);
    if (field->kind == 't') {
        size_t length = strnlen(place, field->count);
        return PyUnicode_DecodeFSDefaultAndSize(place, (Py_ssize_t)length);
    }
    if (field->count == 0)
        return fetch(place, field->kind);
    PyObject *list = PyList_New((Py_ssize_t)field->count);
    for (size_t i = 0; list != NULL && i < field->count; i++) {
        PyObject *item = fetch(place + i * kind_size(field->kind), field->kind);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *blyi_py_record_out(const struct blyi_py_record *description, const void *record)
{
    PyObject *dict = PyDict_New();
    for (const struct blyi_py_field *f = description->fields; dict != NULL && f->key != NULL; f++) {
        PyObject *value = member_out(f, (const char *)record + f->offset);
        if (value == NULL || PyDict_SetItemString(dict, f->key, value) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* A zeroed array of `size` bytes an item for a list argument; NULL without an exception: empty. */
static void *array_of(const struct blyi_py_call *call, int index, size_t size, size_t *n)
{
    PyObject *list = call->v[index].o;
    *n = 0;
    if (!is_array(list)) {
        (void)blyi_py_wrong(call, index, "is not a list: %R", list);
        return NULL;
    }
    Py_ssize_t count = PySequence_Size(list);
    if (count <= 0)
        return NULL;
    void *array = PyMem_Calloc((size_t)count, size);
    if (array == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *n = (size_t)count;
    return array;
}

bool blyi_py_records_in(const struct blyi_py_call *call, int index,
                        const struct blyi_py_record *description, void **records, size_t *n)
{
    char *array = array_of(call, index, description->size, n);
    *records = NULL;
    if (array == NULL)
        return !PyErr_Occurred();
    for (size_t i = 0; i < *n; i++) {
        PyObject *item = PySequence_GetItem(call->v[index].o, (Py_ssize_t)i);
        bool done = item != NULL &&
                    blyi_py_dict_in(call, index, item, description, array + i * description->size);
        Py_XDECREF(item);
        if (!done) {
            PyMem_Free(array);
            return false;
        }
    }
    *records = array;
    return true;
}

PyObject *blyi_py_records_out(const struct blyi_py_record *description, const void *records,
                              size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *item =
            blyi_py_record_out(description, (const char *)records + i * description->size);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *blyi_py_handles_out(void *const handles[], size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *item = PyLong_FromUnsignedLongLong((uintptr_t)handles[i]);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

bool blyi_py_numbers_in(const struct blyi_py_call *call, int index, char kind, void **numbers,
                        size_t *n)
{
    char *array = array_of(call, index, kind_size(kind), n);
    *numbers = NULL;
    if (array == NULL)
        return !PyErr_Occurred();
    for (size_t i = 0; i < *n; i++) {
        uint64_t bits = 0;
        PyObject *item = PySequence_GetItem(call->v[index].o, (Py_ssize_t)i);
        const char *wrong = item == NULL ? "" : blyi_py_number(item, kind, &bits);
        if (wrong != NULL && item != NULL)
            (void)blyi_py_wrong(call, index, "[%zu] %s: %R", i, wrong, item);
        Py_XDECREF(item);
        if (wrong != NULL) {
            PyMem_Free(array);
            return false;
        }
        store(array + i * kind_size(kind), kind, bits);
    }
    *numbers = array;
    return true;
}
