/* SPDX-License-Identifier: Apache-2.0 */
/* The merged runs of a SEQ query over the events of a partition, whatever they carry. */
#ifndef PYFLINKCEP_SEQUENCE_H
#define PYFLINKCEP_SEQUENCE_H

#include "compressed/merged.h"
#include "sequences/automaton.h"
#include "sequences/joined.h"

typedef struct Sequence Sequence;

/* What runs carry; each function but the first returns -1 with an exception. */
typedef struct {
    /* Whether all starts of a run are out of the window. */
    bool (*is_over)(const Sequence *sequence, const Run *run);
    /* Let runs take an event for a component: sequence_take, unless they are kept elsewhere. */
    int (*take)(Sequence *sequence, const Run *runs, int32_t component, Py_ssize_t at);
    /* Add to a run what its predecessors carry, with the event that it took. */
    int (*add)(Sequence *sequence, Run *run, const Run *before, Py_ssize_t at);
    /* Add to a run what an equal one carries. */
    int (*merge)(Sequence *sequence, Run *run, const Run *equal);
    /* Let runs be matches, followed by the current event if they still take it. */
    int (*complete)(Sequence *sequence, const Run *runs, bool takes, Py_ssize_t at);
} Payloads;

/* What became of the runs at a component; only counted if users ask for it. */
typedef struct {
    int64_t met; /* how often an event was tried on a run */
    int64_t merged;
    int64_t most; /* alive at a time */
    int64_t sum;  /* of those alive after each event that was processed */
    int64_t events; /* how many such events there were */
} Watched;

/* The positions of the candidates for an absent event, in order. */
typedef struct {
    int64_t *items;
    Py_ssize_t size, room;
} Candidates;

struct Sequence {
    Automaton automaton;
    const Payloads *payloads;
    void *owner; /* for the payloads */
    Watched *watched; /* by component; NULL unless users ask for it */
    bool is_restless; /* whether runs depend on events that the query does not name */
    bool is_judging; /* whether negated components read what runs have taken */
    Value *known; /* room for what distinguishes runs */
    Spans *passed; /* room for those of a run */
    /* of the current partition */
    RunList *alive; /* by component */
    Joined *joined; /* by component, the live ones by value */
    RunTable table, fresh; /* the live ones, those that the current event made */
    RunList made, moved;
    Candidates *candidates; /* by absent event, of negated components that judge */
};

/* sequence.c */
/* Read a query as automaton_read does. */
int sequence_read(Sequence *sequence, PyObject *args, const Payloads *payloads, void *owner);
/* Whether runs must process an event. */
bool sequence_concerns(const Sequence *sequence, Py_ssize_t at);
/* Return a bit for each component that an event may begin: the first, and those that runs await. */
int64_t sequence_awaited(const Sequence *sequence);
/* Let runs take an event for a component. */
int sequence_take(Sequence *sequence, const Run *runs, int32_t component, Py_ssize_t at);
/* Process an event for the live runs; its conditions on the event alone are known. */
int sequence_advance(Sequence *sequence, Py_ssize_t at);
/* Complete and continue the runs that an event made. */
int sequence_settle(Sequence *sequence, Py_ssize_t at);
/* Count from now on what becomes of runs. */
int sequence_watch(Sequence *sequence);
/* Release the runs that are out of the window. */
void sequence_sweep(Sequence *sequence);
/* Release all runs, before another partition. */
void sequence_restart(Sequence *sequence);
/* Discard all runs. */
void sequence_clear(Sequence *sequence);
/* Release all memory. */
void sequence_free(Sequence *sequence);

/* sequence_negatives.c */
/* Find the events that pass the conditions on them alone. */
int sequence_find_candidates(Sequence *sequence);
/* Forget the candidates of negated components. */
void sequence_forget_candidates(Sequence *sequence);
/* Return how many candidates for an absent event come before a position. */
int64_t sequence_candidates_to(const Sequence *sequence, int32_t absent, int64_t at);
/*
 * Find what runs that take an event for a component have passed: `passed`. Return 1 if they may, 0
 * if a negated component forbids it, -1 with an exception.
 */
int sequence_pass(Sequence *sequence, const Run *runs, int32_t component, Py_ssize_t at);
/* Whether negated components that only the whole match can decide forbid it. */
bool sequence_is_forbidden(const Sequence *sequence, const Run *run);

#endif
