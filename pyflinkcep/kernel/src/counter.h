/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a SEQ query as numbers of runs that go on in the same way. */
#ifndef PYFLINKCEP_COUNTER_H
#define PYFLINKCEP_COUNTER_H

#include "automaton.h"
#include "counts.h"
#include "ladder.h"

/* A loop whose events rise, and whose runs nothing else tells apart. */
typedef struct {
    bool rises, or_equal;
    Array ranks; /* by handle the rank of the value, negative for no value */
    Ladder ladder;
} Rising;

/* Runs in one state that differ in nothing that matters. */
typedef struct Run {
    struct Run *next; /* of those with the same place by hash */
    uint64_t hash;
    Py_ssize_t place; /* among the runs of the component */
    Tally *tally; /* NULL if nothing is known of events */
    int32_t component, mode;
    bool is_closed; /* whether a negated event stands before the next component */
    Counts counts, sums; /* of what is weighed, the sum over the runs */
} Run;

typedef struct {
    Run **items;
    Py_ssize_t size, room;
} RunList;

/* Runs by what they go on with. */
typedef struct {
    Run **places;
    Py_ssize_t room, size; /* `room` is a power of 2 */
} RunTable;

typedef struct {
    PyObject_HEAD
    Automaton automaton;
    Rising *rising; /* by component */
    Value *known; /* room for what tells runs apart */
    /* of the partition at work */
    RunList *alive; /* by component */
    RunTable table, fresh; /* those alive, those that the event at hand made */
    RunList made, moved;
    int64_t *start_times, *barred; /* by start its time; of the last negated event before it */
    Py_ssize_t start_room, barred_room;
    int64_t base, head, next_start, swept; /* of the arrays, of the window, of the next start */
    int64_t barred_time; /* of the last negated event that may stand before a match */
    int64_t *barred_after; /* by event the time of the next that may not come after a match */
    Total now, now_sum; /* matches that end with the event at hand, and what they weigh */
    int32_t weighed; /* the component whose events are weighed, negative for none */
    const uint64_t *weights; /* by handle, each below 2^63 */
} Counter;

/* counter_runs.c */
uint64_t run_hash(int32_t component, int32_t mode, bool is_closed);
uint64_t value_hash(uint64_t hash, Value value);
const Live *run_live(const Counter *counter, const Run *run);
Run *table_find(const RunTable *table, const Run *like, const Live *live, const Value *known);
int table_put(RunTable *table, Run *run);
void table_remove(RunTable *table, Run *run);
void table_free(RunTable *table);
int list_put(RunList *list, Run *run);
void list_remove(RunList *list, Run *run);
void list_free(RunList *list);
void run_free(Run *run);

/* counter_starts.c */
int64_t counter_start_time(const Counter *counter, int64_t start);
int counter_number_start(Counter *counter, int64_t time, int64_t *start);
int64_t counter_first_forbidden(const Counter *counter, Py_ssize_t at);

/* counter_ladders.c */
int ladder_event(Counter *counter, Py_ssize_t component, Py_ssize_t at);
int ladder_settle(Counter *counter, Py_ssize_t component, Py_ssize_t at, int64_t until);
int counter_take(Counter *counter, const Run *runs, int32_t component, Py_ssize_t at);

/* counter.c */
int counter_begin(Counter *counter);
int counter_event(Counter *counter, Py_ssize_t at);
void counter_end(Counter *counter);

/* counter_object.c */
extern PyType_Spec counter_spec;

#endif
