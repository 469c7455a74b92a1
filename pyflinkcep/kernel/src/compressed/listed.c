/* SPDX-License-Identifier: Apache-2.0 */
/* Matches of SEQ queries as arrays. Mirror: MatchArrays in engines/compressed/counting.py. */
#include "compressed/listed.h"
#include "base/arrays.h"

int listed_reserve(Listed *listed, Py_ssize_t events) {
    Py_ssize_t needed = listed->events + events;
    int64_t *ends = reserve(listed->ends, &listed->room, listed->size + 1, sizeof(int64_t));
    if (ends == NULL) return -1;
    listed->ends = ends;
    int64_t *handles = reserve(listed->handles, &listed->handle_room, needed, sizeof(int64_t));
    if (handles == NULL) return -1;
    listed->handles = handles;
    int32_t *components =
        reserve(listed->components, &listed->component_room, needed, sizeof(int32_t));
    if (components == NULL) return -1;
    listed->components = components;
    return 0;
}

PyObject *listed_result(const Listed *listed) {
    if (PyErr_Occurred()) return NULL; /* in a condition */
    return Py_BuildValue(
        "NNN", bytes_of(listed->handles, listed->events, sizeof(int64_t)),
        bytes_of(listed->ends, listed->size, sizeof(int64_t)),
        bytes_of(listed->components, listed->events, sizeof(int32_t)));
}

void listed_clear(Listed *listed) { listed->events = listed->size = 0; }

void listed_free(Listed *listed) {
    release_memory(listed->handles);
    release_memory(listed->ends);
    release_memory(listed->components);
    *listed = (Listed){0};
}
