/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenated matches of SEQ queries, for Python. */
#ifndef PYFLINKCEP_LISTED_H
#define PYFLINKCEP_LISTED_H

#include "base/memory.h"

typedef struct {
    int64_t *handles; /* of the events, those of a match from the oldest to the newest */
    int32_t *components; /* what each event was taken for */
    Py_ssize_t events, handle_room, component_room;
    int64_t *ends; /* where the events of each match end */
    Py_ssize_t size, room; /* of the matches */
} Listed;

/* Make room for one more match, of `events` events. */
int listed_reserve(Listed *listed, Py_ssize_t events);
/* Return (handles, ends, components): bytes of int64, int64, int32. */
PyObject *listed_result(const Listed *listed);
/* Clear the matches. */
void listed_clear(Listed *listed);
/* Release all memory. */
void listed_free(Listed *listed);

/* Add an event to the current match, which has room for it. */
static inline void listed_put(Listed *listed, int64_t handle, int32_t component) {
    listed->handles[listed->events] = handle;
    listed->components[listed->events++] = component;
}

/* End the current match. */
static inline void listed_end(Listed *listed) { listed->ends[listed->size++] = listed->events; }

#endif
