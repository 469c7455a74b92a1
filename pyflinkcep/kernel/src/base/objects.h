/* SPDX-License-Identifier: Apache-2.0 */
/* How objects of Python are made and called. */
#ifndef PYFLINKCEP_OBJECTS_H
#define PYFLINKCEP_OBJECTS_H

#include "base/memory.h"

/* A function in the form that slots of types and modules hold, converted as ISO C allows. */
#define AS_SLOT(function) ((void *)(uintptr_t)(function))

/* Call a function with one argument. */
static inline PyObject *call_with(PyObject *function, PyObject *argument) {
#ifdef Py_LIMITED_API
    return PyObject_CallFunctionObjArgs(function, argument, NULL);
#else
    return PyObject_CallOneArg(function, argument);
#endif
}

#endif
