/* SPDX-License-Identifier: Apache-2.0 */
/* Many texts in many values. */
#ifndef PYFLINKCEP_LITERALS_H
#define PYFLINKCEP_LITERALS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/*
 * literals(data, ends, texts, kinds) -> (ends, values): for each text the values that it is in; in
 * a kind, 1 is for texts at the beginning, 2 for those at the end. None if there are too many.
 */
PyObject *module_literals(PyObject *module, PyObject *args);

#endif
