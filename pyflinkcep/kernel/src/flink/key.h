/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one key, and the results of matching it. */
#ifndef PYFLINKCEP_KEY_H
#define PYFLINKCEP_KEY_H

#include "flink/buffer.h"

/* --- partials.c */

typedef struct {
    Version *version;
    Node *node;
    int64_t start_timestamp, start_id;
    int32_t state;
    bool has_start;
} Partial;

/* The holder of such a list owns what its items refer to. */
typedef struct {
    Partial *items;
    Py_ssize_t size, room;
} Partials;

typedef struct {
    Buffer buffer;
    Partials partials, completed; /* `completed` is a heap by start event */
    int64_t *timers;
    Py_ssize_t timer_count, timer_room;
    int64_t deadline;
    int32_t *present; /* the states that partial matches are in, ascending */
    Py_ssize_t present_count, present_room;
    bool never, is_new_start, present_known;
} Key;

/* Add a partial match; if memory runs out, the caller still owns what it refers to. */
int partial_push(Partials *partials, Partial partial);
/* Add a partial match that shares its node and version with another. */
int partial_push_kept(Partials *partials, Partial partial);
/* Drop the references of a partial match. */
void partial_drop(Partial *partial);
/* Release what a partial match holds in the buffer, and drop it even if memory runs out. */
int partial_release(Key *key, Partial *partial);
/* Drop all; the room stays. */
void partials_clear(Partials *partials);
/* Remove the first `count` from a list; they now have other owners, or were dropped. */
void partials_forget(Partials *partials, Py_ssize_t count);
/* Exchange two lists. */
void partials_swap(Partials *one, Partials *other);
/* Make a new key; a key that could not be made is clear. */
int key_begin(Key *key, int32_t start);
/* Discard all of a key's state. */
void key_clear(Key *key);
/* Refuse a key that was cleared after an error: every other has at least its start state. */
int key_check_usable(const Key *key);

/* --- results.c */

enum { TIMEOUT, MATCH, REACHED };

typedef struct {
    uint8_t *kinds; /* a timeout, a match, or a stage that was reached */
    int64_t *times;
    int64_t *ends; /* where each one's events end */
    Py_ssize_t size, room;
    int32_t *stages;
    int64_t *handles;
    Py_ssize_t events, event_room;
    int64_t dropped;
} Found;

typedef struct {
    int64_t start_timestamp, start_id;
    int64_t time;          /* when it came out */
    Py_ssize_t first, end; /* of its events */
} FoundMatch;

/* Matches of one event, or of one advance of time, that need not wait. */
typedef struct {
    FoundMatch *items;
    Py_ssize_t size, room;
    Found found; /* only its events are used */
} Matches;

/* Make room for so many events in all. */
int found_grow_events(Found *found, Py_ssize_t needed);
/* Make room for some more events. */
static inline int found_room(Found *found, Py_ssize_t count) {
    Py_ssize_t needed = found->events + count;
    return needed <= found->event_room ? 0 : found_grow_events(found, needed);
}
/* Add an event of the current match. */
int found_event(Found *found, int32_t stage, int64_t handle);
/* Add the events of a path to the current match. */
int found_path(Found *found, const Path *path);
/* End a result, whose events were added before. */
int found_end(Found *found, uint8_t kind, int64_t timestamp);
/*
 * Return the matches, and then the timeouts, as bytes: the kind of each in 8 bits, its time, the end
 * of its events, their stages in 8, and their rows in 32, which are those of some numbers at their
 * handles. With the number of partial matches dropped.
 */
PyObject *found_kept(const Found *found, PyObject *numbers, int64_t begin);
/* Discard the events of an unfinished result. */
void found_forget_open(Found *found);
/* Forget all matches; the room stays. */
void found_empty(Found *found);
/* Release all memory. */
void found_free(Found *found);
/*
 * Add the match of a partial match by a way; `last_stage` is the stage of one more event that
 * completes it, negative for none.
 */
int matches_add(
    Matches *matches, const Partial *partial, const Path *path, int64_t time, int32_t last_stage,
    int64_t last_handle);
/* Forget all matches; the room stays. */
void matches_empty(Matches *matches);
/* Release all memory. */
void matches_free(Matches *matches);

#endif
