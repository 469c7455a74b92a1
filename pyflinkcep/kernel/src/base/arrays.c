/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of numbers between Python and C. No mirror in Python. */
#include "base/arrays.h"

#include <string.h>

static bool is_float_format(const char *format) {
    return format != NULL && format[0] != '\0' && strchr("efdgFDG", format[strlen(format) - 1]);
}

static int open_array(PyObject *object, Py_ssize_t width, bool floats, int more, Array *array) {
    *array = (Array){0};
    if (object == Py_None) return 0;
    if (PyObject_GetBuffer(object, &array->buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | more) < 0)
        return -1;
    if (array->buffer.itemsize != width || is_float_format(array->buffer.format) != floats) {
        PyErr_Format(
            PyExc_TypeError, "expected an array of %s, with items of %zd bytes, got '%s' of %zd",
            floats ? "floats" : "integers", width,
            array->buffer.format == NULL ? "B" : array->buffer.format, array->buffer.itemsize);
        PyBuffer_Release(&array->buffer);
        array->buffer.obj = NULL;
        return -1;
    }
    static const int64_t nothing = 0;
    array->items = array->buffer.buf == NULL ? &nothing : array->buffer.buf;
    array->size = array->buffer.len / width;
    return 0;
}

int array_of(PyObject *object, Py_ssize_t width, Array *array) {
    return open_array(object, width, false, 0, array);
}

int floats_of(PyObject *object, Array *array) {
    return open_array(object, sizeof(double), true, 0, array);
}

int writable_of(PyObject *object, Py_ssize_t width, Array *array) {
    if (open_array(object, width, false, PyBUF_WRITABLE, array) < 0) return -1;
    if (array->items != NULL) return 0;
    PyErr_SetString(PyExc_TypeError, "expected an array to write to");
    return -1;
}

bool holds_floats(PyObject *object) {
    Py_buffer buffer;
    if (object == Py_None || PyObject_GetBuffer(object, &buffer, PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return false;
    }
    bool floats = is_float_format(buffer.format);
    PyBuffer_Release(&buffer);
    return floats;
}

void array_close(Array *array) {
    if (array->buffer.obj != NULL) PyBuffer_Release(&array->buffer);
    *array = (Array){0};
}

PyObject *bytes_of(const void *items, Py_ssize_t size, size_t width) {
    return PyBytes_FromStringAndSize(size ? items : "", size * (Py_ssize_t)width);
}
