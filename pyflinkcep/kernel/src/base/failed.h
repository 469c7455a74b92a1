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

/* Whether a place has failed with these values. */
bool failed_has(const Failed *failed, int64_t place, const Value *values);
/* Add a new place, unless there are enough; it takes over the values' references. */
int failed_add(Failed *failed, int64_t place, Value *values);
/* Discard all places; a large table is freed, since clearing it would cost every search. */
void failed_clear(Failed *failed);
/* Release all memory. */
void failed_free(Failed *failed);

#endif
