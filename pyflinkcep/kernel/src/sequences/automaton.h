/* SPDX-License-Identifier: Apache-2.0 */
/* The automaton of a SEQ query, and the events of its current partition. */
#ifndef PYFLINKCEP_AUTOMATON_H
#define PYFLINKCEP_AUTOMATON_H

#include "base/fields.h"
#include "base/values.h"

enum { LOOPING = 1, WAITING = 2 }; /* as engines/sequences/compiler.py numbers them */

enum { STRICT, PARTITION, NEXT, ANY };

/* A clause that compares a field of the event to a slot of the run; a negative slot for none. */
typedef struct {
    int32_t field, slot;
} Equality;

typedef struct {
    bool loops;
    int32_t strategy;
    Program begin_alone, begin_joint, take_alone, take_joint, leave; /* empty for no condition */
    Live live[4]; /* by mode */
    Equality begin_equal, take_equal; /* that every event on the edge satisfies */
} Component;

/* A negated component, or a sequence of events that must not come. */
typedef struct {
    int32_t gap; /* how many components come before it */
    int32_t needs; /* the component that makes its conditions decidable when it begins */
    int32_t first, count; /* its events */
    bool judges; /* whether it depends on more than its candidates */
} Negative;

/* An event of a negated component. */
typedef struct {
    int32_t negative;
    int32_t stage; /* as slots know it; negative if none sees the event */
    Program alone, joint; /* empty for no condition */
    Tally *after; /* room for the slots after it */
} Absent;

/* The events of a partition. */
typedef struct {
    const int64_t *times, *handles; /* no handles: the events are numbered from 0 */
    const int32_t *codes;
    const uint8_t *starts; /* which may begin a match, NULL for all */
    const int64_t *begins, *takes, *absents; /* by code a bit for each component, or absent event */
    Py_ssize_t size, kinds; /* of events, of codes */
} Stream;

enum { TIMES, HANDLES, CODES, STARTS, BEGINS, TAKES, ABSENTS, STREAM_ARRAYS };

typedef struct {
    Component *components;
    Negative *negatives;
    Absent *absent; /* of all negated components */
    Program partition_alone, partition_joint;
    Values values;
    Fields fields;
    Py_ssize_t component_count, negative_count, absent_count;
    int64_t window; /* negative for none */
    bool minds_position; /* whether a negated component stands at an end */
    bool waits_for_end; /* whether a negated component stands last */
    Array arrays[STREAM_ARRAYS]; /* what `stream` points into */
    Stream stream;
    int64_t begins, takes, absents, closes; /* of the current event */
} Automaton;

/* What an event does to a run: whether it takes it, and the mode without it. */
typedef struct {
    bool begins, takes;
    int32_t mode;
} Edges;

/* Return the first candidate for an absent event from a position on; a later one than all if none. */
typedef int64_t (*NextCandidate)(const void *owner, int32_t absent, int64_t at);

static inline bool has_bit(int64_t bits, Py_ssize_t place) { return (uint64_t)bits >> place & 1; }

static inline int64_t automaton_handle(const Automaton *automaton, Py_ssize_t at) {
    return automaton->stream.handles == NULL ? (int64_t)at : automaton->stream.handles[at];
}

/* Return the bits that a code has in one of the stream's masks. */
static inline int64_t bits_of(const Stream *stream, const int64_t *masks, Py_ssize_t at) {
    int32_t code = stream->codes[at];
    return code >= 0 && code < stream->kinds ? masks[code] : 0;
}

/* automaton.c */
/* Whether a condition holds for an event after a tally. */
bool automaton_holds(
    const Automaton *automaton, const Program *program, const Tally *tally, int64_t handle);
/*
 * Evaluate the conditions on the event alone; of begin edges, only those of `awaited` components.
 * Return whether the event is a negated one before the first component.
 */
bool automaton_ask_alone(Automaton *automaton, Py_ssize_t at, int64_t awaited);
/* Whether runs at a component end with an event that it does not take. */
bool automaton_is_restless(const Automaton *automaton, Py_ssize_t component);
/* Whether the current event may change the runs at a component. */
bool automaton_concerns(const Automaton *automaton, Py_ssize_t component);
/* Whether the events of a negated sequence come from `low` to before `high`, one after another. */
bool automaton_follow(
    const Automaton *automaton, const Negative *negative, NextCandidate next, const void *owner,
    int64_t low, int64_t high, const Tally *tally);
/* Return what the current event does to a run whose last event is of a component. */
Edges automaton_edges(
    const Automaton *automaton, Py_ssize_t component, int32_t mode, const Tally *tally,
    int64_t handle);

/* Whether conditions need Python, so that its lock cannot be given up. */
bool automaton_needs_python(const Automaton *automaton);

/* automaton_reader.c */
/* Read (components, negatives, partition, slots, window). */
int automaton_read(Automaton *automaton, PyObject *args);
/* Read (rows, fields): the events that handles refer to. */
int automaton_set_events(Automaton *automaton, PyObject *args);
/* Open the events of a partition: times, handles, codes, starts, begins, takes, absents. */
int automaton_open(Automaton *automaton, PyObject **given);
/* Close the events of a partition. */
void automaton_close(Automaton *automaton);
/* Release all memory. */
void automaton_free(Automaton *automaton);

#endif
