/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The versioned shared buffer: events, their nodes, and the ways through them.
 *
 * Two kinds of counts must not be mixed up: `locks` is the reference count of Flink's buffer, which
 * decides what a run may still walk; `memory` counts C pointers and decides what is freed.
 */
#ifndef PYFLINKCEP_BUFFER_H
#define PYFLINKCEP_BUFFER_H

#include "flink/edges.h"

typedef struct Entry {
    int64_t timestamp, id;
    int64_t handle;
    int64_t locks;
    int32_t memory;
    bool listed;
    struct Entry *before, *after; /* in order of registration */
    Node *first_node, *last_node;
} Entry;

typedef struct {
    Entry *first, *last;
    int64_t entries;
    int64_t timestamp, event_count;
    bool has_timestamp;
    bool unsorted; /* ids are not in order of registration, because a clock stepped back */
} Buffer;

/* --- buffer.c */

/* Drop a reference to a node; without recursion, since a loop may have taken any number of events. */
void node_drop(Node *node);
/* Add an event at the end; NULL without memory. */
Entry *buffer_append(Buffer *buffer, int64_t timestamp, int64_t id, int64_t handle, int64_t locks);
/* Add a node of an event for a stage; NULL without memory. */
Node *entry_append(Entry *entry, int32_t stage, int64_t locks, bool alive);
/* Compute the tally of the way up to an edge from that of the node before. */
int edge_count_in(
    const Values *values, Edge *edge, int32_t stage, const Entry *entry, Node *previous,
    const Version *version);
/* Store an event under a new id, with one lock that the caller must release. */
Entry *buffer_register(Buffer *buffer, int64_t handle, int64_t timestamp);
/* Put an event for a stage after a node, which is locked; NULL without memory. */
Node *buffer_put(
    const Values *values, int32_t stage, Entry *entry, Node *previous, Version *version);
/* Like put, lock with `following`, and release of what the run held before. */
Node *buffer_extend(
    Buffer *buffer, const Values *values, int32_t stage, Entry *entry, Node *previous,
    Version *version, Version *following);
/* Let a run continue under another version, which matters only at a node with several edges. */
int buffer_relabel(Buffer *buffer, Node *node, Version *old, Version *now);
/* Lock a node, and its edges that a version may follow. */
void buffer_lock_node(Node *node, const Version *version);
/* Release a node as a version reaches it, and those before it that nothing else needs. */
int buffer_release_node(Buffer *buffer, Node *node, Version *version);
/* Release one lock of an event; remove the event with the last one. */
void buffer_release_event(Buffer *buffer, Entry *entry);
/* Discard all events and nodes. */
void buffer_clear(Buffer *buffer);

/* --- paths.c */

typedef struct {
    int32_t stage;
    Entry *entry;
} PathStep;

typedef struct {
    PathStep *steps; /* oldest first */
    Py_ssize_t size, room;
} Path;

/* Takes a way; returns 1 to continue, 0 to stop, -1 with an exception. */
typedef int (*PathVisitor)(void *context, const Path *path);

/* Add a step. */
int path_push(Path *path, int32_t stage, Entry *entry);
/* Fill `path` with the first of a run's ways; leave it empty if there is none. */
int path_of_run(Path *path, Node *node, Version *version);
/* Visit the ways of a run in Flink's order; return the last visitor's answer, 1 without a way. */
int paths_of_run(Node *node, Version *version, PathVisitor visit, void *context);

#endif
