/* SPDX-License-Identifier: Apache-2.0 */
/* The events of keys that have all that a match needs. Mirror: none, without it all are sorted. */
#include "tables/needs.h"

#include "base/arrays.h"
#include "base/lock.h"

typedef struct {
    Array numbers, bits, uses;
    uint8_t *has; /* by place, what the events of a key have: at times of several keys */
    int digits;
    int32_t *rows;
    Py_ssize_t size;
} Needs;

static size_t place_of(const Needs *own, Py_ssize_t row) {
    uint64_t number = (uint64_t)((const int64_t *)own->numbers.items)[row];
    return (size_t)(number * 0x9E3779B97F4A7C15u >> (64 - own->digits));
}

/* Note what keys have; return false if an event has bits that nothing is told of. */
static bool note_all(const Needs *own) {
    const int64_t *bits = own->bits.items;
    const uint8_t *uses = own->uses.items;
    for (Py_ssize_t row = 0; row < own->bits.size; row++) {
        if ((uint64_t)bits[row] >= (uint64_t)own->uses.size) return false;
        uint8_t use = uses[bits[row]];
        if (use != 0) own->has[place_of(own, row)] |= use;
    }
    return true;
}

static bool find_rows(Needs *own, uint8_t wanted) {
    if (!note_all(own)) return false;
    for (Py_ssize_t row = 0; row < own->bits.size; row++) {
        own->rows[own->size] = (int32_t)row;
        own->size += (own->has[place_of(own, row)] & wanted) == wanted;
    }
    return true;
}

static PyObject *rows_of(Needs *own, uint8_t wanted) {
    PyObject *result = NULL;
    while (own->digits < 31 && (Py_ssize_t)1 << own->digits < own->bits.size) own->digits++;
    own->has = allocate_zeros((Py_ssize_t)1 << own->digits, 1);
    own->rows = allocate((size_t)own->bits.size * sizeof(int32_t) + sizeof(int32_t));
    if (own->has != NULL && own->rows != NULL) {
        lock_leave();
        bool good = find_rows(own, wanted);
        lock_take();
        if (good)
            result = bytes_of(own->rows, own->size, sizeof(int32_t));
        else
            PyErr_SetString(PyExc_ValueError, "expected bits that have a use");
    }
    release_memory(own->has);
    release_memory(own->rows);
    return result;
}

PyObject *module_rows_with(PyObject *module, PyObject *args) {
    PyObject *numbers, *bits, *uses, *result = NULL;
    unsigned char wanted;
    Needs own = {.digits = 1};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOb", &numbers, &bits, &uses, &wanted)) return NULL;
    if (array_of(numbers, 8, &own.numbers) == 0 && array_of(bits, 8, &own.bits) == 0 &&
        array_of(uses, 1, &own.uses) == 0) {
        if (own.numbers.size != own.bits.size || own.bits.size > INT32_MAX)
            PyErr_SetString(PyExc_ValueError, "expected a number and bits of each event");
        else
            result = rows_of(&own, wanted);
    }
    array_close(&own.numbers);
    array_close(&own.bits);
    array_close(&own.uses);
    return result;
}
