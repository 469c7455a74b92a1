/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a key's state from numbers, which may be damaged. Mirror: StateReader in
 * engines/flink/stored_state.py, which refuses the same numbers.
 */
#include "flink/kernel.h"

#include <stdlib.h>

static const int64_t MOST = (int64_t)1 << 62; /* for counts, so that sums cannot overflow */

typedef struct {
    Kernel *kernel;
    Key *key;
    const int64_t *numbers;
    Py_ssize_t at, size;
    int64_t first_handle, handle_count;
    Version **versions;
    Py_ssize_t version_count;
    Node **nodes;
    Py_ssize_t node_count, node_room;
    bool damaged; /* or memory ran out, with an exception set */
} Reader;

static int64_t next(Reader *reader) {
    if (reader->at < reader->size) return reader->numbers[reader->at++];
    reader->damaged = true;
    return 0;
}

/* Read a number that must be from `low` to below `high`; return `low` for any other. */
static int64_t bounded(Reader *reader, int64_t low, int64_t high) {
    int64_t number = next(reader);
    if (number >= low && number < high) return number;
    reader->damaged = true;
    return low;
}

/* Read a count of items that follow; each takes at least `least` numbers. */
static Py_ssize_t count_of(Reader *reader, int64_t least) {
    return (Py_ssize_t)bounded(reader, 0, (reader->size - reader->at - 1) / least + 1);
}

static Version *read_version_number(Reader *reader) {
    int64_t number = bounded(reader, 0, reader->version_count);
    return reader->damaged ? NULL : reader->versions[number];
}

static void read_timers(Reader *reader) {
    Key *key = reader->key;
    Py_ssize_t count = count_of(reader, 1);
    key->timers = allocate_zeros(count, sizeof(int64_t));
    if (key->timers == NULL) {
        reader->damaged = true;
        return;
    }
    key->timer_room = key->timer_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        key->timers[i] = next(reader);
        if (i > 0 && key->timers[i] <= key->timers[i - 1]) reader->damaged = true;
    }
}

static void read_versions(Reader *reader) {
    Py_ssize_t count = count_of(reader, 2);
    reader->versions = allocate_zeros(count, sizeof(Version *));
    if (reader->versions == NULL) reader->damaged = true;
    while (reader->version_count < count && !reader->damaged) {
        int64_t parent = bounded(reader, NO_STATE, reader->version_count);
        int64_t digit = bounded(reader, 0, MOST);
        Version *version = version_following(parent < 0 ? NULL : reader->versions[parent], digit);
        if (version == NULL)
            reader->damaged = true;
        else
            reader->versions[reader->version_count++] = version;
    }
}

static void read_event_node(Reader *reader, Entry *entry) {
    int64_t stage = bounded(reader, 0, reader->kernel->pattern.stage_count);
    int64_t locks = bounded(reader, 0, MOST), alive = bounded(reader, 0, 2);
    Node **nodes =
        reserve(reader->nodes, &reader->node_room, reader->node_count + 1, sizeof(Node *));
    if (nodes != NULL) {
        reader->nodes = nodes;
        Node *node = entry_append(entry, (int32_t)stage, locks, alive != 0);
        reader->nodes[reader->node_count] = node;
        if (node != NULL) reader->node_count++;
    }
    if (PyErr_Occurred()) reader->damaged = true;
}

static int compared(const void *left, const void *right) {
    const Entry *a = *(Entry *const *)left, *b = *(Entry *const *)right;
    if (a->timestamp != b->timestamp) return a->timestamp < b->timestamp ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Refuse two events of one time with the same id; a sorted buffer has none. */
static void check_ids(Reader *reader) {
    const Buffer *buffer = &reader->key->buffer;
    if (!buffer->unsorted || reader->damaged) return;
    Entry **entries = allocate_zeros((Py_ssize_t)buffer->entries, sizeof(Entry *));
    if (entries == NULL) {
        reader->damaged = true;
        return;
    }
    size_t count = 0;
    for (Entry *entry = buffer->first; entry != NULL; entry = entry->after)
        entries[count++] = entry;
    qsort(entries, count, sizeof(Entry *), compared);
    for (size_t i = 1; i < count; i++)
        if (compared(&entries[i - 1], &entries[i]) == 0) reader->damaged = true;
    release_memory(entries);
}

static void read_events(Reader *reader) {
    Py_ssize_t count = count_of(reader, 5);
    for (Py_ssize_t i = 0; i < count && !reader->damaged; i++) {
        int64_t timestamp = next(reader), id = bounded(reader, 0, MOST);
        int64_t locks = bounded(reader, 0, MOST);
        int64_t event = bounded(reader, 0, reader->handle_count);
        Py_ssize_t nodes = count_of(reader, 3);
        if (reader->damaged) return;
        Entry *entry =
            buffer_append(&reader->key->buffer, timestamp, id, reader->first_handle + event, locks);
        if (entry == NULL) reader->damaged = true;
        for (Py_ssize_t j = 0; j < nodes && !reader->damaged; j++) read_event_node(reader, entry);
    }
    check_ids(reader);
}

/* Recreate a node that is no longer in the buffer, with a memory count for the caller. */
static Node *gone_node(Reader *reader) {
    Buffer nowhere = {0};
    Entry *entry = buffer_append(&nowhere, 0, 0, 0, 0);
    Node *node = entry == NULL ? NULL : entry_append(entry, 0, 0, false);
    if (node != NULL)
        node_keep(node);
    else
        reader->damaged = true;
    buffer_clear(&nowhere);
    return node;
}

/* Read a node's index, which must be below `end`; return the node with a memory count. */
static Node *read_node(Reader *reader, Py_ssize_t end) {
    int64_t number = bounded(reader, GONE, end);
    if (reader->damaged || number == NO_STATE) return NULL;
    return number == GONE ? gone_node(reader) : node_keep(reader->nodes[number]);
}

static void read_edges(Reader *reader) {
    for (Py_ssize_t i = 0; i < reader->node_count && !reader->damaged; i++) {
        Py_ssize_t edges = count_of(reader, 3);
        for (Py_ssize_t j = 0; j < edges && !reader->damaged; j++) {
            Node *target = read_node(reader, i); /* an earlier one: ways have no cycles */
            int64_t locks = bounded(reader, 0, MOST);
            Version *version = read_version_number(reader);
            if (version != NULL && node_append(reader->nodes[i], locks, target, version) == NULL)
                reader->damaged = true;
            if (target != NULL) node_drop(target);
        }
    }
}

static void read_partial(Reader *reader, Partials *partials) {
    Partial partial = {.state = (int32_t)bounded(reader, 0, reader->kernel->pattern.state_count)};
    partial.version = read_version_number(reader);
    partial.node = read_node(reader, reader->node_count);
    partial.start_timestamp = next(reader);
    partial.start_id = bounded(reader, NO_STATE, MOST);
    partial.has_start = partial.start_id != NO_STATE;
    if (partial.has_start != (partial.node != NULL)) reader->damaged = true;
    if (partial.version != NULL && partial_push_kept(partials, partial) < 0) reader->damaged = true;
    if (partial.node != NULL) node_drop(partial.node);
}

static void read_partials(Reader *reader, Partials *partials) {
    Py_ssize_t count = count_of(reader, 5);
    for (Py_ssize_t i = 0; i < count && !reader->damaged; i++) read_partial(reader, partials);
}

/* Return whether the start state is in the last partial match, in no other, and in no match. */
static bool has_one_start(const Kernel *kernel, const Key *key) {
    for (Py_ssize_t i = 0; i < key->partials.size; i++) {
        const Partial *partial = &key->partials.items[i];
        bool is_start = partial->state == kernel->pattern.start;
        if (is_start != (i == key->partials.size - 1) || is_start == partial->has_start)
            return false;
    }
    for (Py_ssize_t i = 0; i < key->completed.size; i++)
        if (!key->completed.items[i].has_start) return false;
    return key->partials.size > 0;
}

/* The tallies of runs are not written: they follow from the events, oldest first. */
static void count_again(Reader *reader) {
    for (Py_ssize_t i = 0; i < reader->node_count && !reader->damaged; i++) {
        Node *node = reader->nodes[i];
        for (int32_t j = 0; j < node->edge_end && !reader->damaged; j++) {
            Edge *edge = &node->edges[j];
            if (edge_count_in(
                    &reader->kernel->values, edge, node->stage, node->entry, edge->target,
                    edge->version) < 0)
                reader->damaged = true;
        }
    }
}

static void read_all(Reader *reader) {
    Key *key = reader->key;
    read_timers(reader);
    int64_t count = bounded(reader, NO_STATE, MOST), timestamp = next(reader);
    read_versions(reader);
    read_events(reader);
    if (count != NO_STATE) {
        key->buffer.has_timestamp = true;
        key->buffer.timestamp = timestamp;
        key->buffer.event_count = count;
    }
    read_edges(reader);
    count_again(reader);
    read_partials(reader, &key->partials);
    read_partials(reader, &key->completed);
    if (reader->at != reader->size || !has_one_start(reader->kernel, key)) reader->damaged = true;
}

int key_read(
    Kernel *kernel, Key *key, const int64_t *numbers, Py_ssize_t size, int64_t first_handle,
    int64_t handle_count) {
    Reader reader = {.kernel = kernel,
        .key = key,
        .numbers = numbers,
        .size = size,
        .first_handle = first_handle,
        .handle_count = handle_count};
    *key = (Key){.deadline = INT64_MIN};
    read_all(&reader);
    for (Py_ssize_t i = 0; i < reader.version_count; i++) version_drop(reader.versions[i]);
    release_memory(reader.versions);
    release_memory(reader.nodes);
    if (!reader.damaged) return 0;
    key_clear(key);
    if (!PyErr_Occurred()) Py_XDECREF(PyObject_CallMethod(kernel->helper, "damaged", NULL));
    return -1;
}
