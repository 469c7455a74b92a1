/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The versioned shared buffer: Dewey numbers, events, nodes, edges, and the ways through them.
 *
 * Two kinds of counts must not be mixed up: `locks` is the reference count of Flink's buffer, which
 * decides what a run may still walk; `memory` counts C pointers and decides what is freed.
 */
#ifndef PYFLINKCEP_BUFFER_H
#define PYFLINKCEP_BUFFER_H

#include "base/values.h"

#define NO_STATE (-1)
#define GONE (-2)

/* --- version.c */

typedef struct Version {
    struct Version *parent;
    uint64_t code; /* a hash of all digits */
    int64_t digit;
    int64_t memory;
    int32_t length;
    uint32_t root; /* the first digit, cut to 32 bits */
} Version;

Version *version_following(Version *parent, int64_t digit);
Version *version_increase(Version *version, int64_t times);
Version *version_add_stage(Version *version);
Version *version_keep(Version *version);
void version_drop(Version *version);
bool version_same(const Version *left, const Version *right);
bool version_compatible(const Version *version, const Version *other);

/* --- edges.c */

struct Node;
struct Entry;

typedef struct {
    int64_t locks;
    struct Node *target; /* NULL at the beginning of a match */
    Version *version;
    Tally *tally; /* the slots' values on the way up to here; NULL without slots */
    uint64_t serial; /* distinguishes edges */
} Edge;

typedef struct EdgeIndex EdgeIndex;

typedef struct Node {
    int64_t locks;
    struct Entry *entry;
    struct Node *next_of_entry;
    struct Node *next_to_free;
    Edge *edges; /* `own`, or a separate block for more */
    EdgeIndex *index; /* of more than a few edges; otherwise NULL, and no place is free */
    int32_t edge_count, edge_room;
    int32_t edge_end; /* the places in use: with an index, those without a version are free */
    int32_t memory;
    int32_t stage;
    int32_t number; /* while state is written: its index, otherwise GONE */
    bool alive;
    Edge own;
} Node;

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

Edge *node_append(Node *node, int64_t locks, Node *target, Version *version);
Edge *node_edge(const Node *node, const Version *version, Py_ssize_t *ways);
int32_t node_way_indexed(const Node *node, const Version *version, int32_t from);
void node_remove(Node *node, int32_t place);
void node_squeeze(Node *node);
void edge_free(Edge *edge);
void edges_free(Node *node);

/* Return the first place, from one on, of an edge that a run may walk; `edge_end` for none. */
static inline int32_t node_way(const Node *node, const Version *version, int32_t from) {
    if (node->index != NULL) return node_way_indexed(node, version, from);
    while (from < node->edge_end && !version_compatible(version, node->edges[from].version)) from++;
    return from;
}

/* --- buffer.c */

Node *node_keep(Node *node);
void node_drop(Node *node);
Entry *buffer_append(Buffer *buffer, int64_t timestamp, int64_t id, int64_t handle, int64_t locks);
Node *entry_append(Entry *entry, int32_t stage, int64_t locks, bool alive);
int edge_count_in(
    const Values *values, Edge *edge, int32_t stage, const Entry *entry, Node *previous,
    const Version *version);
Entry *buffer_register(Buffer *buffer, int64_t handle, int64_t timestamp);
Node *buffer_put(
    const Values *values, int32_t stage, Entry *entry, Node *previous, Version *version);
Node *buffer_extend(
    Buffer *buffer, const Values *values, int32_t stage, Entry *entry, Node *previous,
    Version *version, Version *following);
int buffer_relabel(Buffer *buffer, Node *node, Version *old, Version *now);
void buffer_lock_node(Node *node, const Version *version);
int buffer_release_node(Buffer *buffer, Node *node, Version *version);
void buffer_release_event(Buffer *buffer, Entry *entry);
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

int path_push(Path *path, int32_t stage, Entry *entry);
int path_of_run(Path *path, Node *node, Version *version);
int paths_of_run(Node *node, Version *version, PathVisitor visit, void *context);

#endif
