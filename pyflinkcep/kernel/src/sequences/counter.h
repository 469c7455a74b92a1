/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a SEQ query as counts of runs that continue in the same way. */
#ifndef PYFLINKCEP_COUNTER_H
#define PYFLINKCEP_COUNTER_H

#include "sequences/ladder.h"
#include "sequences/sequence.h"

/* A loop whose events rise, and whose runs nothing else distinguishes. */
typedef struct {
    bool rises, or_equal;
    Array ranks; /* by handle the rank of the value, negative for no value */
    Ladder ladder;
} Rising;

typedef struct {
    PyObject_HEAD
    Sequence sequence;
    Rising *rising; /* by component */
    /* of the current partition */
    Starts starts;
    int64_t barred_at; /* the last negated event that may precede a match; -1 for none */
    int64_t *barred_after; /* by event the next that must not follow a match, or their number */
    Weighing weighing;
    Ended now; /* with the current event */
} Counter;

/* counter_starts.c */
/* Number an event as a start; equal times share a number if only time matters. */
int counter_number_start(Counter *counter, int64_t time, int64_t *start);
/* Return the first start whose matches, ending here, a negated event at an end forbids. */
int64_t counter_first_forbidden(const Counter *counter, Py_ssize_t at);

/* counter_ladders.c */
/* Let the runs at a loop begin the next component with an event, and take it. */
int ladder_event(Counter *counter, Py_ssize_t component, Py_ssize_t at);
/* Let the runs that an event made complete, and go on. */
int ladder_settle(Counter *counter, Py_ssize_t component, Py_ssize_t at, int64_t until);

/* counter.c */
extern const Payloads counter_payloads;
/* Begin with the events of a partition. */
int counter_begin(Counter *counter);
/* Process an event; `now` is then the number of matches that end with it. */
int counter_event(Counter *counter, Py_ssize_t at);
/* Discard all runs. */
void counter_end(Counter *counter);

/* counter_object.c */
extern PyType_Spec counter_spec;

#endif
