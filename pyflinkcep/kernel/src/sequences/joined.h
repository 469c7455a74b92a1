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

void joined_prepare(Joined *joined, const Automaton *automaton, Py_ssize_t component);
int joined_answers(
    Joined *joined, const Automaton *automaton, Py_ssize_t component, const RunList *runs);
void joined_ask(Joined *joined, const Automaton *automaton, Py_ssize_t component, Py_ssize_t at);
Run *joined_first(const Joined *joined, int edge);
bool joined_meets(const Joined *joined, const Run *run, int edge);
int joined_put(Joined *joined, Run *run);
void joined_remove(Joined *joined, Run *run);
void joined_clear(Joined *joined);

#endif
