/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of the shared buffer, and the edges back from them. */
#ifndef PYFLINKCEP_EDGES_H
#define PYFLINKCEP_EDGES_H

#include "base/values.h"
#include "flink/version.h"

#define NO_STATE (-1)
#define GONE (-2)

struct Node;
struct Entry;

typedef struct {
    int64_t locks;
    struct Node *target; /* NULL at the beginning of a match */
    Version *version;
    Tally *tally; /* the slots' values on the way up to here; NULL without slots */
    uint64_t serial; /* distinguishes edges; 0 until it has to */
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

/* Count one more reference to a node, and return it. */
Node *node_keep(Node *node);
/* Add an edge to a node, or to none if `target` is NULL; NULL without memory. */
Edge *node_append(Node *node, int64_t locks, Node *target, Version *version);
/* Return the edge that a run came by; `ways` is how many there are, 1 unless versions collided. */
Edge *node_edge(const Node *node, const Version *version, Py_ssize_t *ways);
/* Like node_way, by the chains of the run's version and of its prefixes. */
int32_t node_way_indexed(const Node *node, const Version *version, int32_t from);
/* Remove an edge, whose target has a new owner; call node_squeeze before anything else. */
void node_remove(Node *node, int32_t place);
/* Close the gaps that removed edges left; if the edges are many, once half are gone. */
void node_squeeze(Node *node);
/* Drop the version and the tally of an edge; its target stays. */
void edge_free(Edge *edge);
/* Free the room for the edges of a node, whose edges are freed. */
void edges_free(Node *node);

/* Return the first place, from one on, of an edge that a run may walk; `edge_end` for none. */
static inline int32_t node_way(const Node *node, const Version *version, int32_t from) {
    if (node->index != NULL) return node_way_indexed(node, version, from);
    while (from < node->edge_end && !version_compatible(version, node->edges[from].version)) from++;
    return from;
}

#endif
