/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of runs, exact to any size, one for each event that runs began with. */
#ifndef PYFLINKCEP_COUNTS_H
#define PYFLINKCEP_COUNTS_H

#include "base/memory.h"

/*
 * A number for each of some consecutive starts. Words are stored lowest first: word `w` of the
 * number at `i` is `words[w * room + i]`. The highest bit of a number is never set, so that a sum
 * of two still fits; the adder then makes room.
 */
typedef struct {
    int64_t first; /* the number of the first start */
    Py_ssize_t size, room;
    Py_ssize_t width; /* of each number, in words */
    uint64_t *words;
} Counts;

/* One number. */
typedef struct {
    uint64_t *words; /* lowest first */
    Py_ssize_t size, room;
} Total;

/* Begin with one run. */
int counts_one(Counts *counts, int64_t start);
/* Add the numbers of other runs, without those that began before `since`. */
int counts_add(Counts *counts, const Counts *other, int64_t since);
/* Add the numbers of other runs, times a factor below 2^63; see counts_add. */
int counts_add_times(Counts *counts, const Counts *other, int64_t since, uint64_t times);
/* Raise numbers to those of other runs, without those that began before `since`. */
int counts_raise(Counts *counts, const Counts *other, int64_t since);
/* Raise numbers to `least` where there are other runs, without those that began before `since`. */
int counts_raise_where(Counts *counts, const Counts *other, int64_t since, uint64_t least);
/* Return the first start from `since` on that has runs, or the end of all. */
int64_t counts_first(const Counts *counts, int64_t since);
/* Return the greatest number of the starts from `since` up to, not including, `until`. */
uint64_t counts_greatest(const Counts *counts, int64_t since, int64_t until);
/* Add the numbers of the starts from `since` up to, not including, `until` to a total. */
int counts_sum(const Counts *counts, int64_t since, int64_t until, Total *total);
/* Clear the numbers, but keep their memory. */
void counts_clear(Counts *counts);
/* Release all memory. */
void counts_free(Counts *counts);

/* Whether nothing was counted. */
bool total_is_zero(const Total *total);
/* Add another total. */
int total_add(Total *total, const Total *other);
/* Raise a total of one word. */
int total_raise(Total *total, uint64_t least);
/* Add a multiple of another total. */
int total_add_times(Total *total, const Total *other, uint64_t times);
/* Set to zero. */
void total_clear(Total *total);
/* Release all memory. */
void total_free(Total *total);

static inline int64_t counts_end(const Counts *counts) { return counts->first + counts->size; }

#endif
