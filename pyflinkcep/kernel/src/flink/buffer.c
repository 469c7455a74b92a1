/* SPDX-License-Identifier: Apache-2.0 */
/* The versioned shared buffer. Mirror: engines/flink/sharedbuffer.py, engines/flink/sharedbuffer.py. */
#include "flink/buffer.h"

/* --- memory */

static void entry_drop(Entry *entry) {
    if (--entry->memory == 0) release_small(entry, sizeof(Entry));
}

void node_drop(Node *node) {
    if (--node->memory > 0) return;
    node->next_to_free = NULL;
    while (node != NULL) {
        Node *more = node->next_to_free;
        for (int32_t i = 0; i < node->edge_end; i++) {
            if (node->edges[i].version == NULL) continue;
            Node *target = node->edges[i].target;
            if (target != NULL && --target->memory == 0) {
                target->next_to_free = more;
                more = target;
            }
            edge_free(&node->edges[i]);
        }
        edges_free(node);
        entry_drop(node->entry);
        release_small(node, sizeof(Node));
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

Entry *buffer_append(Buffer *buffer, int64_t timestamp, int64_t id, int64_t handle, int64_t locks) {
    Entry *entry = allocate_small(sizeof(Entry));
    if (entry == NULL) return NULL;
    *entry = (Entry){.timestamp = timestamp,
        .id = id,
        .handle = handle,
        .locks = locks,
        .memory = 1,
        .listed = true,
        .before = buffer->last};
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
    Node *node = allocate_small(sizeof(Node));
    if (node == NULL) return NULL;
    *node = (Node){.locks = locks,
        .entry = entry,
        .edge_room = 1,
        .memory = 1,
        .stage = stage,
        .number = GONE,
        .alive = alive};
    node->edges = &node->own;
    entry->memory++;
    if (entry->last_node != NULL)
        entry->last_node->next_of_entry = node;
    else
        entry->first_node = node;
    entry->last_node = node;
    return node;
}

/* --- events */

static bool buffer_has(const Buffer *buffer, int64_t timestamp, int64_t id) {
    for (const Entry *entry = buffer->last; entry != NULL; entry = entry->before)
        if (entry->timestamp == timestamp && entry->id == id) return true;
    return false;
}

Entry *buffer_register(Buffer *buffer, int64_t handle, int64_t timestamp) {
    if (!buffer->has_timestamp || timestamp != buffer->timestamp) {
        buffer->timestamp = timestamp;
        buffer->has_timestamp = true;
        buffer->event_count = 0;
    }
    int64_t number = buffer->event_count;
    /* An id can only be in use already if the clock stepped back. */
    if (buffer->last != NULL && (buffer->unsorted || !comes_after(buffer->last, timestamp, number)))
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
    for (int32_t i = node_way(node, version, 0); i < node->edge_end;
        i = node_way(node, version, i + 1))
        node->edges[i].locks++;
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

typedef struct {
    Visit *items;
    Py_ssize_t size, room;
} Visits;

/* Add a visit, which takes over the caller's memory counts; they are dropped if memory runs out. */
static int visit_later(Visits *work, Node *node, Version *version) {
    Visit *items = reserve(work->items, &work->room, work->size + 1, sizeof(Visit));
    if (items == NULL) {
        node_drop(node);
        version_drop(version);
        return -1;
    }
    work->items = items;
    work->items[work->size++] = (Visit){node, version};
    return 0;
}

/* Remove the edges of a node that only this run uses; go on to where they lead. */
static int take_edges(Visits *work, Node *node, const Version *version) {
    int status = 0;
    for (int32_t i = node_way(node, version, 0); i < node->edge_end;
        i = node_way(node, version, i + 1)) {
        Edge *edge = &node->edges[i];
        if (edge->locks > 1) {
            edge->locks--;
            continue;
        }
        if (edge->target != NULL &&
            visit_later(work, edge->target, version_keep(edge->version)) < 0)
            status = -1;
        node_remove(node, i);
    }
    node_squeeze(node);
    return status;
}

/* Release a node that several runs reached, and what only this one passed through. */
static int release_branches(Buffer *buffer, Node *node, Version *version) {
    Visits work = {0};
    int status = visit_later(&work, node_keep(node), version_keep(version));
    bool ended = status < 0;
    while (work.size > 0) {
        Visit visit = work.items[--work.size];
        ended = ended || !visit.node->alive; /* Flink stops here, even if work is left */
        if (!ended) {
            status = take_edges(&work, visit.node, visit.version);
            ended = status < 0;
            release_one(buffer, visit.node);
        }
        node_drop(visit.node);
        version_drop(visit.version);
    }
    release_memory(work.items);
    return status;
}

/*
 * Release the edge by which a run came to a node, unless other runs need it. Return where it led to,
 * with its count of memory; NULL if the edge stays, or is the first.
 */
static Node *release_edge(Node *node, int32_t place) {
    Edge *edge = &node->edges[place];
    Node *target = edge->target;
    if (edge->locks > 1) {
        edge->locks--;
        target = NULL;
    } else if (node->edge_count > 1) {
        node_remove(node, place);
        node_squeeze(node);
    } else {
        edge_free(edge);
        node->edge_count = node->edge_end = 0;
    }
    return target;
}

int buffer_release_node(Buffer *buffer, Node *node, Version *version) {
    int status = 0;
    node_keep(node);
    version_keep(version);
    while (node != NULL && node->alive) {
        bool is_lone = node->edge_count == 1;
        int32_t place = is_lone ? 0 : node_way(node, version, 0);
        if (!is_lone &&
            (place == node->edge_end || node_way(node, version, place + 1) < node->edge_end)) {
            status = release_branches(buffer, node, version);
            break;
        }
        Version *next = version_keep(node->edges[place].version);
        Node *target = NULL;
        if (!is_lone || version_compatible(version, next)) target = release_edge(node, place);
        version_drop(version);
        version = next;
        release_one(buffer, node);
        node_drop(node);
        node = target;
    }
    if (node != NULL) node_drop(node);
    version_drop(version);
    return status;
}

/* --- steps of runs */

int edge_count_in(
    const Values *values, Edge *edge, int32_t stage, const Entry *entry, Node *previous,
    const Version *version) {
    if (values->slot_count == 0) return 0;
    Py_ssize_t ways;
    Edge *before = previous == NULL ? NULL : node_edge(previous, version, &ways);
    edge->tally = tally_after(values, before == NULL ? NULL : before->tally, stage, entry->handle);
    return edge->tally == NULL ? -1 : 0;
}

static Node *add_edge(
    const Values *values, Node *node, int64_t locks, Node *previous, Version *version) {
    Edge *edge = node_append(node, locks, previous, version);
    if (edge == NULL ||
        edge_count_in(values, edge, node->stage, node->entry, previous, version) < 0)
        return NULL;
    return node;
}

Node *buffer_put(
    const Values *values, int32_t stage, Entry *entry, Node *previous, Version *version) {
    if (previous != NULL) buffer_lock_node(previous, version);
    Node *node = entry_node(entry, stage);
    if (node == NULL) {
        node = entry_append(entry, stage, 0, true);
        if (node == NULL) return NULL;
        entry->locks++;
    } else if (!node->alive) {
        node->alive = true;
        entry->locks++;
    }
    return add_edge(values, node, 0, previous, version);
}

Node *buffer_extend(
    Buffer *buffer, const Values *values, int32_t stage, Entry *entry, Node *previous,
    Version *version, Version *following) {
    if (entry_node(entry, stage) == NULL) {
        Node *node = entry_append(entry, stage, 1, true);
        if (node == NULL) return NULL;
        entry->locks++;
        return add_edge(values, node, 1, previous, version);
    }
    Node *node = buffer_put(values, stage, entry, previous, version);
    if (node == NULL) return NULL;
    buffer_lock_node(node, following);
    if (previous != NULL && buffer_release_node(buffer, previous, version) < 0) return NULL;
    return node;
}

int buffer_relabel(Buffer *buffer, Node *node, Version *old, Version *now) {
    if (node->edge_count <= 1) return 0;
    buffer_lock_node(node, now);
    return buffer_release_node(buffer, node, old);
}
