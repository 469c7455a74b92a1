/* SPDX-License-Identifier: Apache-2.0 */
/* Programs run on many events at once. */
#ifndef PYFLINKCEP_BATCH_H
#define PYFLINKCEP_BATCH_H

#include "base/values.h"

enum { BATCH = 64 }; /* how many events at once: as many as a word has bits */

typedef union {
    int64_t i;
    double f;
} Number;

/* A column of an element's list. */
typedef struct {
    const Number *items;
    const uint8_t *valid; /* a byte for each item, NULL when no value is null */
    int32_t element;
} Column;

/* A value on the stack: a number for each event, or one for all, or flags. */
typedef struct {
    const Number *items;
    Py_ssize_t stride; /* 0 for one number */
    uint64_t known; /* which are not null */
    uint64_t truth; /* of flags in place of numbers: which are true */
    Number own[BATCH];
} Operand;

/* The tested events: `count` of the list of `newest`, and one of each other element. */
typedef struct {
    const Column *columns;
    const Py_ssize_t *bound; /* by element the event's place in its list */
    int32_t newest;
    Py_ssize_t base;
    int count;
} Batch;

/* A comparison of a column of the newest element to one of another: less, or greater. */
typedef struct {
    const Number *own, *other;
    Py_ssize_t size; /* of the newest element's column */
    int32_t element; /* the other */
    bool is_float, asks_below, is_opposite;
} Bound;

/*
 * Find whether a program compares a column of the newest element to another's by an inequality;
 * x <= y is not x > y, as NaN is greater than all numbers and equal to itself.
 */
bool bound_of(
    const Program *program, const Column *columns, int32_t newest, Py_ssize_t size, Bound *bound);
/*
 * Return for which of `count` events from `base` on a bound holds; bits beyond are undefined. A few
 * events are treated as FEW, if the column is long enough: a loop of fixed length is never
 * mispredicted.
 */
uint64_t bound_holds(const Bound *bound, const Py_ssize_t *places, Py_ssize_t base, int count);
/* Whether programs for many events at once have an operation. */
bool batch_knows(int32_t opcode);
/* Return for which of the events a condition is true, the first in the lowest bit. */
uint64_t batch_holds(const Program *program, const Batch *batch, Operand *stack);

/* Return the index of the lowest set bit of a nonzero word. */
static inline int lowest_bit(uint64_t word) {
#if defined(__GNUC__)
    return __builtin_ctzll(word);
#else
    int place = 0;
    for (; !(word & 1); word >>= 1) place++;
    return place;
#endif
}

#endif
