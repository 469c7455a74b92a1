/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that continue in the same way, merged, with a number for each event they began with. */
#ifndef PYFLINKCEP_MERGED_H
#define PYFLINKCEP_MERGED_H

#include "base/values.h"
#include "compressed/counts.h"

/* --- merged.c */

enum { OPEN = -1 };

/* Of a query: candidates of a negated component that may still forbid a match, by their number. */
typedef struct {
    int32_t negative;
    int64_t low, high; /* from the first up to, not including, the last; OPEN if more may come */
} Span;

typedef struct {
    Py_ssize_t size;
    Span items[];
} Spans;

/* Runs in one state that nothing can tell apart later. */
typedef struct Run {
    struct Run *next; /* of those with the same place by hash */
    uint64_t hash;
    Py_ssize_t place; /* among the runs in the state */
    Tally *tally;     /* NULL if nothing is known of events */
    int32_t state;    /* of a query the component of the last event */
    int32_t mode;     /* of a query whether it loops or waits */
    bool is_marked; /* a negated event precedes the next component, or a slot has overflowed */
    int64_t begun;    /* of a pattern: the time of the first event of the first of them */
    int64_t previous; /* of a pattern: the time of the last event, if windows use it */
    Spans *spans;     /* of a query; NULL for none */
    Counts counts;
    Counts weights; /* the sum over the runs, or the greatest, of the weights */
    int64_t way;    /* instead of numbers their way, if matches are listed */
    struct Links *links; /* of a query, if its runs are found by value */
} Run;

typedef struct {
    Run **items;
    Py_ssize_t size, room;
} RunList;

/* Runs by what distinguishes them. */
typedef struct {
    Run **places;
    Py_ssize_t room, size; /* `room` is a power of 2 */
} RunTable;

/* Equal values have equal hashes: 0.0 and -0.0 are equal, and so are all NaN. */
uint64_t value_hash(uint64_t hash, Value value);
/* Find the place of a run by its state and the values that distinguish it. */
void run_identify(Run *run, const Value *known, Py_ssize_t size);
/* The same by the values in `known`. */
void run_recognize(Run *run, const Live *live, Value *known);
/* Return the run that agrees with another in its state and in what is known; NULL for none. */
Run *table_find(const RunTable *table, const Run *like, const Live *live, const Value *known);
/* Add a run. */
int table_put(RunTable *table, Run *run);
/* Remove a run that is there. */
void table_remove(RunTable *table, Run *run);
/* Release the table; its runs stay. */
void table_free(RunTable *table);
/* Add a run at the end. */
int list_put(RunList *list, Run *run);
/* Remove a run; the last one takes its place. */
void list_remove(RunList *list, Run *run);
/* Free a list and its runs. */
void list_free(RunList *list);
/* Release a run and what it has counted. */
void run_free(Run *run);

/* --- starts.c */

typedef struct {
    int64_t time;
    int64_t barred; /* of a query the last event before it that forbids it; -1 for none */
} Start;

/* The events that runs began with, numbered; those before `head` are out of the window. */
typedef struct {
    Start *items; /* from the start `base` on */
    Py_ssize_t room;
    int64_t base, head, next;
    int64_t swept; /* the head when runs were last released */
} Starts;

/* Return the start with a number. */
const Start *starts_at(const Starts *starts, int64_t number);
/* Give an event the next number. */
int starts_add(Starts *starts, int64_t time, int64_t barred);
/* Whether it is time to release the runs that are out of the window; there are so many in all. */
bool starts_need_sweep(Starts *starts, int64_t runs);
/* Release all memory. */
void starts_free(Starts *starts);

/* --- weighing.c */

/* Weights of the events that runs have for a component or stage, to sum or to find the greatest. */
typedef struct {
    const uint64_t *weights; /* by handle, each below 2^63; NULL if nothing is weighed */
    int32_t what;            /* the component or stage */
    bool seeks_greatest;
} Weighing;

/* The matches that end with an event, and their weight. */
typedef struct {
    Total count, weight;
} Ended;

/* Return the weight of an event that is taken for a component or stage. */
uint64_t weight_of(const Weighing *weighing, int32_t what, int64_t handle);
/* Add to a run those of another after taking an event, without those begun before `since`. */
int run_add(const Weighing *weighing, Run *run, const Run *other, int64_t since, uint64_t weight);
/*
 * End runs that began from `since` up to, not including, `until`, with an event of some weight.
 */
int run_end(
    const Weighing *weighing, const Run *run, int64_t since, int64_t until, uint64_t weight,
    Ended *ended);
/* Set both totals to zero. */
void ended_clear(Ended *ended);
/* Release all memory. */
void ended_free(Ended *ended);

/* --- counted.c */

/* The numbers of matches by last event. */
typedef struct {
    PyObject *counts; /* of the events that complete matches; NULL if only the sum is requested */
    PyObject *weights; /* the weights of their matches, NULL if nothing is weighed */
    int64_t *places;
    Py_ssize_t size, room;
    Total sum;
} Counted;

/* Begin an empty result, with counts by event and with weights if wanted. */
int counted_open(Counted *counted, bool by_event, bool weighs);
/* Add the matches that end at a place, if any. */
int counted_add(Counted *counted, int64_t place, const Ended *ended);
/* Return the number of all, or (places, numbers, weights), the places as bytes. */
PyObject *counted_result(const Counted *counted);
/* Release all memory. */
void counted_close(Counted *counted);

#endif
