/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pattern, ready to run: the declarations that the files of the kernel share.
 *
 * The kernel mirrors the plain path of nfa/, sharedbuffer/ and operator/, with the same names and
 * steps: it runs the tables that engines/flink/nfa/state.py computes, on the same versioned buffer, and writes
 * the same state. The plain path is the specification: a difference in an answer or in state is a
 * bug here. Each file names its mirror in its first lines.
 */
#ifndef PYFLINKCEP_KERNEL_H
#define PYFLINKCEP_KERNEL_H

#include "base/fields.h"
#include "base/lock.h"
#include "base/objects.h"
#include "flink/key.h"
#include "flink/tables.h"

/* The current event, its answers, and the partial match under evaluation. */
typedef struct {
    uint64_t always_known; /* the conditions that come with the events, by their bits */
    uint64_t known, holds;
} Answers;

typedef struct {
    /* Bits in words of 63: Python's integers and Spark's have a sign. */
    Answers first; /* nearly always the only word */
    Answers *more; /* the other words */
    Py_ssize_t words;
    int64_t handle, timestamp;
    PyObject *row;
    Node *node;
    Version *version;
} Evaluation;

/* The ways of partial matches that conditions have read. */
typedef struct {
    PyObject *paths; /* by edge: stage to list of events */
    Py_ssize_t size; /* the events in them */
} Seen;

/* Workspace shared by the steps of all events; between them `following` and `done` are empty. */
typedef struct {
    Decision **by_state;
    bool *stamps, *stage_stamps;
    Decision **steps;
    Py_ssize_t step_room;
    Partials following, done;
    Path path;
} Workspace;

/* How many partial matches, and matches held back, ended without a match, by reason. */
typedef struct {
    int64_t window, skipped, by_event[ENDINGS];
} EndCounts;

/* Partial matches of one state, as rows of the places of their events. */
typedef struct {
    int64_t *rows;
    Py_ssize_t first, size, room;
} Queue;

enum { MOST_QUEUES = 32, MOST_KNOWN = 16, KINDS = 1 << 8 };

/* A pattern of which no partial match branches; without states if it is another one. */
typedef struct {
    int32_t states;
    int32_t *stages; /* by state the one that it takes an event for */
    Py_ssize_t events; /* how many kinds there are, by the conditions that hold */
    uint32_t *takes, *ends; /* by kind of event: a bit for each state */
    Queue *queues;
    /* By state, if what is reached is counted in place of being given: partial matches, and keys. */
    bool counts;
    int64_t *partials, *keys;
} Unbranched;

/* An event that partial matches have taken after another one, by its place in a stretch. */
typedef struct {
    int32_t before; /* the index of that one; negative for none */
    int32_t owners; /* the partial matches that have taken it last, and the events after it */
    int32_t place, stage;
} TakenEvent;

typedef struct {
    TakenEvent *items;
    Py_ssize_t size, room;
    int32_t spare; /* the first of those without owners; each has the next one before it */
} TakenEvents;

/* A partial match: its state, its first event by place, its last one by index, and their number. */
typedef struct {
    int32_t state, start, last, size;
} OwnPartial;

typedef struct {
    OwnPartial *items;
    Py_ssize_t size, room;
} OwnPartials;

/* A pattern whose partial matches have ways of their own; without kinds if it is another one. */
typedef struct {
    Py_ssize_t kinds; /* of events, by the conditions that hold */
    Decision **steps; /* by kind, and then by state; NULL until there is an event of the kind */
    uint32_t *changed; /* by kind: a bit for each state that it does not leave as it is */
    /* Those of a stretch that is not done. */
    OwnPartials partials, following;
    Py_ssize_t first; /* the first partial match whose window is open */
    TakenEvents taken;
    uint32_t busy; /* a bit for each state that partial matches may be in */
    int64_t deadline; /* when the oldest one ends */
} OwnWays;

typedef struct {
    PyObject_HEAD
    PyTypeObject *key_type; /* the module's */
    PyObject *helper; /* bridge.py's, for everything that needs Python */
    PyObject *context; /* the context passed to the user's conditions */
    PyObject *view; /* from a handle to the event as the user's conditions see it */
    Pattern pattern;
    int64_t limit; /* of partial matches, 0 for none */
    bool drop_oldest, processing_time, sets_timers, gives_reached, by_windows;
    Values values;
    Fields fields;
    Evaluation asked;
    Seen seen;
    Workspace work;
    Unbranched unbranched;
    OwnWays own_ways;
    Matches matches;
    Found found, late;
    EndCounts ended;
    Py_ssize_t failed; /* the stretch or item that an error came from */
    /* By kind of event, the conditions that hold: whether a key with no partial match is known to
       stay as it is. */
    bool passes[KINDS];
} Kernel;

/* evaluation.c */
/* Make room for the words of answer bits, `known` of which come with the events. */
int evaluation_make(Evaluation *asked, PyObject *known);
/* Release all memory. */
void evaluation_free(Evaluation *asked);
/* Select an event in the words after the first. */
void evaluation_begin_more(Evaluation *asked, const int64_t *bits, Py_ssize_t words);
/* Decide an event in a state. It has a single caller, so that compilers inline it there. */
Decision *evaluation_of_event(Kernel *kernel, int32_t state);
/* The same for runs that are counted. */
Decision *evaluation_of_runs(Kernel *kernel, int32_t state);
/* Decide for one partial match, from the first condition that depends on it. */
Decision *evaluation_of_match(Kernel *kernel, Partial *partial, Decision *decision);
/* Decide for partial matches with these slots, if no condition is a function of the context. */
Decision *evaluation_with(Kernel *kernel, const Tally *tally, Decision *decision);

/* Select an event with some words of bits; further words are 0. */
static inline void evaluation_begin(
    Evaluation *asked, int64_t handle, int64_t timestamp, const int64_t *bits, Py_ssize_t words) {
    asked->handle = handle;
    asked->timestamp = timestamp;
    asked->first.known = asked->first.always_known;
    asked->first.holds = words > 0 ? (uint64_t)*bits : 0;
    if (asked->words > 1) evaluation_begin_more(asked, bits, words);
    Py_CLEAR(asked->row);
}

static inline void evaluation_end(Evaluation *asked) { Py_CLEAR(asked->row); }

/* context.c */
extern PyType_Spec context_spec;
/* Return a new context for conditions in Python. */
PyObject *context_new(Kernel *kernel, PyTypeObject *type);
/* Discard what conditions saw: a key is done, or handles refer to other events. */
void context_forget(Kernel *kernel);
/* Return the event of a handle as the user's conditions see it. */
PyObject *view_of(Kernel *kernel, int64_t handle);
/* Put the way of a run into the workspace's path; raise if damaged state has none. */
int context_path(Kernel *kernel, Node *node, Version *version);
/* Raise for a partial match whose versions do not determine its way. */
int context_ambiguous(Kernel *kernel, const Node *node, Py_ssize_t ways);

/* deadlines.c */
/* Find when the first window of a partial match ends; return false if none does. */
bool deadline_of(const Kernel *kernel, const Partial *partial, int64_t *deadline);
/* Return the end of the window that is over; if both are, the gap's. */
int64_t deadline_passed(const Kernel *kernel, const Partial *partial, int64_t timestamp);
/* Compute a key's earliest deadline anew: not of the first, since a clock may have stepped back. */
void key_first_deadline(const Kernel *kernel, Key *key);
/* The same after an event, or an earlier time that was one before it. */
void key_deadline_after(const Kernel *kernel, Key *key);
/* Let a partial match's deadline count among its key's. */
void key_earlier_deadline(const Kernel *kernel, Key *key, const Partial *partial);

/* emission.c */
/*
 * Emit matches, sorted by start, as Java's priority queue does. Since they are sorted, the queue's
 * array is the list itself; if all starts differ, the order is unchanged.
 */
int emit_at_once(Kernel *kernel, Key *key);
/*
 * Emit the matches that the skip strategy releases, earliest start first. A match waits while a
 * partial match with an earlier start lives, and each emitted match prunes others.
 */
int emit(Kernel *kernel, Key *key, Partials *completed, int64_t timestamp);
/* Whether a partial match began with an earlier event than another. */
bool starts_before(const Partial *left, const Partial *right);

/* nfa.c */
/*
 * Return the first time up to a given one at which a match may come out by the end of a window. A
 * skip strategy decides again at each such time, as it does if time passes without a jump.
 */
int64_t key_release_time(const Kernel *kernel, const Key *key, int64_t timestamp);
/* End the partial matches whose window has passed. */
int key_advance(Kernel *kernel, Key *key, int64_t timestamp);
/* Process the current event for every partial match of a key; return 1 if that may change any. */
int key_apply(Kernel *kernel, Key *key);
/* Drop the `count` partial matches that began first, and give the matches that they held back. */
int key_drop_oldest(Kernel *kernel, Key *key, Py_ssize_t count);

/* operator.c */
typedef struct {
    Array times, handles, bits;
    Py_ssize_t words; /* of bits for each event */
    int64_t base; /* the handle of the first event if there are no handles */
} Events;

/* Let Python name the pattern in an error about memory; `partials` is 0 outside matching. */
void name_memory_error(Kernel *kernel, Py_ssize_t partials);
/*
 * Match events in their final order, from `start` on. Return where to continue: `end`, or, once
 * the results have `most_events`, an earlier event with a new time; -1 with an exception.
 */
Py_ssize_t key_process(
    Kernel *kernel, Key *key, const Events *events, Py_ssize_t start, Py_ssize_t end,
    Py_ssize_t most_events);
/* Advance time for a key whose events up to then were processed. */
int key_advance_watermark(Kernel *kernel, Key *key, int64_t timestamp);
/* Return whether nothing is pending, so that the key needs no state. */
bool key_is_idle(const Kernel *kernel, const Key *key);

/* unbranched.c */
/* Read what Unbranched in Python has; no stages are of any pattern. */
int unbranched_read(Unbranched *own, PyObject *stages, PyObject *actions);
/* Match all events of a key, and end its windows. */
int unbranched_match(Kernel *kernel, const Events *events, Py_ssize_t start, Py_ssize_t end);
/* count_reached() -> nothing: count what is reached, where it is possible, and give no matches. */
PyObject *kernel_count_reached(Kernel *kernel, PyObject *unused);
/* reached() -> (stage, partial matches, keys) of what has been counted */
PyObject *kernel_reached(Kernel *kernel, PyObject *unused);
/* Release all memory. */
void unbranched_free(Unbranched *own);

/* own_ways.c */
/* Be ready for events with so many bits, if partial matches have ways of their own; else negative. */
int own_ways_open(OwnWays *ways, const Pattern *pattern, int bits);
/*
 * Match events of a key, which has those from `first` to `end`, from `row` on; end its windows with
 * the last one. Return where to continue: `end`, or once there are enough results an earlier row.
 */
Py_ssize_t own_ways_match(
    Kernel *kernel, const Events *events, Py_ssize_t first, Py_ssize_t row, Py_ssize_t end,
    Py_ssize_t most_events);
/* Release all memory. */
void own_ways_free(OwnWays *ways);

/* state_writer.c, state_reader.c */
typedef struct {
    int64_t *items;
    Py_ssize_t size, room;
    bool failed; /* memory ran out; nothing more is added */
} Numbers;

/* Add a number; if memory runs out, the writer fails at its end. */
void numbers_put(Numbers *numbers, int64_t number);
/* Write a key's state, and separately the handles of its events. */
int key_write(const Key *key, Numbers *numbers, Numbers *handles);
/* Read what key_write wrote into a clear key; raise for numbers that no key can have. */
int key_read(
    Kernel *kernel, Key *key, const int64_t *numbers, Py_ssize_t size, int64_t first_handle,
    int64_t handle_count);

/* state_counts.c */
/*
 * count_states(numbers, lengths) -> (held, largest, oldest, partial matches by stage...)
 *
 * Count the matches held back, the partial matches of the key with the most, the earliest start, and
 * partial matches by the stage of their last event, in the states of many keys.
 */
PyObject *kernel_count_states(Kernel *kernel, PyObject *args);

/* runs.c */
/* Whether matching calls Python or handles its objects, and so keeps its lock. */
bool kernel_needs_python(const Kernel *kernel);
/* Open the arrays of events, with up to `most_words` words of bits for each event. */
int events_open(
    Events *events, PyObject *times, PyObject *handles, PyObject *bits, Py_ssize_t most_words);
/* Release the arrays of events. */
void events_close(Events *events);
/*
 * run(key, times, handles, base, bits, bounds, needed, stretch, row, most_events)
 * -> (stretch, row, key)
 *
 * Match stretches of events, each of a different key, from a row on. Return the key of the last
 * one, since its events may continue in the next chunk; the others get the final watermark. Other
 * threads can run Python meanwhile, unless conditions need it.
 */
PyObject *kernel_run(Kernel *kernel, PyObject *args);
/*
 * run_page(times, handles, base, bits, positions, starts, ends,
 *          numbers, number_ends, event_ends, first_held, watermark)
 * -> (items, deadlines, lengths, counts, numbers, handles) of the keys that continue, as bytes
 *
 * Process each item's events, which may be none, for the key at its position in the page, or for a
 * new key if that is negative; then advance time to the watermark.
 */
PyObject *kernel_run_page(Kernel *kernel, PyObject *args);

/* key_object.c */
typedef struct {
    PyObject_HEAD
    Key key;
} KeyObject;

extern PyType_Spec key_spec;

/* Return a new key, empty. */
KeyObject *key_object_new(const Kernel *kernel);

#endif
