/* SPDX-License-Identifier: Apache-2.0 */
/* The versioned shared buffer; see sharedbuffer/buffer.py. */
#include "kernel.h"

uint64_t buffer_serials = 0;

/* --- memory */

Node *node_keep(Node *node) {
    node->memory++;
    return node;
}

static void edge_free(Edge *edge) {
    version_drop(edge->version);
    if (edge->values != NULL) release_memory(edge->values);
}

static void entry_drop(Entry *entry) {
    if (--entry->memory == 0) release_memory(entry);
}

/* Without recursion, for a loop may have taken any number of events. */
void node_drop(Node *node) {
    if (--node->memory > 0) return;
    node->next_to_free = NULL;
    while (node != NULL) {
        Node *more = node->next_to_free;
        for (int32_t i = 0; i < node->edge_count; i++) {
            Node *target = node->edges[i].target;
            if (target != NULL && --target->memory == 0) {
                target->next_to_free = more;
                more = target;
            }
            edge_free(&node->edges[i]);
        }
        if (node->edges != &node->own) release_memory(node->edges);
        entry_drop(node->entry);
        release_memory(node);
        node = more;
    }
}

static void entry_forget_nodes(Entry *entry) {
    Node *node = entry->first_node;
    entry->first_node = entry->last_node = NULL;
    while (node != NULL) {
        Node *next = node->next_of_entry;
        node_drop(node);
        node = next;
    }
}

/* --- parts */

static bool comes_after(const Entry *entry, int64_t timestamp, int64_t id) {
    return timestamp > entry->timestamp || (timestamp == entry->timestamp && id > entry->id);
}

Entry *buffer_append(
    Buffer *buffer, int64_t timestamp, int64_t id, int64_t handle, int64_t locks) {
    Entry *entry = must_alloc(sizeof(Entry));
    *entry = (Entry){.timestamp = timestamp, .id = id, .handle = handle, .locks = locks,
                     .memory = 1, .listed = true, .before = buffer->last};
    if (buffer->last != NULL) {
        if (!comes_after(buffer->last, timestamp, id)) buffer->unsorted = true;
        buffer->last->after = entry;
    } else {
        buffer->first = entry;
        buffer->unsorted = false;
    }
    buffer->last = entry;
    buffer->entries++;
    return entry;
}

static Node *entry_node(const Entry *entry, int32_t stage) {
    for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry)
        if (node->stage == stage) return node;
    return NULL;
}

Node *entry_append(Entry *entry, int32_t stage, int64_t locks, bool alive) {
    Node *node = must_alloc(sizeof(Node));
    *node = (Node){.locks = locks, .entry = entry, .edge_room = 1, .memory = 1, .stage = stage,
                   .number = GONE, .alive = alive};
    node->edges = &node->own;
    entry->memory++;
    if (entry->last_node != NULL)
        entry->last_node->next_of_entry = node;
    else
        entry->first_node = node;
    entry->last_node = node;
    return node;
}

Edge *node_append(Node *node, int64_t locks, Node *target, Version *version) {
    if (node->edge_count == node->edge_room) {
        size_t room = (size_t)node->edge_room * 2;
        if (node->edges == &node->own) {
            node->edges = must_alloc(room * sizeof(Edge));
            node->edges[0] = node->own;
        } else {
            node->edges = must_grow(node->edges, room * sizeof(Edge));
        }
        node->edge_room = (int32_t)room;
    }
    Edge *edge = &node->edges[node->edge_count++];
    *edge = (Edge){.locks = locks, .target = target == NULL ? NULL : node_keep(target),
                   .version = version_keep(version), .serial = ++buffer_serials};
    return edge;
}

/* The edge that a run came by; `ways` is how many there are, one unless versions collided. */
Edge *node_edge(Node *node, const Version *version, Py_ssize_t *ways) {
    if (node->edge_count == 1) {
        *ways = 1;
        return &node->edges[0];
    }
    Edge *found = NULL;
    *ways = 0;
    for (int32_t i = 0; i < node->edge_count; i++)
        if (version_compatible(version, node->edges[i].version)) {
            found = &node->edges[i];
            (*ways)++;
        }
    return found;
}

/* --- events */

static bool buffer_has(const Buffer *buffer, int64_t timestamp, int64_t id) {
    for (const Entry *entry = buffer->last; entry != NULL; entry = entry->before)
        if (entry->timestamp == timestamp && entry->id == id) return true;
    return false;
}

/* Store an event under a new id, with one lock that the caller must release. */
Entry *buffer_register(Buffer *buffer, int64_t handle, int64_t timestamp) {
    if (!buffer->has_timestamp || timestamp != buffer->timestamp) {
        buffer->timestamp = timestamp;
        buffer->has_timestamp = true;
        buffer->event_count = 0;
    }
    int64_t number = buffer->event_count;
    /* Only a clock that stepped back can come upon an id in use. */
    if (buffer->last != NULL &&
        (buffer->unsorted || !comes_after(buffer->last, timestamp, number)))
        while (buffer_has(buffer, timestamp, number)) number++;
    buffer->event_count = number + 1;
    return buffer_append(buffer, timestamp, number, handle, 1);
}

void buffer_release_event(Buffer *buffer, Entry *entry) {
    if (entry->locks > 1) {
        entry->locks--;
        return;
    }
    entry->locks = 0;
    if (entry->listed) {
        entry->listed = false;
        *(entry->before == NULL ? &buffer->first : &entry->before->after) = entry->after;
        *(entry->after == NULL ? &buffer->last : &entry->after->before) = entry->before;
        buffer->entries--;
        entry_forget_nodes(entry);
        entry_drop(entry);
    } else {
        entry_forget_nodes(entry);
    }
}

void buffer_clear(Buffer *buffer) {
    Entry *entry = buffer->first;
    while (entry != NULL) {
        Entry *next = entry->after;
        entry->listed = false;
        entry_forget_nodes(entry);
        entry_drop(entry);
        entry = next;
    }
    *buffer = (Buffer){0};
}

/* --- locks */

void buffer_lock_node(Node *node, const Version *version) {
    if (!node->alive) return;
    node->locks++;
    for (int32_t i = 0; i < node->edge_count; i++)
        if (version_compatible(version, node->edges[i].version)) node->edges[i].locks++;
}

static void release_one(Buffer *buffer, Node *node) {
    if (node->locks > 1) {
        node->locks--;
        return;
    }
    node->locks = 0;
    node->alive = false;
    Entry *entry = node->entry;
    if (entry->locks > 1)
        entry->locks--;
    else
        buffer_release_event(buffer, entry);
}

typedef struct {
    Node *node;
    Version *version;
} Visit;

/* Release a node that several runs came to, and what only this one went through. */
static void release_branches(Buffer *buffer, Node *node, Version *version) {
    Py_ssize_t size = 1, room = 16;
    Visit *work = must_alloc((size_t)room * sizeof(Visit));
    work[0] = (Visit){node_keep(node), version_keep(version)};
    bool ended = false;
    while (size > 0) {
        Visit visit = work[--size];
        ended = ended || !visit.node->alive; /* Flink ends here, whatever is left to do */
        if (!ended) {
            Node *current = visit.node;
            int32_t kept = 0;
            for (int32_t i = 0; i < current->edge_count; i++) {
                Edge edge = current->edges[i];
                if (!version_compatible(visit.version, edge.version) || edge.locks > 1) {
                    if (version_compatible(visit.version, edge.version)) edge.locks--;
                    current->edges[kept++] = edge;
                    continue;
                }
                if (edge.target != NULL) {
                    if (size == room) {
                        room *= 2;
                        work = must_grow(work, (size_t)room * sizeof(Visit));
                    }
                    work[size++] = (Visit){edge.target, version_keep(edge.version)};
                }
                edge_free(&edge);
            }
            current->edge_count = kept;
            release_one(buffer, current);
        }
        node_drop(visit.node);
        version_drop(visit.version);
    }
    release_memory(work);
}

void buffer_release_node(Buffer *buffer, Node *node, Version *version) {
    node_keep(node);
    version_keep(version);
    while (node != NULL && node->alive) {
        if (node->edge_count != 1) {
            release_branches(buffer, node, version);
            break;
        }
        Edge *edge = &node->edges[0];
        Version *next = version_keep(edge->version);
        Node *target = NULL;
        if (version_compatible(version, next)) {
            if (edge->locks <= 1) {
                target = edge->target; /* and its count of memory */
                edge_free(edge);
                node->edge_count = 0;
            } else {
                edge->locks--;
            }
        }
        version_drop(version);
        version = next;
        release_one(buffer, node);
        node_drop(node);
        node = target;
    }
    if (node != NULL) node_drop(node);
    version_drop(version);
}

/* --- steps of runs */

static void count_in(
    const Values *values, Edge *edge, int32_t stage, Entry *entry, Node *previous,
    Version *version) {
    if (values->slot_count == 0) return;
    Py_ssize_t ways;
    Edge *before = previous == NULL ? NULL : node_edge(previous, version, &ways);
    edge->values = must_alloc((size_t)values->slot_count * sizeof(Value));
    values_update(
        values, before == NULL ? NULL : before->values, stage, entry->handle, edge->values);
}

Node *buffer_put(
    const Values *values, int32_t stage, Entry *entry, Node *previous, Version *version) {
    if (previous != NULL) buffer_lock_node(previous, version);
    Node *node = entry_node(entry, stage);
    if (node == NULL) {
        node = entry_append(entry, stage, 0, true);
        entry->locks++;
    } else if (!node->alive) {
        node->alive = true;
        entry->locks++;
    }
    Edge *edge = node_append(node, 0, previous, version);
    count_in(values, edge, stage, entry, previous, version);
    return node;
}

/* As put, lock with `following`, and release of what the run had before. */
Node *buffer_extend(
    Buffer *buffer, const Values *values, int32_t stage, Entry *entry, Node *previous,
    Version *version, Version *following) {
    if (entry_node(entry, stage) == NULL) {
        entry->locks++;
        Node *node = entry_append(entry, stage, 1, true);
        Edge *edge = node_append(node, 1, previous, version);
        count_in(values, edge, stage, entry, previous, version);
        return node;
    }
    Node *node = buffer_put(values, stage, entry, previous, version);
    buffer_lock_node(node, following);
    if (previous != NULL) buffer_release_node(buffer, previous, version);
    return node;
}

void buffer_relabel(Buffer *buffer, Node *node, Version *old, Version *now) {
    if (node->edge_count > 1) {
        buffer_lock_node(node, now);
        buffer_release_node(buffer, node, old);
    }
}
