/* SPDX-License-Identifier: Apache-2.0 */
/* The positions of events by the list that their type's code belongs to. Mirror: eventlists/lists.py. */
#include "join.h"

typedef struct {
    int64_t *items;
    Py_ssize_t size, room;
} Positions;

/* What belongs to which list: `lists` by code, negative or unknown for none. */
typedef struct {
    const int32_t *lists;
    uint8_t *belongs; /* by code whether it has a list; after the last for all other codes */
    uint32_t known;
    int32_t count;
} Sorting;

/* Return which of the next codes belong to a list: no branch, as few do and none can tell which. */
static uint64_t belonging(const Sorting *sorting, const int32_t *codes, int count) {
    uint64_t found = 0;
    for (int i = 0; i < count; i++) {
        uint32_t code = (uint32_t)codes[i];
        found |= (uint64_t)sorting->belongs[code < sorting->known ? code : sorting->known] << i;
    }
    return found;
}

static int sort_codes(
    const Sorting *sorting, const int32_t *codes, Py_ssize_t size, Positions *found) {
    for (Py_ssize_t base = 0; base < size; base += BATCH) {
        int count = size - base < BATCH ? (int)(size - base) : BATCH;
        uint64_t rest = belonging(sorting, codes + base, count);
        for (; rest != 0; rest &= rest - 1) {
            Py_ssize_t at = base + lowest_bit(rest);
            Positions *own = &found[sorting->lists[codes[at]]];
            int64_t *items = reserve(own->items, &own->room, own->size + 1, sizeof(int64_t));
            if (items == NULL) return -1;
            own->items = items;
            own->items[own->size++] = at;
        }
    }
    return 0;
}

static PyObject *split(Sorting *sorting, const int32_t *codes, Py_ssize_t size) {
    sorting->belongs = allocate_zeros((Py_ssize_t)sorting->known + 1, 1);
    if (sorting->belongs == NULL) return NULL;
    for (uint32_t code = 0; code < sorting->known; code++)
        sorting->belongs[code] = sorting->lists[code] >= 0 && sorting->lists[code] < sorting->count;
    Positions *found = allocate_zeros(sorting->count, sizeof(Positions));
    if (found == NULL) {
        release_memory(sorting->belongs);
        return NULL;
    }
    PyObject *result =
        sort_codes(sorting, codes, size, found) < 0 ? NULL : PyTuple_New(sorting->count);
    for (int32_t n = 0; n < sorting->count; n++) {
        PyObject *own =
            result == NULL ? NULL : bytes_of(found[n].items, found[n].size, sizeof(int64_t));
        if (result != NULL && (own == NULL || PyTuple_SetItem(result, n, own) < 0))
            Py_CLEAR(result);
        release_memory(found[n].items);
    }
    release_memory(found);
    release_memory(sorting->belongs);
    return result;
}

/* split(codes, lists, count): the positions of events by the list that their code belongs to */
PyObject *module_split(PyObject *module, PyObject *args) {
    PyObject *given, *numbers, *result = NULL;
    Array codes = {0}, lists = {0};
    int count;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOi", &given, &numbers, &count)) return NULL;
    if (array_of(given, 4, &codes) == 0 && array_of(numbers, 4, &lists) == 0)
        result = split(
            &(Sorting){.lists = lists.items, .known = (uint32_t)lists.size, .count = count},
            codes.items, codes.size);
    array_close(&codes);
    array_close(&lists);
    return result;
}
