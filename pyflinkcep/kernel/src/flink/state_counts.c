/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of what stored states hold, without making keys of them.
 * Mirror: engines/flink/stored_state.py.
 */
#include "flink/kernel.h"

typedef struct {
    const int64_t *items;
    Py_ssize_t at, end;
} Cursor;

typedef struct {
    int64_t held, largest, oldest; /* see StateCounts in Python */
    int64_t *by_stage;
    int32_t stages;
    int32_t *stage_of; /* by node of the current key */
    Py_ssize_t nodes, room;
} Totals;

/* Return the next number; INT64_MIN after the last, where no count can be. */
static int64_t next_number(Cursor *cursor) {
    return cursor->at < cursor->end ? cursor->items[cursor->at++] : INT64_MIN;
}

/* Pass by numbers; return whether there were so many. */
static bool pass(Cursor *cursor, int64_t items, int64_t width) {
    if (items < 0 || items > (cursor->end - cursor->at) / width) return false;
    cursor->at += (Py_ssize_t)(items * width);
    return true;
}

/* Read the nodes of an entry, for their stages. */
static int read_nodes(Cursor *cursor, Totals *totals) {
    if (!pass(cursor, 4, 1)) return 0;
    int64_t count = next_number(cursor);
    if (count < 0 || count > (cursor->end - cursor->at) / 3) return 0;
    int32_t *stage_of = reserve(
        totals->stage_of, &totals->room, totals->nodes + (Py_ssize_t)count, sizeof(int32_t));
    if (stage_of == NULL) return -1;
    totals->stage_of = stage_of;
    for (int64_t i = 0; i < count; i++) {
        int64_t stage = next_number(cursor);
        bool good = stage >= 0 && stage < totals->stages;
        stage_of[totals->nodes++] = good ? (int32_t)stage : NO_STATE;
        cursor->at += 2;
    }
    return 1;
}

/* Count partial matches, or matches held back if `by_stage` is NULL. */
static void count_partials(Cursor *cursor, Totals *totals, int64_t *by_stage, int64_t *number) {
    int64_t count = next_number(cursor);
    if (count < 0 || count > (cursor->end - cursor->at) / 5) return;
    for (int64_t i = 0; i < count; i++, cursor->at += 5) {
        const int64_t *partial = cursor->items + cursor->at;
        int64_t node = partial[2];
        if (partial[4] == NO_STATE) continue; /* the start state */
        (*number)++;
        if (partial[3] < totals->oldest) totals->oldest = partial[3];
        bool known = by_stage != NULL && node >= 0 && node < totals->nodes;
        if (known && totals->stage_of[node] >= 0) by_stage[totals->stage_of[node]]++;
    }
}

/* Count what a key holds. Numbers that no key could have end it: reading them will refuse them. */
static int count_key(Cursor cursor, Totals *totals) {
    int64_t number = 0;
    totals->nodes = 0;
    if (!pass(&cursor, next_number(&cursor), 1) || !pass(&cursor, 2, 1) ||
        !pass(&cursor, next_number(&cursor), 2))
        return 0;
    int64_t entries = next_number(&cursor);
    for (int64_t i = 0; i < entries; i++) {
        int status = read_nodes(&cursor, totals);
        if (status <= 0) return status;
    }
    for (Py_ssize_t i = 0; i < totals->nodes; i++)
        if (!pass(&cursor, next_number(&cursor), 3)) return 0;
    count_partials(&cursor, totals, totals->by_stage, &number);
    if (number > totals->largest) totals->largest = number;
    count_partials(&cursor, totals, NULL, &totals->held);
    return 0;
}

static PyObject *totals_result(const Totals *totals) {
    PyObject *result = PyTuple_New(3 + totals->stages);
    for (Py_ssize_t i = 0; i < 3 + totals->stages && result != NULL; i++) {
        int64_t head[] = {totals->held, totals->largest, totals->oldest};
        PyObject *number = PyLong_FromLongLong(i < 3 ? head[i] : totals->by_stage[i - 3]);
        if (number == NULL || PyTuple_SetItem(result, i, number) < 0) Py_CLEAR(result);
    }
    return result;
}

PyObject *kernel_count_states(Kernel *kernel, PyObject *args) {
    PyObject *numbers_array, *lengths_array, *result = NULL;
    Array numbers = {0}, lengths = {0};
    Totals totals = {.oldest = INT64_MAX};
    if (!PyArg_ParseTuple(args, "OO", &numbers_array, &lengths_array)) return NULL;
    totals.stages = (int32_t)PyTuple_Size(kernel->pattern.stage_names);
    totals.by_stage = allocate_zeros(totals.stages, sizeof(int64_t));
    int status = totals.by_stage == NULL ? -1 : 0;
    if (status == 0 &&
        (array_of(numbers_array, 8, &numbers) < 0 || array_of(lengths_array, 8, &lengths) < 0))
        status = -1;
    const int64_t *length = lengths.items;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < lengths.size && status == 0; i++) {
        if (length[i] < 0 || length[i] > numbers.size - at) {
            PyErr_SetString(PyExc_ValueError, "expected lengths that add up to the numbers");
            status = -1;
            break;
        }
        status = count_key((Cursor){numbers.items, at, at + (Py_ssize_t)length[i]}, &totals);
        at += (Py_ssize_t)length[i];
    }
    if (status == 0) result = totals_result(&totals);
    if (result == NULL) name_memory_error(kernel, 0);
    release_memory(totals.by_stage);
    release_memory(totals.stage_of);
    array_close(&numbers);
    array_close(&lengths);
    return result;
}
