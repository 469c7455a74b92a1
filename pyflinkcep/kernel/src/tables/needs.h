/* SPDX-License-Identifier: Apache-2.0 */
/* Events that need not be sorted, since their keys have no match. */
#ifndef PYFLINKCEP_NEEDS_H
#define PYFLINKCEP_NEEDS_H

#include "base/memory.h"

/*
 * rows_with(numbers, bits, uses, wanted) -> rows, in 32 bits
 *
 * Return the rows of events whose key, by its number, has events with all the uses that are wanted:
 * `uses` has a byte for all bits that an event may have. Keys may count as one now and then.
 */
PyObject *module_rows_with(PyObject *module, PyObject *args);

#endif
