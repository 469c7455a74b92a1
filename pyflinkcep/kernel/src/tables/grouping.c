/* SPDX-License-Identifier: Apache-2.0 */
/* Events put together by the numbers of their keys. Mirror: tables/order.py. */
#include "tables/grouping.h"

#include "base/lock.h"

#include <string.h>

static const volatile bool goes_on = false;

static PyObject *sizes_differ(void) {
    PyErr_SetString(PyExc_ValueError, "arrays do not fit together");
    return NULL;
}

/* --- places by code */

enum { AT_ONCE = 1 << 12, MOST_COLUMNS = 8 };

typedef struct {
    Py_ssize_t width, columns;
    Py_buffer sources[MOST_COLUMNS], targets[MOST_COLUMNS];
} Moved;

static void moved_close(Moved *moved) {
    for (Py_ssize_t i = 0; i < moved->columns; i++) {
        if (moved->sources[i].obj != NULL) PyBuffer_Release(&moved->sources[i]);
        if (moved->targets[i].obj != NULL) PyBuffer_Release(&moved->targets[i]);
    }
}

/* Open columns of `size` events, to be written to arrays with at least `*most` places. */
static int moved_open(
    Moved *moved, PyObject *sources, PyObject *targets, Py_ssize_t size, Py_ssize_t *most) {
    Py_ssize_t count = PyTuple_Size(sources);
    *most = PY_SSIZE_T_MAX;
    if (count > MOST_COLUMNS || PyTuple_Size(targets) != count) {
        sizes_differ();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_buffer *from = &moved->sources[i], *to = &moved->targets[i];
        moved->columns = i + 1;
        if (PyObject_GetBuffer(PyTuple_GetItem(sources, i), from, PyBUF_C_CONTIGUOUS) < 0 ||
            PyObject_GetBuffer(
                PyTuple_GetItem(targets, i), to, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0)
            return -1;
        Py_ssize_t width = from->itemsize;
        bool is_known = width == 1 || width == 4 || width == 8;
        if (!is_known || to->itemsize != width || from->len / width != size) {
            sizes_differ();
            return -1;
        }
        if (to->len / width < *most) *most = to->len / width;
    }
    return 0;
}

#define MOVE(type)                                                                                 \
    for (Py_ssize_t i = 0; i < count; i++) ((type *)to)[places[i]] = ((const type *)from)[i]

static void move_column(
    const void *from, void *to, Py_ssize_t width, const int64_t *places, Py_ssize_t count) {
    switch (width) {
    case 1: MOVE(uint8_t); break;
    case 4: MOVE(uint32_t); break;
    default: MOVE(uint64_t);
    }
}

/* Return whether all codes, and the places that they lead to, are there. */
static bool move_events(
    const Moved *moved, const Array *codes, int64_t *starts, Py_ssize_t known, Py_ssize_t most) {
    int64_t places[AT_ONCE];
    const int32_t *code = codes->items;
    for (Py_ssize_t begin = 0; begin < codes->size; begin += AT_ONCE) {
        Py_ssize_t count = codes->size - begin < AT_ONCE ? codes->size - begin : AT_ONCE;
        for (Py_ssize_t i = 0; i < count; i++) {
            if ((uint32_t)code[begin + i] >= (uint64_t)known) return false;
            int64_t place = starts[code[begin + i]]++;
            if ((uint64_t)place >= (uint64_t)most) return false;
            places[i] = place;
        }
        for (Py_ssize_t column = 0; column < moved->columns; column++) {
            Py_ssize_t width = moved->sources[column].itemsize;
            const char *from = (const char *)moved->sources[column].buf + begin * width;
            move_column(from, moved->targets[column].buf, width, places, count);
        }
    }
    return true;
}

PyObject *module_scatter(PyObject *module, PyObject *args) {
    PyObject *given[2], *sources, *targets, *result = NULL;
    Array codes = {0}, starts = {0};
    Moved moved = {0};
    Py_ssize_t most;
    (void)module;
    if (!PyArg_ParseTuple(
            args, "OOO!O!", &given[0], &given[1], &PyTuple_Type, &sources, &PyTuple_Type, &targets))
        return NULL;
    if (array_of(given[0], 4, &codes) == 0 && writable_of(given[1], 8, &starts) == 0 &&
        moved_open(&moved, sources, targets, codes.size, &most) == 0) {
        lock_leave(&goes_on);
        bool fits = move_events(&moved, &codes, starts.buffer.buf, starts.size, most);
        lock_take();
        result = fits ? Py_NewRef(Py_None) : sizes_differ();
    }
    moved_close(&moved);
    array_close(&codes);
    array_close(&starts);
    return result;
}

PyObject *module_least(PyObject *module, PyObject *args) {
    PyObject *given[3], *result = NULL;
    Array codes = {0}, times = {0}, least = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2])) return NULL;
    if (array_of(given[0], 4, &codes) == 0 && array_of(given[1], 8, &times) == 0 &&
        writable_of(given[2], 8, &least) == 0) {
        const int32_t *code = codes.items;
        const int64_t *time = times.items;
        int64_t *own = least.buffer.buf;
        bool fits = codes.size == times.size;
        lock_leave(&goes_on);
        for (Py_ssize_t i = 0; i < codes.size && fits; i++) {
            fits = (uint32_t)code[i] < (uint64_t)least.size;
            if (fits && time[i] < own[code[i]]) own[code[i]] = time[i];
        }
        lock_take();
        result = fits ? Py_NewRef(Py_None) : sizes_differ();
    }
    array_close(&codes);
    array_close(&times);
    array_close(&least);
    return result;
}

/* --- the order within each key */

/* Sort places by their times, stably: runs that are there already are merged. */
static void sort_places(const int64_t *times, int32_t *places, int32_t *other, Py_ssize_t size) {
    enum { SHORT = 16 };
    for (Py_ssize_t begin = 0; begin < size; begin += SHORT) {
        Py_ssize_t end = size - begin < SHORT ? size : begin + SHORT;
        for (Py_ssize_t i = begin + 1; i < end; i++) {
            int32_t own = places[i];
            Py_ssize_t at = i;
            for (; at > begin && times[places[at - 1]] > times[own]; at--)
                places[at] = places[at - 1];
            places[at] = own;
        }
    }
    for (Py_ssize_t width = SHORT; width < size; width *= 2)
        for (Py_ssize_t begin = 0; begin + width < size; begin += 2 * width) {
            Py_ssize_t middle = begin + width, left = 0, right = middle, to = begin;
            Py_ssize_t end = size - middle < width ? size : middle + width;
            if (times[places[middle - 1]] <= times[places[middle]]) continue;
            memcpy(other, places + begin, (size_t)width * sizeof(int32_t));
            while (left < width && right < end)
                places[to++] =
                    times[places[right]] < times[other[left]] ? places[right++] : other[left++];
            memcpy(places + to, other + left, (size_t)(width - left) * sizeof(int32_t));
        }
}

static bool are_sorted(const int64_t *times, Py_ssize_t size) {
    for (Py_ssize_t i = 1; i < size; i++)
        if (times[i] < times[i - 1]) return false;
    return true;
}

/* Return whether the bounds are those of stretches that cover all times. */
static bool cover(const Array *bounds, const Array *times) {
    const int64_t *bound = bounds->items;
    if (bounds->size < 1 || bound[0] != 0 || bound[bounds->size - 1] != times->size) return false;
    for (Py_ssize_t i = 1; i < bounds->size; i++)
        if (bound[i] < bound[i - 1]) return false;
    return times->size <= INT32_MAX;
}

/* Write the order to `places`; return whether it is another one than that of the events. */
static bool order_stretches(
    const Array *bounds, const Array *times, int32_t *places, int32_t *other) {
    const int64_t *bound = bounds->items, *time = times->items;
    bool moves = false;
    for (Py_ssize_t i = 0; i < times->size; i++) places[i] = (int32_t)i;
    for (Py_ssize_t i = 0; i + 1 < bounds->size; i++) {
        Py_ssize_t begin = (Py_ssize_t)bound[i], size = (Py_ssize_t)bound[i + 1] - begin;
        if (are_sorted(time + begin, size)) continue;
        moves = true;
        sort_places(time, places + begin, other, size);
    }
    return moves;
}

static PyObject *order_within(const Array *bounds, const Array *times) {
    int32_t *places = allocate((size_t)times->size * sizeof(int32_t)), *other = NULL;
    if (places != NULL) other = allocate((size_t)times->size * sizeof(int32_t));
    PyObject *result = NULL;
    if (other != NULL) {
        lock_leave(&goes_on);
        bool moves = order_stretches(bounds, times, places, other);
        lock_take();
        result = moves ? bytes_of(places, times->size, sizeof(int32_t)) : Py_NewRef(Py_None);
    }
    release_memory(places);
    release_memory(other);
    return result;
}

PyObject *module_order_within(PyObject *module, PyObject *args) {
    PyObject *given[2], *result = NULL;
    Array bounds = {0}, times = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &given[0], &given[1])) return NULL;
    if (array_of(given[0], 8, &bounds) == 0 && array_of(given[1], 8, &times) == 0)
        result = cover(&bounds, &times) ? order_within(&bounds, &times) : sizes_differ();
    array_close(&bounds);
    array_close(&times);
    return result;
}
