/* SPDX-License-Identifier: Apache-2.0 */
/* The positions of events by the list that their type's code belongs to. Mirror: engines/lists/frame.py. */
#include "lists/join.h"

typedef struct {
    int64_t *items;
    Py_ssize_t size, room;
} Positions;

/* The list of each code: `lists` by code, negative or unknown for none. */
typedef struct {
    const int32_t *lists;
    uint8_t *belongs; /* by code whether it has a list; the last item is for all other codes */
    uint32_t known;
    int32_t count;
} Sorting;

/* Return which of the next codes belong to a list: without a branch, as few do, unpredictably. */
static uint64_t belonging(const Sorting *sorting, const int32_t *codes, int count) {
    uint64_t found = 0;
    for (int i = 0; i < count; i++) {
        uint32_t code = (uint32_t)codes[i];
        found |= (uint64_t)sorting->belongs[code < sorting->known ? code : sorting->known] << i;
    }
    return found;
}

static int sort_codes(
    const Sorting *sorting, const int32_t *codes, Py_ssize_t begin, Py_ssize_t end,
    Positions *found) {
    for (Py_ssize_t base = begin; base < end; base += BATCH) {
        int count = end - base < BATCH ? (int)(end - base) : BATCH;
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

/* Sort the codes of some stretches, or all of them. */
static int sort_stretches(
    const Sorting *sorting, const Array *codes, const Array *low, const Array *high,
    Positions *found) {
    if (low->items == NULL) return sort_codes(sorting, codes->items, 0, codes->size, found);
    for (Py_ssize_t i = 0; i < low->size; i++) {
        Py_ssize_t begin = (Py_ssize_t)((const int64_t *)low->items)[i];
        Py_ssize_t end = (Py_ssize_t)((const int64_t *)high->items)[i];
        if (begin < 0 || end > codes->size) {
            PyErr_SetString(PyExc_ValueError, "expected stretches of the codes");
            return -1;
        }
        if (sort_codes(sorting, codes->items, begin, end, found) < 0) return -1;
    }
    return 0;
}

static PyObject *split(Sorting *sorting, const Array *codes, const Array *low, const Array *high) {
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
        sort_stretches(sorting, codes, low, high, found) < 0 ? NULL : PyTuple_New(sorting->count);
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

PyObject *module_split(PyObject *module, PyObject *args) {
    PyObject *given[4], *result = NULL;
    static const Py_ssize_t widths[4] = {4, 4, 8, 8};
    Array arrays[4] = {0}; /* codes, lists, low, high */
    int count, opened = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOiOO", &given[0], &given[1], &count, &given[2], &given[3]))
        return NULL;
    while (opened < 4 && array_of(given[opened], widths[opened], &arrays[opened]) == 0) opened++;
    if (opened == 4 && arrays[2].size != arrays[3].size)
        PyErr_SetString(PyExc_ValueError, "expected an end for each stretch");
    else if (opened == 4) {
        Sorting sorting = {
            .lists = arrays[1].items, .known = (uint32_t)arrays[1].size, .count = count};
        result = split(&sorting, &arrays[0], &arrays[2], &arrays[3]);
    }
    while (opened > 0) array_close(&arrays[--opened]);
    return result;
}
