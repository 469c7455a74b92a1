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

int partial_push(Partials *partials, Partial partial);
int partial_push_kept(Partials *partials, Partial partial);
void partial_drop(Partial *partial);
int partial_release(Key *key, Partial *partial);
void partials_clear(Partials *partials);
void partials_forget(Partials *partials, Py_ssize_t count);
void partials_swap(Partials *one, Partials *other);
int key_begin(Key *key, int32_t start);
void key_clear(Key *key);
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

int found_event(Found *found, int32_t stage, int64_t handle);
int found_path(Found *found, const Path *path);
int found_end(Found *found, uint8_t kind, int64_t timestamp);
void found_forget_open(Found *found);
void found_empty(Found *found);
void found_free(Found *found);
int matches_add(
    Matches *matches, const Partial *partial, const Path *path, int64_t time, int32_t last_stage,
    int64_t last_handle);
void matches_empty(Matches *matches);
void matches_free(Matches *matches);

#endif
