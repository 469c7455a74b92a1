/* SPDX-License-Identifier: Apache-2.0 */
/* Results as arrays: matches, timeouts and stages reached, their times and their events. No mirror in Python. */
#include "base/lock.h"
#include "flink/key.h"

#include <string.h>

int found_grow_events(Found *found, Py_ssize_t needed) {
    Py_ssize_t room = found->event_room;
    int32_t *stages = reserve(found->stages, &room, needed, sizeof(int32_t));
    if (stages == NULL) return -1;
    found->stages = stages;
    room = found->event_room;
    int64_t *handles = reserve(found->handles, &room, needed, sizeof(int64_t));
    if (handles == NULL) return -1;
    found->handles = handles;
    found->event_room = room;
    return 0;
}

int found_event(Found *found, int32_t stage, int64_t handle) {
    if (found_room(found, 1) < 0) return -1;
    found->stages[found->events] = stage;
    found->handles[found->events++] = handle;
    return 0;
}

int found_path(Found *found, const Path *path) {
    for (Py_ssize_t i = 0; i < path->size; i++)
        if (found_event(found, path->steps[i].stage, path->steps[i].entry->handle) < 0) return -1;
    return 0;
}

int found_end(Found *found, uint8_t kind, int64_t timestamp) {
    if (found->size == found->room) {
        Py_ssize_t room = found->room, needed = found->size + 1;
        uint8_t *kinds = reserve(found->kinds, &room, needed, sizeof(uint8_t));
        if (kinds == NULL) return -1;
        found->kinds = kinds;
        room = found->room;
        int64_t *times = reserve(found->times, &room, needed, sizeof(int64_t));
        if (times == NULL) return -1;
        found->times = times;
        room = found->room;
        int64_t *ends = reserve(found->ends, &room, needed, sizeof(int64_t));
        if (ends == NULL) return -1;
        found->ends = ends;
        found->room = room;
    }
    found->kinds[found->size] = kind;
    found->times[found->size] = timestamp;
    found->ends[found->size++] = found->events;
    return 0;
}

void found_forget_open(Found *found) {
    found->events = found->size > 0 ? (Py_ssize_t)found->ends[found->size - 1] : 0;
}

void found_empty(Found *found) {
    found->size = found->events = 0;
    found->dropped = 0;
}

void found_free(Found *found) {
    release_memory(found->kinds);
    release_memory(found->times);
    release_memory(found->ends);
    release_memory(found->stages);
    release_memory(found->handles);
}

/* --- what matches of a table are kept as */

/* The rows of handles: some numbers at equal distances, or the handles themselves. */
typedef struct {
    Py_buffer buffer;
    int64_t begin; /* what is added to a handle first */
} Rows;

static int rows_open(Rows *rows, PyObject *numbers, int64_t begin) {
    *rows = (Rows){.begin = begin};
    if (numbers == Py_None) return 0;
    if (PyObject_GetBuffer(numbers, &rows->buffer, PyBUF_STRIDES) < 0) return -1;
    if (rows->buffer.ndim == 1 && rows->buffer.itemsize == sizeof(int32_t)) return 0;
    PyErr_SetString(PyExc_TypeError, "expected an array of rows with items of 4 bytes");
    PyBuffer_Release(&rows->buffer);
    rows->buffer.obj = NULL;
    return -1;
}

static bool row_of(const Rows *rows, int64_t handle, int32_t *row) {
    int64_t place = handle + rows->begin;
    if (rows->buffer.obj == NULL) {
        *row = (int32_t)place;
        return place >= 0 && place <= INT32_MAX;
    }
    if (place < 0 || place >= rows->buffer.shape[0]) return false;
    memcpy(row, (const char *)rows->buffer.buf + place * rows->buffer.strides[0], sizeof *row);
    return true;
}

/* Results in other types, those of a kind after another. */
typedef struct {
    uint8_t *kinds;
    int64_t *times, *ends;
    int8_t *stages;
    int32_t *rows;
    Py_ssize_t size, events;
} Kept;

static bool keep(Kept *kept, const Found *found, uint8_t kind, const Rows *rows) {
    bool fits = true;
    int64_t first = 0;
    for (Py_ssize_t i = 0; i < found->size; first = found->ends[i++]) {
        if (found->kinds[i] != kind) continue;
        for (int64_t event = first; event < found->ends[i]; event++) {
            fits = fits && row_of(rows, found->handles[event], &kept->rows[kept->events]);
            kept->stages[kept->events++] = (int8_t)found->stages[event];
        }
        kept->kinds[kept->size] = kind;
        kept->times[kept->size] = found->times[i];
        kept->ends[kept->size++] = kept->events;
    }
    return fits;
}

PyObject *found_kept(const Found *found, PyObject *numbers, int64_t begin) {
    static const Py_ssize_t widths[] = {1, 8, 8, 1, 4};
    PyObject *arrays[5] = {NULL}, *result = NULL;
    Rows rows;
    if (rows_open(&rows, numbers, begin) < 0) return NULL;
    for (int i = 0; i < 5; i++) {
        Py_ssize_t size = i < 3 ? found->size : found->events;
        arrays[i] = PyBytes_FromStringAndSize(NULL, size * widths[i]);
        if (arrays[i] == NULL) goto end;
    }
    Kept kept = {(uint8_t *)PyBytes_AsString(arrays[0]), (int64_t *)PyBytes_AsString(arrays[1]),
        (int64_t *)PyBytes_AsString(arrays[2]), (int8_t *)PyBytes_AsString(arrays[3]),
        (int32_t *)PyBytes_AsString(arrays[4]), 0, 0};
    lock_leave();
    bool fits = keep(&kept, found, MATCH, &rows) && keep(&kept, found, TIMEOUT, &rows);
    lock_take();
    if (fits && kept.size == found->size)
        result = Py_BuildValue(
            "OOOOOL", arrays[0], arrays[1], arrays[2], arrays[3], arrays[4],
            (long long)found->dropped);
    else
        PyErr_SetString(PyExc_ValueError, "results do not fit the rows");
end:
    for (int i = 0; i < 5; i++) Py_XDECREF(arrays[i]);
    if (rows.buffer.obj != NULL) PyBuffer_Release(&rows.buffer);
    return result;
}

/* --- matches that wait for others of their event */

int matches_add(
    Matches *matches, const Partial *partial, const Path *path, int64_t time, int32_t last_stage,
    int64_t last_handle) {
    FoundMatch *items =
        reserve(matches->items, &matches->room, matches->size + 1, sizeof(FoundMatch));
    if (items == NULL) return -1;
    matches->items = items;
    FoundMatch *match = &matches->items[matches->size++];
    match->start_timestamp = partial->start_timestamp;
    match->start_id = partial->start_id;
    match->time = time;
    match->first = matches->found.events;
    if (found_path(&matches->found, path) < 0) return -1;
    if (last_stage >= 0 && found_event(&matches->found, last_stage, last_handle) < 0) return -1;
    match->end = matches->found.events;
    return 0;
}

void matches_empty(Matches *matches) {
    matches->size = 0;
    found_empty(&matches->found);
}

void matches_free(Matches *matches) {
    release_memory(matches->items);
    found_free(&matches->found);
}
