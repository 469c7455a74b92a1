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

/* Open a contiguous array of integers, or bytes, of `width` bytes; None has no items. */
int array_of(PyObject *object, Py_ssize_t width, Array *array);
/* Open a contiguous array of doubles; None has no items. */
int floats_of(PyObject *object, Array *array);
/* Open an array of integers to write to, by its buffer. */
int writable_of(PyObject *object, Py_ssize_t width, Array *array);
/* Whether an object is an array of floats. */
bool holds_floats(PyObject *object);
/* Release an array's buffer. */
void array_close(Array *array);
/* Return items as bytes of Python. */
PyObject *bytes_of(const void *items, Py_ssize_t size, size_t width);

#endif
