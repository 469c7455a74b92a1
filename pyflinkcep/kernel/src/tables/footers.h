/* SPDX-License-Identifier: Apache-2.0 */
/* What the footer of a file of Parquet tells of its row groups. */
#ifndef PYFLINKCEP_FOOTERS_H
#define PYFLINKCEP_FOOTERS_H

#include "base/memory.h"

/*
 * row_groups(footer, places) -> [(rows, (column, ...)), ...], or None if the footer is damaged
 *
 * Of a column, by its place among all: its compression, its encodings as bits, how many values and
 * bytes it has, where its data and its dictionary begin (0 of none), how many values are missing
 * (-1 if that is not told), and the least and the greatest of integers, or None.
 */
PyObject *module_row_groups(PyObject *module, PyObject *args);

#endif
