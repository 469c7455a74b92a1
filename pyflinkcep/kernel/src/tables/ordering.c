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
    const int64_t *given;
    int64_t least; /* so that few digits differ */
    Py_ssize_t size;
    uint64_t *numbers[2]; /* above the least one, between two passes */
    int32_t *places[2];
    int32_t *order;     /* the places, of the last pass */
    Py_ssize_t *counts; /* of each value of each digit */
} Sorting;

static Py_ssize_t digit_of(uint64_t number, int digit) {
    return (Py_ssize_t)(number >> digit * DIGIT_BITS) & (DIGIT_VALUES - 1);
}

static uint64_t number_of(const Sorting *own, Py_ssize_t place) {
    return (uint64_t)own->given[place] - (uint64_t)own->least;
}

/* Have room for what passes hand on. One pass hands on nothing, and memory costs time when used. */
static int sorting_open(Sorting *own) {
    for (int i = 0; i < 2; i++) {
        own->numbers[i] = allocate((size_t)own->size * sizeof(uint64_t));
        if (own->numbers[i] == NULL) return -1;
        own->places[i] = allocate((size_t)own->size * sizeof(int32_t));
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

/* Return how many digits differ at most; 0 if the numbers are in order. */
static int digits_that_differ(Sorting *own) {
    int64_t least = own->given[0], most = own->given[0];
    bool falls = false;
    for (Py_ssize_t i = 1; i < own->size; i++) {
        int64_t number = own->given[i];
        falls |= number < own->given[i - 1];
        if (number < least) least = number;
        if (number > most) most = number;
    }
    own->least = least;
    int digits = 0;
    for (uint64_t range = (uint64_t)most - (uint64_t)least; falls && range > 0;
        range >>= DIGIT_BITS)
        digits++;
    return digits;
}

/* Count the digits; write those that differ, the lowest first, and return how many. */
static int varying_digits(Sorting *own, int digits, int *varying) {
    for (Py_ssize_t i = 0; i < own->size; i++) {
        uint64_t number = number_of(own, i);
        for (int digit = 0; digit < digits; digit++)
            own->counts[digit * DIGIT_VALUES + digit_of(number, digit)]++;
    }
    int count = 0;
    uint64_t first = number_of(own, 0);
    for (int digit = 0; digit < digits; digit++)
        if (own->counts[digit * DIGIT_VALUES + digit_of(first, digit)] != own->size)
            varying[count++] = digit;
    return count;
}

/* Order by one digit: from what was given, or a pass has handed on; hand numbers on, or not. */
static void sort_by_digit(
    const Sorting *own, int digit, int pass, int32_t *to_places, uint64_t *to_numbers) {
    const Py_ssize_t *counts = own->counts + digit * DIGIT_VALUES;
    Py_ssize_t starts[DIGIT_VALUES], before = 0;
    for (int value = 0; value < DIGIT_VALUES; value++) {
        starts[value] = before;
        before += counts[value];
    }
    const uint64_t *numbers = own->numbers[pass & 1];
    const int32_t *places = own->places[pass & 1];
    for (Py_ssize_t i = 0; i < own->size; i++) {
        uint64_t number = pass == 0 ? number_of(own, i) : numbers[i];
        Py_ssize_t to = starts[digit_of(number, digit)]++;
        to_places[to] = pass == 0 ? (int32_t)i : places[i];
        if (to_numbers != NULL) to_numbers[to] = number;
    }
}

/* Write the order by some digits; return the numbers in it if they are asked for. */
static const uint64_t *sort_by_digits(
    const Sorting *own, const int *digits, int count, bool with_numbers) {
    for (int pass = 0; pass < count; pass++) {
        int to = !(pass & 1);
        bool is_last = pass == count - 1, hands_on = !is_last || with_numbers;
        sort_by_digit(
            own, digits[pass], pass, is_last ? own->order : own->places[to],
            hands_on ? own->numbers[to] : NULL);
    }
    return own->numbers[count & 1];
}

/* Write the order of the numbers. */
static void sort_numbers(Sorting *own) {
    int varying[DIGITS], digits = digits_that_differ(own);
    if (digits == 0) {
        for (Py_ssize_t i = 0; i < own->size; i++) own->order[i] = (int32_t)i;
        return;
    }
    int count = varying_digits(own, digits, varying), first = count > TELLING ? count - TELLING : 0;
    const uint64_t *sorted = sort_by_digits(own, varying + first, count - first, first > 0);
    if (first > 0 && !are_in_order(sorted, own->size)) sort_by_digits(own, varying, count, false);
}

static PyObject *order_of(const int64_t *numbers, Py_ssize_t size) {
    Sorting own = {.given = numbers, .size = size};
    PyObject *result = NULL;
    if (sorting_open(&own) == 0) {
        result = PyBytes_FromStringAndSize(NULL, size * (Py_ssize_t)sizeof(int32_t));
        if (result != NULL) {
            own.order = (int32_t *)PyBytes_AsString(result);
            lock_leave();
            sort_numbers(&own);
            lock_take();
        }
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
