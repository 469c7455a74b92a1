/* SPDX-License-Identifier: Apache-2.0 */
/* The places where a search has failed, each with the values known there. */
#ifndef PYFLINKCEP_FAILED_H
#define PYFLINKCEP_FAILED_H

#include "base/values.h"

/* A table of hashes. */
typedef struct {
    int64_t *places;
    Value *values; /* `width` for each place */
    Py_ssize_t size, room, value_room, width, most;
    uint32_t *table; /* the index of an entry plus 1, 0 for none */
    Py_ssize_t capacity; /* a power of two, or 0 */
} Failed;

bool failed_has(const Failed *failed, int64_t place, const Value *values);
int failed_add(Failed *failed, int64_t place, Value *values);
void failed_clear(Failed *failed);
void failed_free(Failed *failed);

#endif
