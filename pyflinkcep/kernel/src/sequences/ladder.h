/* SPDX-License-Identifier: Apache-2.0 */
/* Runs distinguished by one value, in its order. */
#ifndef PYFLINKCEP_LADDER_H
#define PYFLINKCEP_LADDER_H

#include "compressed/counts.h"

/*
 * The runs of a loop whose events must rise: by the rank of their last event's value. Sums of the
 * runs below a rank are taken from a binary indexed tree. It has places for the ranks of present
 * runs and of coming events; it is rebuilt when an event has another rank.
 */
typedef struct {
    int32_t *ranks; /* those with a place, ascending */
    Counts *own, *tree; /* by place the runs there; sums over places, from 1 on */
    Py_ssize_t size;
    Counts whole; /* all runs, including those without a value */
    Counts fresh; /* those that the current event makes */
} Ladder;

/* Add the runs below a rank to a sum. */
int ladder_sum_below(const Ladder *ladder, int32_t rank, bool or_equal, int64_t since, Counts *sum);
/* Return how many places have runs within the window. */
Py_ssize_t ladder_alive(const Ladder *ladder, int64_t since);
/* Whether a rank is on the ladder. */
bool ladder_has(const Ladder *ladder, int32_t rank);
/* Add runs whose last event has a rank with a place; negative for no value. */
int ladder_put(Ladder *ladder, int32_t rank, const Counts *runs, int64_t since);
/* Give places to future ranks, and remove those of runs out of the window. */
int ladder_make_room(Ladder *ladder, const int32_t *coming, Py_ssize_t count, int64_t since);
/* Release all memory. */
void ladder_free(Ladder *ladder);

#endif
