/* SPDX-License-Identifier: Apache-2.0 */
/* Events put together by the numbers of their keys. Mirror: tables/order.py. */
#include "tables/grouping.h"

#include "base/lock.h"

#include <string.h>


static PyObject *sizes_differ(void) {
    PyErr_SetString(PyExc_ValueError, "arrays do not fit together");
    return NULL;
}

/* --- places by code */

enum { AT_ONCE = 1 << 8, MOST_COLUMNS = 8 };

/* Columns of events, and records that have them all, of which each is in one place of memory. */
typedef struct {
    Py_ssize_t columns;
    Py_buffer sources[MOST_COLUMNS];
    Py_ssize_t offsets[MOST_COLUMNS]; /* in a record */
    Py_buffer records;
} Moved;

static void moved_close(Moved *moved) {
    for (Py_ssize_t i = 0; i < moved->columns; i++)
        if (moved->sources[i].obj != NULL) PyBuffer_Release(&moved->sources[i]);
    if (moved->records.obj != NULL) PyBuffer_Release(&moved->records);
}

/* Open columns of `size` events, to be written to records from some offsets on. */
static int moved_open(
    Moved *moved, PyObject *sources, PyObject *records, PyObject *offsets, Py_ssize_t size) {
    Py_ssize_t count = PyTuple_Size(sources);
    if (count > MOST_COLUMNS || PyTuple_Size(offsets) != count) {
        sizes_differ();
        return -1;
    }
    if (PyObject_GetBuffer(records, &moved->records, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_buffer *from = &moved->sources[i];
        moved->columns = i + 1;
        if (PyObject_GetBuffer(PyTuple_GetItem(sources, i), from, PyBUF_C_CONTIGUOUS) < 0)
            return -1;
        Py_ssize_t width = from->itemsize, offset = PyLong_AsSsize_t(PyTuple_GetItem(offsets, i));
        if (offset == -1 && PyErr_Occurred()) return -1;
        bool is_known = width == 1 || width == 2 || width == 4 || width == 8;
        bool is_inside = offset >= 0 && offset <= moved->records.itemsize - width;
        if (!is_known || !is_inside || from->len / width != size) {
            sizes_differ();
            return -1;
        }
        moved->offsets[i] = offset;
    }
    return 0;
}

#define MOVE(width)                                                                                \
    for (Py_ssize_t i = 0; i < count; i++)                                                         \
    memcpy(to + places[i] * stride, from + events[i] * (width), width)

static void move_column(
    const char *from, char *to, Py_ssize_t width, Py_ssize_t stride, const int32_t *events,
    const int32_t *places, Py_ssize_t count) {
    switch (width) {
    case 1: MOVE(1); break;
    case 2: MOVE(2); break;
    case 4: MOVE(4); break;
    default: MOVE(8);
    }
}

/* Move the events whose places are among the records; return whether all codes are known. */
static bool move_events(
    const Moved *moved, const Array *codes, int32_t *starts, Py_ssize_t known, int32_t first) {
    int32_t events[AT_ONCE], places[AT_ONCE];
    const int32_t *code = codes->items;
    char *records = moved->records.buf;
    Py_ssize_t stride = moved->records.itemsize, most = moved->records.len / stride;
    bool is_far = known > FEW;
    for (Py_ssize_t begin = 0; begin < codes->size; begin += AT_ONCE) {
        Py_ssize_t size = codes->size - begin < AT_ONCE ? codes->size - begin : AT_ONCE, count = 0;
        for (Py_ssize_t i = 0; i < size; i++) {
            if (is_far && begin + i + AHEAD < codes->size) {
                uint32_t soon = (uint32_t)code[begin + i + AHEAD];
                SOON_WRITTEN(starts + (soon < (uint64_t)known ? soon : 0));
            }
            if ((uint32_t)code[begin + i] >= (uint64_t)known) return false;
            uint32_t place = (uint32_t)starts[code[begin + i]] - (uint32_t)first;
            bool is_among = place < (uint64_t)most;
            starts[code[begin + i]] += is_among;
            events[count] = (int32_t)i;
            places[count] = (int32_t)place;
            SOON_WRITTEN(records + (is_among ? place * stride : 0));
            count += is_among;
        }
        for (Py_ssize_t column = 0; column < moved->columns; column++) {
            Py_ssize_t width = moved->sources[column].itemsize;
            const char *from = (const char *)moved->sources[column].buf + begin * width;
            char *to = records + moved->offsets[column];
            move_column(from, to, width, stride, events, places, count);
        }
    }
    return true;
}

PyObject *module_scatter(PyObject *module, PyObject *args) {
    PyObject *given[2], *sources, *records, *offsets, *result = NULL;
    Array codes = {0}, starts = {0};
    Moved moved = {0};
    int first;
    (void)module;
    if (!PyArg_ParseTuple(
            args, "OOO!OO!i", &given[0], &given[1], &PyTuple_Type, &sources, &records,
            &PyTuple_Type, &offsets, &first))
        return NULL;
    if (array_of(given[0], 4, &codes) == 0 && writable_of(given[1], 4, &starts) == 0 &&
        moved_open(&moved, sources, records, offsets, codes.size) == 0) {
        lock_leave();
        bool fits = move_events(&moved, &codes, starts.buffer.buf, starts.size, first);
        lock_take();
        result = fits ? Py_NewRef(Py_None) : sizes_differ();
    }
    moved_close(&moved);
    array_close(&codes);
    array_close(&starts);
    return result;
}

#define ADD_BITS(type)                                                                             \
    for (Py_ssize_t i = 0; i < values->size; i++) {                                                \
        uint64_t place = (uint64_t)((const type *)values->items)[i] - (uint64_t)least;             \
        fits &= place < (uint64_t)table->size;                                                     \
        own[i] |= known[place < (uint64_t)table->size ? place : 0];                                \
    }

static bool add_bits(
    const Array *values, Py_ssize_t width, int64_t least, const Array *table, uint8_t *own) {
    const uint8_t *known = table->items;
    bool fits = table->size > 0;
    if (!fits) return false;
    if (width == 4)
        ADD_BITS(int32_t)
    else
        ADD_BITS(int64_t)
    return fits;
}

PyObject *module_add_bits(PyObject *module, PyObject *args) {
    PyObject *given[3], *result = NULL;
    Array values = {0}, table = {0}, bits = {0};
    long long least;
    Py_ssize_t width;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnLOO", &given[0], &width, &least, &given[1], &given[2]))
        return NULL;
    if (array_of(given[0], width, &values) == 0 && array_of(given[1], 1, &table) == 0 &&
        writable_of(given[2], 1, &bits) == 0) {
        bool fits = values.size == bits.size && (width == 4 || width == 8);
        lock_leave();
        fits = fits && add_bits(&values, width, least, &table, bits.buffer.buf);
        lock_take();
        result = fits ? Py_NewRef(Py_None) : sizes_differ();
    }
    array_close(&values);
    array_close(&table);
    array_close(&bits);
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
        lock_leave();
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
        lock_leave();
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
