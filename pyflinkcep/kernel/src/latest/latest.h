/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of which the latest run at each step lives, over offers in columns. */
#ifndef PYFLINKCEP_LATEST_H
#define PYFLINKCEP_LATEST_H

#include "base/arrays.h"

/* As NEVER and BROKEN in engines/latest/machine.py. */
#define NEVER INT64_MIN
#define BROKEN (INT64_MIN + 1)

enum { NONE = -1 };

/* As Role in engines/latest/machine.py. */
typedef enum { ROLE_TAKES, ROLE_LEADING, ROLE_BETWEEN, ROLE_TRAILING, ROLE_UNTIL } Role;

/* A run: its last event, and those before it as a chain of nodes. */
typedef struct {
    int64_t first, handle;
    int32_t chain;
    bool is_taken;
} RunSlot;

/* What a run of a rule with missing steps has too. */
typedef struct {
    int64_t last, before, between; /* `between` is BROKEN for good once an event broke the run */
} Mark;

typedef struct {
    int64_t handle;
    int32_t before;
} RunNode;

/* What a key of a rule with missing steps has too. */
typedef struct {
    int64_t leading, leading_before;
    int32_t waiting, last_waiting;
} Extra;

/* A run with all its events that waits for what a trailing step says. */
typedef struct {
    int64_t since, last, before, number;
    int32_t next, row;
} Waiting;

typedef struct {
    int64_t key;
    int32_t row;
} KeyEntry;

typedef struct {
    Role role;
    int32_t rank;
} LatestStep;

typedef struct {
    LatestStep *steps; /* the last is `until` */
    int32_t step_count, size; /* steps with `until`; the events of a match */
    int32_t code; /* of step 0 */
    uint64_t maxspan; /* UINT64_MAX for none */
    bool leads, trails, has_missing;
    KeyEntry *entries; /* by hash of the key; row NONE is free */
    Py_ssize_t entry_room;
    int64_t *keys; /* by row */
    RunSlot *slots; /* by row and rank */
    Mark *marks; /* the same */
    Extra *extras; /* by row */
    Py_ssize_t row_count, row_room;
    Waiting *waiting;
    int64_t *waiting_handles; /* `size` for each */
    Py_ssize_t waiting_count, waiting_room, waiting_handle_room;
    int32_t free_waiting;
    int64_t number; /* of the next completed run */
} LatestRule;

/* A match of a rule whose matches may have to be put in order. */
typedef struct {
    int64_t number, key;
    Py_ssize_t at; /* where its handles begin */
} Told;

typedef struct {
    int32_t *rules;
    int64_t *keys, *handles, *ends;
    Py_ssize_t size, rule_room, key_room, end_room, handle_count, handle_room;
} LatestFound;

/* Offers of one rule and step. */
typedef struct {
    const int32_t *events;
    const int64_t *keys;
    Py_ssize_t at, end;
} Cursor;

typedef struct {
    PyObject_HEAD
    LatestRule *rules;
    Py_ssize_t rule_count, code_count;
    RunNode *nodes;
    Py_ssize_t node_count, node_room;
    int32_t free_node;
    LatestFound found;
    Told *told;
    int64_t *told_handles;
    Py_ssize_t told_count, told_room, told_handle_count, told_handle_room;
    bool is_busy;
} Latest;

/* Milliseconds from one time to a later one, which may be all of int64's range apart. */
static inline uint64_t elapsed(int64_t from, int64_t to) { return (uint64_t)to - (uint64_t)from; }

/* --- latest_rows.c */
/* Return the row of a key, or NONE. */
int32_t row_of(const LatestRule *rule, int64_t key);
/* Return the row of a key, made if there is none; NONE if memory ran out. */
int32_t row_made(LatestRule *rule, int64_t key);
/* Let a run of a slot go. */
void slot_clear(Latest *latest, RunSlot *slot);
/* Put an event into the run of a slot, behind those that it has. */
int slot_extend(Latest *latest, RunSlot *slot, int64_t handle);
/* Write the events of a run. */
void slot_handles(const Latest *latest, const RunSlot *slot, int32_t count, int64_t *handles);
/* Drop the state of a rule's keys. */
void rule_clear(Latest *latest, LatestRule *rule);
/* Release what a rule owns. */
void rule_free(LatestRule *rule);

/* --- latest_runs.c */
/* Offer an event to a step. */
int rule_offer(
    Latest *latest, LatestRule *rule, const LatestStep *step, int64_t handle, int64_t time,
    int64_t key);
/* Tell the matches decided by that no event before `time`, or up to it, will still come. */
int rule_advance(Latest *latest, LatestRule *rule, int64_t time, bool inclusive);
/* Append a waiting run. */
int rule_wait(
    LatestRule *rule, int32_t row, int64_t since, int64_t last, int64_t before,
    const int64_t *handles);
/* Move the told matches of a rule to the found ones, in their order. */
int rule_tell(Latest *latest, int32_t rule);
/* Drop runs that are garbage if no event up to `time` will still come. */
void rule_prune(Latest *latest, LatestRule *rule, int64_t time);

/* --- latest_offers.c */
/* Offer events to rules; return 1 if the events of a step are not in order, with nothing done. */
int latest_process(
    Latest *latest, const Array *times, const Array *events, const Array *steps, const Array *keys,
    int64_t first, bool is_last);

/* --- latest_state.c */
PyObject *latest_written(Latest *latest);
int latest_read(Latest *latest, const Array arrays[7]);

/* --- latest_object.c */
extern PyType_Spec latest_spec;

#endif
