/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edges of a node: few in an array, many with an index beside it. Mirror: the lists of edges
 * and ManyEdges in engines/flink/sharedbuffer.py.
 *
 * A run walks an edge whose version is a prefix of its own, or differs from it in the last digit.
 * So the index chains edges by the digits before the last: the candidates are in the chains of the
 * run's version and of its prefixes. For each first digit it has the lengths of the versions, so
 * that only the prefixes of such lengths are looked up.
 */
#include "flink/edges.h"

enum { FEW = 8 };

typedef struct {
    int32_t newest; /* place of the last edge of the chain; NO_STATE for none */
    int32_t shortest; /* length of a version with this first digit */
    uint32_t lengths; /* all of them, modulo 32; those of removed edges stay */
} IndexSlot;

struct EdgeIndex {
    uint32_t mask; /* there are mask + 1 slots, at least as many as places for edges */
    IndexSlot *slots;
    int32_t *older; /* for each place the next of its chain */
};

/* --- the index */

static IndexSlot *slot_of(const EdgeIndex *index, uint64_t code) {
    code ^= code >> 32;
    return &index->slots[(uint32_t)code & index->mask];
}

static IndexSlot *chain_of(const EdgeIndex *index, const Version *version) {
    const Version *prefix = version->parent;
    return slot_of(index, prefix == NULL ? version->root : prefix->code);
}

static IndexSlot *root_of(const EdgeIndex *index, const Version *version) {
    return slot_of(index, version->root);
}

static void index_add(EdgeIndex *index, const Edge *edges, int32_t place) {
    const Version *version = edges[place].version;
    IndexSlot *chain = chain_of(index, version), *root = root_of(index, version);
    index->older[place] = chain->newest;
    chain->newest = place;
    if (version->length < root->shortest) root->shortest = version->length;
    root->lengths |= UINT32_C(1) << (version->length & 31);
}

static void index_fill(EdgeIndex *index, const Node *node) {
    for (uint32_t i = 0; i <= index->mask; i++)
        index->slots[i] = (IndexSlot){NO_STATE, INT32_MAX, 0};
    for (int32_t i = 0; i < node->edge_end; i++)
        if (node->edges[i].version != NULL) index_add(index, node->edges, i);
}

/* Make an index with a place for each edge that there is room for, in the place of any before. */
static int index_make(Node *node) {
    size_t size = 2 * FEW;
    while (size < (size_t)node->edge_room) size *= 2;
    EdgeIndex *index = allocate(sizeof(EdgeIndex) + size * (sizeof(IndexSlot) + sizeof(int32_t)));
    if (index == NULL) return -1;
    index->mask = (uint32_t)(size - 1);
    index->slots = (IndexSlot *)(index + 1);
    index->older = (int32_t *)(index->slots + size);
    index_fill(index, node);
    release_memory(node->index);
    node->index = index;
    return 0;
}

static bool has_place(const EdgeIndex *index, int32_t place) {
    return index != NULL && (uint32_t)place <= index->mask;
}

static void index_remove(EdgeIndex *index, const Edge *edges, int32_t place) {
    int32_t *link = &chain_of(index, edges[place].version)->newest;
    while (*link != place) link = &index->older[*link];
    *link = index->older[place];
}

int32_t node_way_indexed(const Node *node, const Version *version, int32_t from) {
    const EdgeIndex *index = node->index;
    const IndexSlot *root = root_of(index, version);
    int32_t found = node->edge_end;
    for (const Version *prefix = version; prefix != NULL && prefix->length >= root->shortest;
        prefix = prefix->parent) {
        if ((root->lengths >> (prefix->length & 31) & 1) == 0) continue;
        for (int32_t i = chain_of(index, prefix)->newest; i >= from; i = index->older[i]) {
            const Version *other = node->edges[i].version;
            if (i < found && other->length == prefix->length &&
                (prefix == version ? version_compatible(version, other)
                                   : version_same(prefix, other)))
                found = i;
        }
    }
    return found;
}

/* --- edges */

static int reserve_edge(Node *node) {
    bool is_own = node->edges == &node->own;
    Py_ssize_t room = node->edge_room;
    Edge *edges =
        reserve(is_own ? NULL : node->edges, &room, (Py_ssize_t)node->edge_end + 1, sizeof(Edge));
    if (edges == NULL) return -1;
    if (is_own) edges[0] = node->own;
    node->edges = edges;
    node->edge_room = room < INT32_MAX ? (int32_t)room : INT32_MAX;
    return 0;
}

Node *node_keep(Node *node) {
    node->memory++;
    return node;
}

Edge *node_append(Node *node, int64_t locks, Node *target, Version *version) {
    if (node->edge_end == INT32_MAX) return no_memory();
    if (node->edge_end == node->edge_room && reserve_edge(node) < 0) return NULL;
    if (node->edge_end >= FEW && !has_place(node->index, node->edge_end) && index_make(node) < 0)
        return NULL;
    int32_t place = node->edge_end++;
    node->edge_count++;
    node->edges[place] = (Edge){.locks = locks,
        .target = target == NULL ? NULL : node_keep(target),
        .version = version_keep(version)};
    if (node->index != NULL) index_add(node->index, node->edges, place);
    return &node->edges[place];
}

Edge *node_edge(const Node *node, const Version *version, Py_ssize_t *ways) {
    if (node->edge_count == 1) {
        *ways = 1;
        return &node->edges[0];
    }
    Edge *found = NULL;
    *ways = 0;
    for (int32_t i = node_way(node, version, 0); i < node->edge_end;
        i = node_way(node, version, i + 1)) {
        found = &node->edges[i];
        (*ways)++;
    }
    return found;
}

void edge_free(Edge *edge) {
    version_drop(edge->version);
    tally_free(edge->tally);
}

void node_remove(Node *node, int32_t place) {
    if (node->index != NULL) index_remove(node->index, node->edges, place);
    edge_free(&node->edges[place]);
    node->edges[place].version = NULL;
    node->edge_count--;
}

void node_squeeze(Node *node) {
    if (node->index != NULL && node->edge_count >= node->edge_end / 2) return;
    int32_t kept = 0;
    for (int32_t i = 0; i < node->edge_end; i++)
        if (node->edges[i].version != NULL) node->edges[kept++] = node->edges[i];
    node->edge_end = kept;
    if (node->index == NULL) return;
    if (kept > FEW) {
        index_fill(node->index, node);
        return;
    }
    release_memory(node->index);
    node->index = NULL;
}

void edges_free(Node *node) {
    release_memory(node->index);
    if (node->edges != &node->own) release_memory(node->edges);
}
