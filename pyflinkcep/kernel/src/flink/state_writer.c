/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a key's state as numbers. Mirror: StateWriter in engines/flink/stored_state.py. */
#include "flink/kernel.h"

void numbers_put(Numbers *numbers, int64_t number) {
    if (numbers->failed) return;
    int64_t *items = reserve(numbers->items, &numbers->room, numbers->size + 1, sizeof(int64_t));
    if (items == NULL) {
        numbers->failed = true;
        return;
    }
    numbers->items = items;
    numbers->items[numbers->size++] = number;
}

/* --- versions by index, found by value */

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

static void versions_free(Versions *versions) {
    release_memory(versions->table);
    release_memory(versions->numbers);
}

static int versions_make(Versions *versions, size_t room) {
    versions->mask = room - 1;
    versions->table = allocate_zeros((Py_ssize_t)room, sizeof(Version *));
    versions->numbers = allocate_zeros((Py_ssize_t)room, sizeof(int64_t));
    if (versions->table != NULL && versions->numbers != NULL) return 0;
    versions_free(versions);
    *versions = (Versions){0};
    return -1;
}

static int versions_grow(Versions *versions) {
    Versions larger = {.size = versions->size};
    if (versions_make(&larger, (versions->mask + 1) * 2) < 0) return -1;
    for (size_t i = 0; i <= versions->mask; i++) {
        if (versions->table[i] == NULL) continue;
        size_t at = versions_slot(&larger, versions->table[i]);
        larger.table[at] = versions->table[i];
        larger.numbers[at] = versions->numbers[i];
    }
    versions_free(versions);
    *versions = larger;
    return 0;
}

static int64_t versions_number(const Versions *versions, const Version *version) {
    if (version == NULL) return NO_STATE;
    return versions->numbers[versions_slot(versions, version)];
}

static int versions_add(Versions *versions, Version *version, int64_t number) {
    if (2 * versions->size > versions->mask && versions_grow(versions) < 0) return -1;
    size_t at = versions_slot(versions, version);
    versions->table[at] = version;
    versions->numbers[at] = number;
    versions->size++;
    return 0;
}

typedef struct {
    Version **items;
    Py_ssize_t size, room;
} Missing;

/* Write a version as a prefix version, written before it, and one digit. */
static int write_version(Versions *versions, Version *version, Missing *missing, Numbers *numbers) {
    missing->size = 0;
    for (Version *now = version;
        now != NULL && versions->table[versions_slot(versions, now)] == NULL; now = now->parent) {
        Version **items =
            reserve(missing->items, &missing->room, missing->size + 1, sizeof(Version *));
        if (items == NULL) return -1;
        missing->items = items;
        missing->items[missing->size++] = now;
    }
    while (missing->size > 0) {
        Version *now = missing->items[--missing->size];
        numbers_put(numbers, versions_number(versions, now->parent));
        numbers_put(numbers, now->digit);
        if (versions_add(versions, now, (int64_t)versions->size) < 0) return -1;
    }
    return 0;
}

static int write_versions_of(
    const Partials *partials, Versions *versions, Missing *missing, Numbers *numbers) {
    for (Py_ssize_t i = 0; i < partials->size; i++)
        if (write_version(versions, partials->items[i].version, missing, numbers) < 0) return -1;
    return 0;
}

static int write_all_versions(
    const Key *key, Versions *versions, Missing *missing, Numbers *numbers) {
    for (Entry *entry = key->buffer.first; entry != NULL; entry = entry->after)
        for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry)
            for (int32_t i = 0; i < node->edge_end; i++)
                if (node->edges[i].version != NULL &&
                    write_version(versions, node->edges[i].version, missing, numbers) < 0)
                    return -1;
    if (write_versions_of(&key->partials, versions, missing, numbers) < 0) return -1;
    return write_versions_of(&key->completed, versions, missing, numbers);
}

static int write_versions(const Key *key, Versions *versions, Numbers *numbers) {
    Missing missing = {0};
    if (versions_make(versions, 16) < 0) return -1;
    Py_ssize_t count = numbers->size;
    numbers_put(numbers, 0);
    int status = write_all_versions(key, versions, &missing, numbers);
    if (!numbers->failed) numbers->items[count] = (int64_t)versions->size;
    release_memory(missing.items);
    return status;
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
            for (int32_t i = 0; i < node->edge_end; i++) {
                if (node->edges[i].version == NULL) continue;
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

int key_write(const Key *key, Numbers *numbers, Numbers *handles) {
    Py_ssize_t first = handles->size;
    Versions versions = {0};
    numbers_put(numbers, key->timer_count);
    for (Py_ssize_t i = 0; i < key->timer_count; i++) numbers_put(numbers, key->timers[i]);
    numbers_put(numbers, key->buffer.has_timestamp ? key->buffer.event_count : NO_STATE);
    numbers_put(numbers, key->buffer.timestamp);
    int status = write_versions(key, &versions, numbers);
    if (status == 0) {
        write_events(key, numbers, handles, first);
        write_edges(key, &versions, numbers);
        write_partials(&key->partials, &versions, numbers);
        write_partials(&key->completed, &versions, numbers);
        for (Entry *entry = key->buffer.first; entry != NULL; entry = entry->after)
            for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry)
                node->number = GONE;
    }
    versions_free(&versions);
    return numbers->failed || handles->failed ? -1 : status;
}
