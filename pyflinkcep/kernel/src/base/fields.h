/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of events that programs read, as passed from Python. */
#ifndef PYFLINKCEP_FIELDS_H
#define PYFLINKCEP_FIELDS_H

#include "base/arrays.h"
#include "base/values.h"

typedef struct {
    Array *data, *valid; /* what the columns of `Values` point into */
} Fields;

/* Forget the columns of events and release their arrays. */
void fields_close(Values *values, Fields *fields);
/* Read the columns of events, one for each field. */
int fields_read(Values *values, Fields *fields, PyObject *given);

#endif
