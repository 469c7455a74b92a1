/* SPDX-License-Identifier: Apache-2.0 */
/* The runs at a component of a SEQ query, by the value that an equality asks of the next event. */
#ifndef PYFLINKCEP_JOINED_H
#define PYFLINKCEP_JOINED_H

#include "compressed/merged.h"
#include "sequences/automaton.h"

enum { BEGIN_EDGE, TAKE_EDGE, JOINED_EDGES };

/* A run among those with the same place by hash, for each edge. */
typedef struct Links {
    Run *before[JOINED_EDGES], *after[JOINED_EDGES];
    uint64_t hash[JOINED_EDGES]; /* 0 if nothing equals the run's value */
} Links;

typedef struct {
    bool is_usable; /* whether an event that fails an equality changes no run */
    bool is_open; /* whether runs are put here */
    Equality equal[JOINED_EDGES];
    Run **places[JOINED_EDGES];
    Py_ssize_t room, size; /* `room` is a power of 2 */
    uint64_t asked[JOINED_EDGES]; /* by the current event; 0 if it does not fit the edge */
} Joined;

/* Find out whether an event that fails the equalities may change the runs at a component. */
void joined_prepare(Joined *joined, const Automaton *automaton, Py_ssize_t component);
/*
 * Whether the runs that the current event may change are found by value: return 1, 0 if all runs
 * must be asked, -1 with an exception.
 */
int joined_answers(
    Joined *joined, const Automaton *automaton, Py_ssize_t component, const RunList *runs);
/* Look up the current event. */
void joined_ask(Joined *joined, const Automaton *automaton, Py_ssize_t component, Py_ssize_t at);
/* Return the first of the runs among which are those that the event may change by an edge. */
Run *joined_first(const Joined *joined, int edge);
/* Whether the event may change a run by an edge, and not by the one before, too. */
bool joined_meets(const Joined *joined, const Run *run, int edge);
/* Add a run, if runs are looked up. */
int joined_put(Joined *joined, Run *run);
/* Remove a run that is dropped, if it is there. */
void joined_remove(Joined *joined, Run *run);
/* Forget all runs, which are gone. */
void joined_clear(Joined *joined);

#endif
