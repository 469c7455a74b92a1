/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of events that programs read, as passed from Python. */
#ifndef PYFLINKCEP_FIELDS_H
#define PYFLINKCEP_FIELDS_H

#include "base/arrays.h"
#include "base/values.h"

typedef struct {
    Array *data, *valid; /* what the columns of `Values` point into */
} Fields;

void fields_close(Values *values, Fields *fields);
int fields_read(Values *values, Fields *fields, PyObject *given);

#endif
