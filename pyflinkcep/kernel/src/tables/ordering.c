/* SPDX-License-Identifier: Apache-2.0 */
/* The stable order of numbers, by their digits. Mirror: order_by in matching/order.py. */
#include "tables/grouping.h"

#include "base/lock.h"

enum {
    DIGIT_BITS = 11,
    DIGIT_VALUES = 1 << DIGIT_BITS,
    DIGITS = (64 + DIGIT_BITS - 1) / DIGIT_BITS,
    TELLING = 4, /* highest digits: they almost always order hashes of 64 bits */
};

typedef struct {
    uint64_t *numbers[2]; /* above the least one, so that few digits differ */
    int32_t *places[2];
    Py_ssize_t *counts; /* of each value of each digit */
} Sorting;

static Py_ssize_t digit_of(uint64_t number, int digit) {
    return (Py_ssize_t)(number >> digit * DIGIT_BITS) & (DIGIT_VALUES - 1);
}

static int sorting_open(Sorting *own, Py_ssize_t size) {
    for (int i = 0; i < 2; i++) {
        own->numbers[i] = allocate((size_t)size * sizeof(uint64_t));
        if (own->numbers[i] == NULL) return -1;
        own->places[i] = allocate((size_t)size * sizeof(int32_t));
        if (own->places[i] == NULL) return -1;
    }
    own->counts = allocate_zeros((size_t)DIGITS * DIGIT_VALUES, sizeof(Py_ssize_t));
    return own->counts == NULL ? -1 : 0;
}

static void sorting_close(Sorting *own) {
    for (int i = 0; i < 2; i++) {
        release_memory(own->numbers[i]);
        release_memory(own->places[i]);
    }
    release_memory(own->counts);
}

static bool are_in_order(const uint64_t *numbers, Py_ssize_t size) {
    for (Py_ssize_t i = 1; i < size; i++)
        if (numbers[i] < numbers[i - 1]) return false;
    return true;
}

/* Take the numbers in, and count their digits up to the highest one that differs; return how many. */
static int sorting_load(Sorting *own, const int64_t *given, Py_ssize_t size) {
    int64_t least = given[0], most = given[0];
    for (Py_ssize_t i = 1; i < size; i++) {
        if (given[i] < least) least = given[i];
        if (given[i] > most) most = given[i];
    }
    int digits = 0;
    for (uint64_t range = (uint64_t)most - (uint64_t)least; range > 0; range >>= DIGIT_BITS)
        digits++;
    for (Py_ssize_t i = 0; i < size; i++) {
        uint64_t number = (uint64_t)given[i] - (uint64_t)least;
        own->numbers[0][i] = number;
        own->places[0][i] = (int32_t)i;
        for (int digit = 0; digit < digits; digit++)
            own->counts[digit * DIGIT_VALUES + digit_of(number, digit)]++;
    }
    return digits;
}

/* Order by one digit, from one half of the memory to the other; return the half they are in. */
static int sort_by_digit(Sorting *own, int from, int digit, Py_ssize_t size) {
    const Py_ssize_t *counts = own->counts + digit * DIGIT_VALUES;
    Py_ssize_t starts[DIGIT_VALUES], before = 0;
    if (counts[digit_of(own->numbers[from][0], digit)] == size) return from;
    for (int value = 0; value < DIGIT_VALUES; value++) {
        starts[value] = before;
        before += counts[value];
    }
    const uint64_t *numbers = own->numbers[from];
    const int32_t *places = own->places[from];
    uint64_t *to_numbers = own->numbers[!from];
    int32_t *to_places = own->places[!from];
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_ssize_t to = starts[digit_of(numbers[i], digit)]++;
        to_numbers[to] = numbers[i];
        to_places[to] = places[i];
    }
    return !from;
}

/* Order by all digits; return the half of the memory that the numbers are in. */
static int sort_numbers(Sorting *own, int digits, Py_ssize_t size) {
    if (are_in_order(own->numbers[0], size)) return 0;
    int at = 0, first = digits > TELLING ? digits - TELLING : 0;
    for (int digit = first; digit < digits; digit++) at = sort_by_digit(own, at, digit, size);
    if (first == 0 || are_in_order(own->numbers[at], size)) return at;
    for (int digit = 0; digit < digits; digit++) at = sort_by_digit(own, at, digit, size);
    return at;
}

static PyObject *order_of(const int64_t *numbers, Py_ssize_t size) {
    Sorting own = {0};
    PyObject *result = NULL;
    if (sorting_open(&own, size) == 0) {
        lock_leave();
        int at = sort_numbers(&own, sorting_load(&own, numbers, size), size);
        lock_take();
        result = bytes_of(own.places[at], size, sizeof(int32_t));
    }
    sorting_close(&own);
    return result;
}

PyObject *module_order_of(PyObject *module, PyObject *numbers) {
    Array given = {0};
    PyObject *result = NULL;
    (void)module;
    if (array_of(numbers, 8, &given) == 0) {
        if (given.size == 0 || given.size > INT32_MAX)
            PyErr_SetString(PyExc_ValueError, "expected between 1 and 2147483647 numbers");
        else
            result = order_of(given.items, given.size);
    }
    array_close(&given);
    return result;
}
