/* SPDX-License-Identifier: Apache-2.0 */
/* The shared ways of the runs of a SEQ query, and the walk that lists them. */
#ifndef PYFLINKCEP_WAYS_H
#define PYFLINKCEP_WAYS_H

#include "base/memory.h"

enum { NO_WAY = -1 };

/*
 * The ways to an event by way of an earlier one, or a union of ways: a heap whose root has the
 * latest start. A walk leaves a heap at starts out of the window, so that each node visited has a
 * way. Heaps are leftist and immutable: a merge copies the nodes on their short sides, as many as
 * the logarithms of their sizes.
 */
typedef struct {
    int64_t previous; /* NO_WAY at the start of a match */
    int64_t one, other; /* the heaps below, NO_WAY for none; `other` is the one of less rank */
    int64_t latest, earliest; /* positions of the first events of all these ways */
    int64_t at; /* the position of the event */
    int32_t component, rank;
} Way;

/* Nodes by number; those made before the window are discarded, so that numbers begin at `base`. */
typedef struct {
    Way *items;
    Py_ssize_t size, room;
    int64_t base;
    int64_t mark, marked_at; /* nodes before the mark were made before this position */
} Ways;

static inline const Way *way_at(const Ways *ways, int64_t number) {
    return &ways->items[number - ways->base];
}

/* Whether some way begins in the window, that is at `head` or later. */
static inline bool ways_live(const Ways *ways, int64_t number, int64_t head) {
    return number >= ways->base && way_at(ways, number)->latest >= head;
}

/* ways.c */
/* Make the node of an event after all ways to the one before. */
int ways_add(Ways *ways, int32_t component, int64_t at, int64_t previous, int64_t *number);
/* Merge two heaps of ways; those that begin before `head` are left out, unless all do. */
int ways_meld(Ways *ways, int64_t one, int64_t other, int64_t head, int64_t *melded);
/* Discard nodes made before the window once it has passed the mark; move the mark to now. */
void ways_forget(Ways *ways, int64_t head, int64_t at);
/* Discard all nodes. */
void ways_clear(Ways *ways);
/* Release all memory. */
void ways_free(Ways *ways);
/*
 * Return the first position from `head` on that some way begins with, searching from the `reached`
 * nodes, to which those below are added; INT64_MAX if there is none.
 */
int64_t ways_earliest(const Ways *ways, uint8_t *reached, int64_t head);

/* An event of a way. */
typedef struct {
    int64_t at;
    int32_t component;
} WayEvent;

typedef struct {
    int64_t number;
    Py_ssize_t depth; /* how many events follow its event */
} Branch;

/* A walk along all ways to some nodes that begin from `head` up to, not including, `until`. */
typedef struct {
    Branch *branches; /* where it still has to go */
    Py_ssize_t size, room;
    WayEvent *events; /* of the current way, the last one first */
    Py_ssize_t event_room;
    int64_t head, until;
} Walk;

/* walk.c */
/* Begin with the ways to a node, followed by one more event unless `last` is NULL. */
int walk_begin(Walk *walk, const Ways *ways, int64_t number, const WayEvent *last);
/* Find the next way: return 1 and its length, 0 if there is no other, -1 with an exception. */
int walk_next(Walk *walk, const Ways *ways, Py_ssize_t *length);
/* Release all memory. */
void walk_free(Walk *walk);

#endif
