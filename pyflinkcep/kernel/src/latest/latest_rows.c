/* SPDX-License-Identifier: Apache-2.0 */
/* What rules keep by key. Mirror: KeyState in engines/latest/machine.py. */
#include "latest/latest.h"

#include <string.h>

static inline size_t place_of(const LatestRule *rule, int64_t key) {
    uint64_t mixed = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)((mixed ^ (mixed >> 32)) & (uint64_t)(rule->entry_room - 1));
}

int32_t row_of(const LatestRule *rule, int64_t key) {
    if (rule->entry_room == 0) return NONE;
    for (size_t at = place_of(rule, key);; at = (at + 1) & (size_t)(rule->entry_room - 1)) {
        const KeyEntry *entry = &rule->entries[at];
        if (entry->row == NONE || entry->key == key) return entry->row;
    }
}

static void enter(LatestRule *rule, int64_t key, int32_t row) {
    size_t at = place_of(rule, key);
    while (rule->entries[at].row != NONE) at = (at + 1) & (size_t)(rule->entry_room - 1);
    rule->entries[at] = (KeyEntry){key, row};
}

/* Make room for one more row; the table is at most half full. */
static int make_room(LatestRule *rule) {
    if (rule->row_count == INT32_MAX) {
        no_memory();
        return -1;
    }
    if (rule->row_count == rule->row_room) {
        Py_ssize_t room = rule->row_room, width = rule->size - 1;
        int64_t *keys = grow(rule->keys, &room, rule->row_count + 1, sizeof(int64_t));
        if (keys == NULL) return -1;
        rule->keys = keys;
        Py_ssize_t count = 0;
        RunSlot *slots = grow(rule->slots, &count, room * width, sizeof(RunSlot));
        if (slots == NULL) return -1;
        rule->slots = slots;
        if (rule->has_missing) {
            count = 0;
            Mark *marks = grow(rule->marks, &count, room * width, sizeof(Mark));
            if (marks == NULL) return -1;
            rule->marks = marks;
            count = 0;
            Extra *extras = grow(rule->extras, &count, room, sizeof(Extra));
            if (extras == NULL) return -1;
            rule->extras = extras;
        }
        rule->row_room = room;
    }
    if (2 * (rule->row_count + 1) <= rule->entry_room) return 0;
    Py_ssize_t room = rule->entry_room == 0 ? 16 : 2 * rule->entry_room;
    KeyEntry *entries = allocate((size_t)room * sizeof(KeyEntry));
    if (entries == NULL) return -1;
    for (Py_ssize_t i = 0; i < room; i++) entries[i].row = NONE;
    release_memory(rule->entries);
    rule->entries = entries;
    rule->entry_room = room;
    for (Py_ssize_t row = 0; row < rule->row_count; row++)
        enter(rule, rule->keys[row], (int32_t)row);
    return 0;
}

int32_t row_made(LatestRule *rule, int64_t key) {
    int32_t row = row_of(rule, key);
    if (row != NONE) return row;
    if (make_room(rule) < 0) return NONE;
    row = (int32_t)rule->row_count++;
    rule->keys[row] = key;
    Py_ssize_t width = rule->size - 1;
    if (width > 0) memset(&rule->slots[row * width], 0, (size_t)width * sizeof(RunSlot));
    if (rule->has_missing) rule->extras[row] = (Extra){NEVER, NEVER, NONE, NONE};
    enter(rule, key, row);
    return row;
}

void slot_clear(Latest *latest, RunSlot *slot) {
    for (int32_t at = slot->chain; slot->is_taken && at != NONE;) {
        int32_t before = latest->nodes[at].before;
        latest->nodes[at].before = latest->free_node;
        latest->free_node = at;
        at = before;
    }
    slot->is_taken = false;
}

int slot_extend(Latest *latest, RunSlot *slot, int64_t handle) {
    int32_t at = latest->free_node;
    if (at != NONE)
        latest->free_node = latest->nodes[at].before;
    else {
        if (latest->node_count == INT32_MAX) {
            no_memory();
            return -1;
        }
        RunNode *nodes =
            reserve(latest->nodes, &latest->node_room, latest->node_count + 1, sizeof(RunNode));
        if (nodes == NULL) return -1;
        latest->nodes = nodes;
        at = (int32_t)latest->node_count++;
    }
    latest->nodes[at] = (RunNode){slot->handle, slot->chain};
    slot->chain = at;
    slot->handle = handle;
    return 0;
}

void slot_handles(const Latest *latest, const RunSlot *slot, int32_t count, int64_t *handles) {
    handles[count - 1] = slot->handle;
    for (int32_t at = slot->chain, i = count - 2; at != NONE; at = latest->nodes[at].before)
        handles[i--] = latest->nodes[at].handle;
}

void rule_clear(Latest *latest, LatestRule *rule) {
    Py_ssize_t width = rule->size - 1;
    for (Py_ssize_t i = 0; i < rule->row_count * width; i++) slot_clear(latest, &rule->slots[i]);
    if (rule->row_count > 0)
        for (Py_ssize_t i = 0; i < rule->entry_room; i++) rule->entries[i].row = NONE;
    rule->row_count = rule->waiting_count = 0;
    rule->free_waiting = NONE;
}

void rule_free(LatestRule *rule) {
    release_memory(rule->steps);
    release_memory(rule->entries);
    release_memory(rule->keys);
    release_memory(rule->slots);
    release_memory(rule->marks);
    release_memory(rule->extras);
    release_memory(rule->waiting);
    release_memory(rule->waiting_handles);
}
