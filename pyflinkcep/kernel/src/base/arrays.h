/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of numbers from Python, and bytes for it. */
#ifndef PYFLINKCEP_ARRAYS_H
#define PYFLINKCEP_ARRAYS_H

#include "base/memory.h"

typedef struct {
    Py_buffer buffer;
    const void *items; /* NULL for None */
    Py_ssize_t size;
} Array;

int array_of(PyObject *object, Py_ssize_t width, Array *array);
int floats_of(PyObject *object, Array *array);
bool holds_floats(PyObject *object);
void array_close(Array *array);
PyObject *bytes_of(const void *items, Py_ssize_t size, size_t width);

#endif
