/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern: its states, conditions and decisions, constant while it runs. */
#ifndef PYFLINKCEP_TABLES_H
#define PYFLINKCEP_TABLES_H

#include "base/values.h"

typedef struct {
    int32_t target, stage;
    int64_t increase;
    bool takes, stays, continues, completes, adds_stage;
} Move;

enum { ENDINGS = 3 };

typedef struct Decision {
    bool is_step;
    /* an Ask */
    int32_t atom;
    PyObject *ask;
    struct Decision *yes, *no;
    /* a Step */
    Py_ssize_t size;
    Move *moves;
    int32_t ending; /* an EventEnd in Python: why the partial match ends, if there are no moves */
    bool keeps, takes, keeps_event, completes;
    const Move *single;
} Decision;

enum { ATOM_OF_EVENT, ATOM_OF_MATCH, ATOM_EXPRESSION };

typedef struct {
    int32_t kind, word;
    uint64_t bit; /* in its word; 0 for a condition of more than the event */
    PyObject *function;
    Program program;
} Atom;

typedef struct {
    int64_t gap_ms;
    int32_t stage;
    bool is_pending;
    Decision *first;
} State;

enum { SKIP_NONE, SKIP_TO_NEXT, SKIP_PAST_LAST, SKIP_TO_FIRST, SKIP_TO_LAST };

typedef struct {
    State *states;
    Atom *atoms;
    Py_ssize_t state_count, atom_count, stage_count;
    PyObject *stage_names;
    int32_t start, final;
    int64_t window_time;
    bool has_gaps, handle_timeout;
    int32_t skip_kind, skip_stage;
    bool skip_throws;
} Pattern;

/* Read the states and their transitions. */
int pattern_read_states(Pattern *pattern, PyObject *states);
/* Read the conditions. */
int pattern_read_atoms(Pattern *pattern, PyObject *atoms);
/* Visit what the tables refer to, for the cycle collector. */
int pattern_visit(Pattern *pattern, visitproc visit, void *arg);
/* Clear what may refer to the kernel itself: the user's functions. */
void pattern_clear_functions(Pattern *pattern);
/* Release all memory. */
void pattern_free(Pattern *pattern);
/* Fetch the first decision for an event in a state. */
Decision *decision_first(Pattern *pattern, PyObject *helper, int32_t state);
/* Fetch the decision that follows an answer. */
Decision *decision_following(PyObject *helper, Decision *decision, bool holds);

#endif
