/* SPDX-License-Identifier: Apache-2.0 */
/* State as numbers, in the format of operator/snapshot.py. */
#include "kernel.h"

void numbers_put(Numbers *numbers, int64_t number) {
    if (numbers->size == numbers->room) {
        numbers->room = numbers->room ? numbers->room * 2 : 256;
        numbers->items = must_grow(numbers->items, (size_t)numbers->room * sizeof(int64_t));
    }
    numbers->items[numbers->size++] = number;
}

/* --- versions by their number, found by what they are */

typedef struct {
    Version **table;
    int64_t *numbers;
    size_t mask, size;
} Versions;

static size_t versions_slot(const Versions *versions, const Version *version) {
    size_t at = version->code & versions->mask;
    while (versions->table[at] != NULL && !version_same(versions->table[at], version))
        at = (at + 1) & versions->mask;
    return at;
}

static void versions_make(Versions *versions, size_t room) {
    versions->mask = room - 1;
    versions->table = must_alloc(room * sizeof(Version *));
    versions->numbers = must_alloc(room * sizeof(int64_t));
    for (size_t i = 0; i < room; i++) versions->table[i] = NULL;
}

static void versions_free(Versions *versions) {
    release_memory(versions->table);
    release_memory(versions->numbers);
}

static void versions_grow(Versions *versions) {
    Versions larger = {.size = versions->size};
    versions_make(&larger, (versions->mask + 1) * 2);
    for (size_t i = 0; i <= versions->mask; i++) {
        if (versions->table[i] == NULL) continue;
        size_t at = versions_slot(&larger, versions->table[i]);
        larger.table[at] = versions->table[i];
        larger.numbers[at] = versions->numbers[i];
    }
    versions_free(versions);
    *versions = larger;
}

static int64_t versions_number(const Versions *versions, const Version *version) {
    if (version == NULL) return NO_STATE;
    return versions->numbers[versions_slot(versions, version)];
}

static void versions_add(Versions *versions, Version *version, int64_t number) {
    if (2 * versions->size > versions->mask) versions_grow(versions);
    size_t at = versions_slot(versions, version);
    versions->table[at] = version;
    versions->numbers[at] = number;
    versions->size++;
}

/* Write a version as one digit after another version, which is written before it. */
static void write_version(Versions *versions, Version *version, Numbers *numbers) {
    static const Py_ssize_t few = 32;
    Version *fixed[32], **missing = fixed;
    Py_ssize_t size = 0, room = few;
    for (Version *now = version;
         now != NULL && versions->table[versions_slot(versions, now)] == NULL; now = now->parent) {
        if (size == room) {
            room *= 2;
            Version **larger = must_alloc((size_t)room * sizeof(Version *));
            memcpy(larger, missing, (size_t)size * sizeof(Version *));
            if (missing != fixed) release_memory(missing);
            missing = larger;
        }
        missing[size++] = now;
    }
    while (size > 0) {
        Version *now = missing[--size];
        numbers_put(numbers, versions_number(versions, now->parent));
        numbers_put(numbers, now->digit);
        versions_add(versions, now, (int64_t)versions->size);
    }
    if (missing != fixed) release_memory(missing);
}

static void write_versions(const Key *key, Versions *versions, Numbers *numbers) {
    versions_make(versions, 16);
    numbers_put(numbers, 0);
    Py_ssize_t count = numbers->size - 1;
    for (Entry *entry = key->buffer.first; entry != NULL; entry = entry->after)
        for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry)
            for (int32_t i = 0; i < node->edge_count; i++)
                write_version(versions, node->edges[i].version, numbers);
    for (Py_ssize_t i = 0; i < key->partials.size; i++)
        write_version(versions, key->partials.items[i].version, numbers);
    for (Py_ssize_t i = 0; i < key->completed.size; i++)
        write_version(versions, key->completed.items[i].version, numbers);
    numbers->items[count] = (int64_t)versions->size;
}

/* --- writing */

static int64_t node_number(const Node *node) { return node == NULL ? NO_STATE : node->number; }

static void write_events(const Key *key, Numbers *numbers, Numbers *handles, Py_ssize_t first) {
    int32_t nodes = 0;
    numbers_put(numbers, key->buffer.entries);
    for (Entry *entry = key->buffer.first; entry != NULL; entry = entry->after) {
        int64_t count = 0;
        numbers_put(numbers, entry->timestamp);
        numbers_put(numbers, entry->id);
        numbers_put(numbers, entry->locks);
        numbers_put(numbers, handles->size - first);
        numbers_put(handles, entry->handle);
        for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry) count++;
        numbers_put(numbers, count);
        for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry) {
            node->number = nodes++;
            numbers_put(numbers, node->stage);
            numbers_put(numbers, node->locks);
            numbers_put(numbers, node->alive);
        }
    }
}

static void write_edges(const Key *key, const Versions *versions, Numbers *numbers) {
    for (Entry *entry = key->buffer.first; entry != NULL; entry = entry->after)
        for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry) {
            numbers_put(numbers, node->edge_count);
            for (int32_t i = 0; i < node->edge_count; i++) {
                numbers_put(numbers, node_number(node->edges[i].target));
                numbers_put(numbers, node->edges[i].locks);
                numbers_put(numbers, versions_number(versions, node->edges[i].version));
            }
        }
}

static void write_partials(const Partials *partials, const Versions *versions, Numbers *numbers) {
    numbers_put(numbers, partials->size);
    for (Py_ssize_t i = 0; i < partials->size; i++) {
        const Partial *partial = &partials->items[i];
        numbers_put(numbers, partial->state);
        numbers_put(numbers, versions_number(versions, partial->version));
        numbers_put(numbers, node_number(partial->node));
        numbers_put(numbers, partial->has_start ? partial->start_timestamp : 0);
        numbers_put(numbers, partial->has_start ? partial->start_id : NO_STATE);
    }
}

/* Write a key's state; the handles of its events go beside it. */
void key_write(const Key *key, Numbers *numbers, Numbers *handles) {
    Py_ssize_t first = handles->size;
    numbers_put(numbers, key->timer_count);
    for (Py_ssize_t i = 0; i < key->timer_count; i++) numbers_put(numbers, key->timers[i]);
    numbers_put(numbers, key->buffer.has_timestamp ? key->buffer.event_count : NO_STATE);
    numbers_put(numbers, key->buffer.timestamp);
    Versions versions = {0};
    write_versions(key, &versions, numbers);
    write_events(key, numbers, handles, first);
    write_edges(key, &versions, numbers);
    write_partials(&key->partials, &versions, numbers);
    write_partials(&key->completed, &versions, numbers);
    versions_free(&versions);
    for (Entry *entry = key->buffer.first; entry != NULL; entry = entry->after)
        for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry)
            node->number = GONE;
}

/* --- reading */

typedef struct {
    Kernel *kernel;
    Key *key;
    const int64_t *numbers;
    Py_ssize_t at, size;
    int64_t first_handle, handle_count;
    Version **versions;
    Node **nodes;
    int64_t version_count, node_count;
    bool damaged;
} Reader;

static int64_t next(Reader *reader) {
    if (reader->at < reader->size) return reader->numbers[reader->at++];
    reader->damaged = true;
    return 0;
}

/* Read a number that must be from `low` to below `high`. */
static int64_t bounded(Reader *reader, int64_t low, int64_t high) {
    int64_t number = next(reader);
    if (number >= low && number < high) return number;
    reader->damaged = true;
    return low < high ? low : 0;
}

/* Read how many of something follow; each takes at least `least` numbers. */
static int64_t count_of(Reader *reader, int64_t least) {
    int64_t left = reader->size - reader->at;
    return bounded(reader, 0, left / (least > 0 ? least : 1) + 1);
}

static Version *read_version_number(Reader *reader) {
    int64_t number = bounded(reader, 0, reader->version_count);
    return reader->damaged ? NULL : reader->versions[number];
}

static void read_versions(Reader *reader) {
    int64_t count = count_of(reader, 2);
    reader->versions = must_alloc((size_t)(count + 1) * sizeof(Version *));
    while (reader->version_count < count && !reader->damaged) {
        int64_t parent = bounded(reader, -1, reader->version_count), digit = next(reader);
        reader->versions[reader->version_count++] =
            version_following(parent < 0 ? NULL : reader->versions[parent], digit);
    }
}

static void read_events(Reader *reader) {
    int64_t count = count_of(reader, 5), room = 0;
    for (int64_t i = 0; i < count && !reader->damaged; i++) {
        int64_t timestamp = next(reader), id = next(reader), locks = next(reader);
        int64_t event = bounded(reader, 0, reader->handle_count);
        Entry *entry = buffer_append(
            &reader->key->buffer, timestamp, id, reader->first_handle + event, locks);
        int64_t nodes = count_of(reader, 3);
        for (int64_t j = 0; j < nodes && !reader->damaged; j++) {
            int64_t stage = bounded(reader, 0, reader->kernel->stage_count);
            int64_t node_locks = next(reader), alive = next(reader);
            if (reader->node_count == room) {
                room = room ? room * 2 : 16;
                reader->nodes = must_grow(reader->nodes, (size_t)room * sizeof(Node *));
            }
            reader->nodes[reader->node_count++] =
                entry_append(entry, (int32_t)stage, node_locks, alive != 0);
        }
    }
}

/*
 * Give a node by its number, which must be below `end`, with a count of memory; one that is gone
 * is made anew.
 */
static Node *read_node(Reader *reader, int64_t end) {
    int64_t number = bounded(reader, GONE, end);
    if (reader->damaged || number == NO_STATE) return NULL;
    if (number != GONE) return node_keep(reader->nodes[number]);
    Buffer nowhere = {0};
    Entry *entry = buffer_append(&nowhere, 0, 0, 0, 0);
    entry->listed = false;
    Node *node = node_keep(entry_append(entry, 0, 0, false));
    buffer_clear(&nowhere);
    return node;
}

static void read_edges(Reader *reader) {
    for (int64_t i = 0; i < reader->node_count && !reader->damaged; i++) {
        Node *node = reader->nodes[i];
        int64_t edges = count_of(reader, 3);
        for (int64_t j = 0; j < edges && !reader->damaged; j++) {
            Node *target = read_node(reader, i); /* an earlier one: ways have no circles */
            int64_t locks = next(reader);
            Version *version = read_version_number(reader);
            if (version != NULL) node_append(node, locks, target, version);
            if (target != NULL) node_drop(target);
        }
    }
}

static void read_partials(Reader *reader, Partials *partials) {
    int64_t count = count_of(reader, 5);
    for (int64_t i = 0; i < count && !reader->damaged; i++) {
        Partial partial = {.state = (int32_t)bounded(reader, 0, reader->kernel->state_count)};
        partial.version = read_version_number(reader);
        if (partial.version == NULL) return;
        version_keep(partial.version);
        partial.node = read_node(reader, reader->node_count);
        partial.start_timestamp = next(reader);
        partial.start_id = next(reader);
        partial.has_start = partial.start_id != NO_STATE;
        partial_push(partials, partial);
        if (partial.has_start != (partial.node != NULL)) reader->damaged = true;
    }
}

/* Whether the start state is the last partial match and no other, and no match that waits. */
static bool has_one_start(const Kernel *kernel, const Key *key) {
    for (Py_ssize_t i = 0; i < key->partials.size; i++) {
        const Partial *partial = &key->partials.items[i];
        bool is_start = partial->state == kernel->start;
        if (is_start != (i == key->partials.size - 1) || is_start == partial->has_start)
            return false;
    }
    for (Py_ssize_t i = 0; i < key->completed.size; i++)
        if (!key->completed.items[i].has_start) return false;
    return key->partials.size > 0;
}

/* What runs have counted is not written: it follows from the events, oldest first. */
static void count_again(Reader *reader) {
    const Values *values = &reader->kernel->values;
    if (values->slot_count == 0) return;
    for (int64_t i = 0; i < reader->node_count; i++) {
        Node *node = reader->nodes[i];
        for (int32_t j = 0; j < node->edge_count; j++) {
            Edge *edge = &node->edges[j];
            Py_ssize_t ways;
            Edge *before =
                edge->target == NULL ? NULL : node_edge(edge->target, edge->version, &ways);
            edge->values = must_alloc((size_t)values->slot_count * sizeof(Value));
            values_update(values, before == NULL ? NULL : before->values, node->stage,
                          node->entry->handle, edge->values);
        }
    }
}

/* Read what key_write wrote into a cleared key; -1 when the numbers are none of it. */
int key_read(
    Kernel *kernel, Key *key, const int64_t *numbers, Py_ssize_t size, int64_t first_handle,
    int64_t handle_count) {
    Reader reader = {.kernel = kernel, .key = key, .numbers = numbers, .size = size,
                     .first_handle = first_handle, .handle_count = handle_count};
    *key = (Key){.deadline = INT64_MIN};
    key->timer_count = key->timer_room = count_of(&reader, 1);
    key->timers = must_alloc((size_t)(key->timer_room + 1) * sizeof(int64_t));
    for (Py_ssize_t i = 0; i < key->timer_count; i++) key->timers[i] = next(&reader);
    int64_t count = next(&reader), timestamp = next(&reader);
    read_versions(&reader);
    read_events(&reader);
    if (count != NO_STATE) {
        key->buffer.has_timestamp = true;
        key->buffer.timestamp = timestamp;
        key->buffer.event_count = count;
    }
    read_edges(&reader);
    count_again(&reader);
    read_partials(&reader, &key->partials);
    read_partials(&reader, &key->completed);
    for (int64_t i = 0; i < reader.version_count; i++) version_drop(reader.versions[i]);
    release_memory(reader.versions);
    release_memory(reader.nodes);
    if (!reader.damaged && reader.at == size && has_one_start(kernel, key)) return 0;
    key_clear(key);
    return -1;
}
