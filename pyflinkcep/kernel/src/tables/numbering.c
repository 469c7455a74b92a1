/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for values: 0 for the first one and so on. Mirror: codes in matching/keys.py. */
#include "tables/grouping.h"

#include "base/lock.h"
#include "base/objects.h"

/* Of a code: whether any event has it, and how many kept ones do. */
static const uint32_t SEEN = (uint32_t)1 << 31;

typedef struct {
    PyObject_HEAD
    int64_t least;    /* of the values, if their range is known: a code is what is above it */
    Py_ssize_t range; /* 0 if it is not */
    int32_t *order;   /* the codes by the first events that have them, if the range is known */
    int32_t *codes; /* by slot of a table of hashes; -1 for none */
    int64_t *slots; /* the value in each slot */
    Py_ssize_t capacity; /* of that table: a power of two */
    int64_t *values;     /* by code */
    uint32_t *marks;     /* by code */
    Py_ssize_t size, value_room, mark_room; /* codes that events have */
} Numbering;

enum { FIRST_CAPACITY = 1 << 12 };


/* Let a new value have the next code. */
static int add_value(Numbering *own, int64_t value, int32_t *code) {
    if (own->size == INT32_MAX) {
        no_memory();
        return -1;
    }
    int64_t *values = reserve(own->values, &own->value_room, own->size + 1, sizeof(int64_t));
    if (values == NULL) return -1;
    own->values = values;
    uint32_t *marks = reserve(own->marks, &own->mark_room, own->size + 1, sizeof(uint32_t));
    if (marks == NULL) return -1;
    own->marks = marks;
    own->values[own->size] = value;
    own->marks[own->size] = SEEN;
    *code = (int32_t)own->size++;
    return 0;
}

/* --- values of an unknown range */

static size_t slot_of(const Numbering *own, int64_t value) {
    uint64_t mixed = (uint64_t)value;
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    mixed ^= mixed >> 29;
    size_t last = (size_t)own->capacity - 1, slot = (size_t)mixed & last;
    while (own->codes[slot] >= 0 && own->slots[slot] != value) slot = (slot + 1) & last;
    return slot;
}

static int make_table(Numbering *own, Py_ssize_t capacity) {
    int32_t *codes = allocate((size_t)capacity * sizeof(int32_t));
    int64_t *slots = codes == NULL ? NULL : allocate((size_t)capacity * sizeof(int64_t));
    if (slots == NULL) {
        release_memory(codes);
        return -1;
    }
    release_memory(own->codes);
    release_memory(own->slots);
    own->codes = codes;
    own->slots = slots;
    own->capacity = capacity;
    for (Py_ssize_t i = 0; i < capacity; i++) codes[i] = -1;
    for (Py_ssize_t code = 0; code < own->size; code++) {
        size_t slot = slot_of(own, own->values[code]);
        slots[slot] = own->values[code];
        codes[slot] = (int32_t)code;
    }
    return 0;
}

static int code_by_hash(Numbering *own, int64_t value, int32_t *code) {
    size_t slot = slot_of(own, value);
    *code = own->codes[slot];
    if (*code >= 0) return 0;
    if (add_value(own, value, code) < 0) return -1;
    own->slots[slot] = value;
    own->codes[slot] = *code;
    return 2 * own->size > own->capacity ? make_table(own, 2 * own->capacity) : 0;
}

/* --- numbers for all */

/* Which events are kept: all, or those of some kinds. */
typedef struct {
    const uint8_t *kinds;
    const bool *needed; /* by kind */
} Kept;

static bool is_kept(const Kept *kept, Py_ssize_t event) {
    return kept->kinds == NULL || kept->needed[kept->kinds[event]];
}

static Py_ssize_t number_by_hash(
    Numbering *own, const Array *values, const Kept *kept, int32_t *codes, int32_t *places) {
    const int64_t *value = values->items;
    Py_ssize_t written = 0;
    for (Py_ssize_t i = 0; i < values->size; i++) {
        int32_t code;
        if (code_by_hash(own, value[i], &code) < 0) return -1;
        bool stays = is_kept(kept, i);
        codes[written] = code;
        if (places != NULL) places[written] = (int32_t)i;
        written += stays;
        own->marks[code] += stays;
    }
    return written;
}

#define FETCH_MARK(type)                                                                           \
    if (is_far && i + AHEAD < values->size) {                                                      \
        uint64_t soon = (uint64_t)((const type *)values->items)[i + AHEAD] - (uint64_t)own->least; \
        SOON_WRITTEN(own->marks + (soon < (uint64_t)own->range ? soon : 0));                       \
    }

/* The same of values of a known range, without a branch that processors would have to guess. */
#define NUMBER_IN_RANGE(type)                                                                      \
    for (Py_ssize_t i = 0; i < values->size; i++) {                                                \
        FETCH_MARK(type)                                                                           \
        uint64_t code = (uint64_t)((const type *)values->items)[i] - (uint64_t)own->least;         \
        if (code >= (uint64_t)own->range) return out_of_range();                                   \
        uint32_t mark = own->marks[code];                                                          \
        bool stays = is_kept(kept, i);                                                             \
        own->order[own->size] = (int32_t)code;                                                     \
        own->size += mark == 0;                                                                    \
        own->marks[code] = (mark | SEEN) + stays;                                                  \
        codes[written] = (int32_t)code;                                                            \
        if (places != NULL) places[written] = (int32_t)i;                                          \
        written += stays;                                                                          \
    }

static Py_ssize_t out_of_range(void) {
    lock_take();
    PyErr_SetString(PyExc_ValueError, "a value is out of range");
    return -1;
}

static Py_ssize_t number_in_range(
    Numbering *own, const Array *values, Py_ssize_t width, const Kept *kept, int32_t *codes,
    int32_t *places) {
    Py_ssize_t written = 0;
    bool is_far = own->range > FEW;
    if (width == sizeof(int32_t))
        NUMBER_IN_RANGE(int32_t)
    else
        NUMBER_IN_RANGE(int64_t)
    return written;
}

/* Number values that were opened: kinds may be missing, places too. */
static PyObject *add_opened(
    Numbering *own, Py_ssize_t width, const Array *values, const Array *kinds, const Array *needed,
    const Array *codes, const Array *places) {
    enum { KINDS = 1 << 8 };
    Py_ssize_t size = values->size;
    bool fits = own->marks != NULL || own->codes != NULL;
    fits = fits && codes->size >= size && size <= INT32_MAX;
    if (kinds->items != NULL) fits = fits && kinds->size == size && needed->size == KINDS;
    if (places->items != NULL) fits = fits && places->size >= size;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "values, kinds, codes and places differ in length");
        return NULL;
    }
    Kept kept = {kinds->items, needed->items};
    int32_t *code = codes->buffer.buf, *place = places->buffer.buf;
    lock_leave();
    Py_ssize_t written = own->range > 0 ? number_in_range(own, values, width, &kept, code, place)
                                        : number_by_hash(own, values, &kept, code, place);
    lock_take();
    return written < 0 ? NULL : PyLong_FromSsize_t(written);
}

/* Return how many bytes an integer of an array has: 4, or else what is expected of it. */
static Py_ssize_t width_of(const Numbering *own, PyObject *values) {
    Py_buffer buffer;
    if (own->range == 0 || PyObject_GetBuffer(values, &buffer, PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return sizeof(int64_t);
    }
    bool is_narrow = buffer.itemsize == sizeof(int32_t);
    PyBuffer_Release(&buffer);
    return is_narrow ? sizeof(int32_t) : sizeof(int64_t);
}

/*
 * add(values, kinds, needed, codes, places) -> how many values are kept
 *
 * Number all values. Write the codes of those whose kind is needed, and their places among all, to
 * the beginning of two arrays of as many int32 as there are values.
 */
static PyObject *numbering_add(Numbering *own, PyObject *args) {
    PyObject *given[5], *result = NULL;
    Array arrays[5] = {0};
    Py_ssize_t widths[5] = {8, 1, 1, 4, 4};
    int opened = 0;
    if (!PyArg_ParseTuple(args, "OOOOO", &given[0], &given[1], &given[2], &given[3], &given[4]))
        return NULL;
    widths[0] = width_of(own, given[0]);
    for (; opened < 5; opened++) {
        bool is_written = opened == 3 || (opened == 4 && given[4] != Py_None);
        int status = is_written ? writable_of(given[opened], widths[opened], &arrays[opened])
                                : array_of(given[opened], widths[opened], &arrays[opened]);
        if (status < 0) break;
    }
    if (opened == 5)
        result =
            add_opened(own, widths[0], &arrays[0], &arrays[1], &arrays[2], &arrays[3], &arrays[4]);
    for (int i = 0; i < 5; i++) array_close(&arrays[i]);
    return result;
}

/*
 * found() -> (values, counts, order), as bytes: by code the value, None if it is that above the
 * least, and how many kept events have it; the codes by their first events, None if by number.
 */
static PyObject *numbering_found(Numbering *own, PyObject *unused) {
    (void)unused;
    Py_ssize_t size = own->range > 0 ? own->range : own->size;
    PyObject *counts = PyBytes_FromStringAndSize(NULL, size * (Py_ssize_t)sizeof(uint32_t));
    if (counts == NULL) return NULL;
    uint32_t *count = (uint32_t *)PyBytes_AsString(counts);
    for (Py_ssize_t i = 0; i < size; i++) count[i] = own->marks[i] & ~SEEN;
    if (own->range == 0)
        return Py_BuildValue("NNO", bytes_of(own->values, size, 8), counts, Py_None);
    return Py_BuildValue("ONN", Py_None, counts, bytes_of(own->order, own->size, 4));
}

/* Numbering(least, range): for integers from the least on, or for any if the range is 0. */
static int numbering_init(Numbering *own, PyObject *args, PyObject *keywords) {
    long long least;
    Py_ssize_t range;
    (void)keywords;
    if (own->codes != NULL || own->marks != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a numbering is made once");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "Ln", &least, &range)) return -1;
    if (range < 0) {
        PyErr_SetString(PyExc_ValueError, "expected a range from 0");
        return -1;
    }
    own->least = least;
    own->range = range;
    if (range == 0) return make_table(own, FIRST_CAPACITY);
    if (range > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "expected a range of int32");
        return -1;
    }
    own->order = allocate((size_t)(range + 1) * sizeof(int32_t));
    if (own->order != NULL) own->marks = allocate_zeros(range, sizeof(uint32_t));
    return own->marks == NULL ? -1 : 0;
}

static void numbering_dealloc(Numbering *own) {
    PyTypeObject *type = Py_TYPE((PyObject *)own);
    release_memory(own->order);
    release_memory(own->codes);
    release_memory(own->slots);
    release_memory(own->values);
    release_memory(own->marks);
    PyObject_Free(own);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef numbering_methods[] = {
    {"add", (PyCFunction)numbering_add, METH_VARARGS, "number values"},
    {"found", (PyCFunction)numbering_found, METH_NOARGS,
        "return values, counts and order of codes"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot numbering_slots[] = {
    {Py_tp_doc, "Numbers for values, in the order of their first occurrence."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(numbering_init)},
    {Py_tp_dealloc, AS_SLOT(numbering_dealloc)},
    {Py_tp_methods, numbering_methods},
    {0, NULL},
};

PyType_Spec numbering_spec = {
    .name = "pyflinkcep.kernel._kernel.Numbering",
    .basicsize = sizeof(Numbering),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = numbering_slots,
};
