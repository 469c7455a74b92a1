/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pattern, ready to run: the declarations that the files of the kernel share.
 *
 * The kernel mirrors the plain path of nfa/, sharedbuffer/ and operator/, with the same names and
 * steps: it runs the tables that engines/flink/nfa/steps.py computes, on the same versioned buffer, and writes
 * the same state. The plain path is the specification: a difference in an answer or in state is a
 * bug here. Each file names its mirror in its first lines.
 */
#ifndef PYFLINKCEP_KERNEL_H
#define PYFLINKCEP_KERNEL_H

#include "base/fields.h"
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
    Matches matches;
    Found found, late;
    EndCounts ended;
    Py_ssize_t failed; /* the stretch or item that an error came from */
} Kernel;

/* evaluation.c */
int evaluation_make(Evaluation *asked, PyObject *known);
void evaluation_free(Evaluation *asked);
void evaluation_begin_more(Evaluation *asked, const int64_t *bits, Py_ssize_t words);
Decision *evaluation_of_event(Kernel *kernel, int32_t state);
Decision *evaluation_of_runs(Kernel *kernel, int32_t state);
Decision *evaluation_of_match(Kernel *kernel, Partial *partial, Decision *decision);
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
PyObject *context_new(Kernel *kernel, PyTypeObject *type);
void context_forget(Kernel *kernel);
PyObject *view_of(Kernel *kernel, int64_t handle);
int context_path(Kernel *kernel, Node *node, Version *version);
int context_ambiguous(Kernel *kernel, const Node *node, Py_ssize_t ways);

/* deadlines.c */
bool deadline_of(const Kernel *kernel, const Partial *partial, int64_t *deadline);
int64_t deadline_passed(const Kernel *kernel, const Partial *partial, int64_t timestamp);
void key_first_deadline(const Kernel *kernel, Key *key);
void key_earlier_deadline(const Kernel *kernel, Key *key, const Partial *partial);

/* emission.c */
int emit_at_once(Kernel *kernel, Key *key);
int emit(Kernel *kernel, Key *key, Partials *completed, int64_t timestamp);
bool starts_before(const Partial *left, const Partial *right);

/* nfa.c */
int64_t key_release_time(const Kernel *kernel, const Key *key, int64_t timestamp);
int key_advance(Kernel *kernel, Key *key, int64_t timestamp);
int key_apply(Kernel *kernel, Key *key);
int key_drop_oldest(Kernel *kernel, Key *key, Py_ssize_t count);

/* operator.c */
typedef struct {
    Array times, handles, bits;
    Py_ssize_t words; /* of bits for each event */
    int64_t base; /* the handle of the first event if there are no handles */
} Events;

void name_memory_error(Kernel *kernel, Py_ssize_t partials);
Py_ssize_t key_process(
    Kernel *kernel, Key *key, const Events *events, Py_ssize_t start, Py_ssize_t end,
    Py_ssize_t most_events);
int key_advance_watermark(Kernel *kernel, Key *key, int64_t timestamp);
bool key_is_idle(const Kernel *kernel, const Key *key);

/* state_writer.c, state_reader.c */
typedef struct {
    int64_t *items;
    Py_ssize_t size, room;
    bool failed; /* memory ran out; nothing more is added */
} Numbers;

void numbers_put(Numbers *numbers, int64_t number);
int key_write(const Key *key, Numbers *numbers, Numbers *handles);
int key_read(
    Kernel *kernel, Key *key, const int64_t *numbers, Py_ssize_t size, int64_t first_handle,
    int64_t handle_count);

/* state_counts.c */
PyObject *kernel_count_states(Kernel *kernel, PyObject *args);

/* runs.c */
int events_open(
    Events *events, PyObject *times, PyObject *handles, PyObject *bits, Py_ssize_t most_words);
void events_close(Events *events);
PyObject *kernel_run(Kernel *kernel, PyObject *args);
PyObject *kernel_run_page(Kernel *kernel, PyObject *args);

/* key_object.c */
typedef struct {
    PyObject_HEAD
    Key key;
} KeyObject;

extern PyType_Spec key_spec;

KeyObject *key_object_new(const Kernel *kernel);

#endif
