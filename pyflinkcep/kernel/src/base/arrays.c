/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of numbers between Python and C. No mirror in Python. */
#include "base/arrays.h"

/* Open a contiguous array of items of `width` bytes; None has no items. */
int array_of(PyObject *object, Py_ssize_t width, Array *array) {
    *array = (Array){0};
    if (object == Py_None) return 0;
    if (PyObject_GetBuffer(object, &array->buffer, PyBUF_C_CONTIGUOUS) < 0) return -1;
    if (array->buffer.itemsize != width) {
        PyErr_Format(
            PyExc_TypeError, "expected an array with items of %zd bytes, got %zd", width,
            array->buffer.itemsize);
        PyBuffer_Release(&array->buffer);
        array->buffer.obj = NULL;
        return -1;
    }
    static const int64_t nothing = 0;
    array->items = array->buffer.buf == NULL ? &nothing : array->buffer.buf;
    array->size = array->buffer.len / width;
    return 0;
}

void array_close(Array *array) {
    if (array->buffer.obj != NULL) PyBuffer_Release(&array->buffer);
    *array = (Array){0};
}

PyObject *bytes_of(const void *items, Py_ssize_t size, size_t width) {
    return PyBytes_FromStringAndSize(size ? items : "", size * (Py_ssize_t)width);
}
