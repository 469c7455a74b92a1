/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places where a search has failed, with what was known there. Values with equal bits are
 * equal: no condition can tell them apart. Mirror: a set of tuples in Python.
 */
#include "base/failed.h"

#include <string.h>

static const Py_ssize_t LEAST_CAPACITY = 64;
static const Py_ssize_t MOST_KEPT_CAPACITY = 4096;

static uint64_t mixed(uint64_t hash, uint64_t bits) {
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

static uint64_t bits_of(Value value) {
    uint64_t bits = 0;
    if (value.kind == VALUE_FLOAT)
        memcpy(&bits, &value.as.f, sizeof bits);
    else if (value.kind == VALUE_TEXT)
        bits = (uint64_t)PyObject_Hash(value.as.text);
    else if (value.kind == VALUE_INT)
        bits = (uint64_t)value.as.i;
    return bits;
}

static uint64_t hash_of(int64_t place, const Value *values, Py_ssize_t width) {
    uint64_t hash = mixed(0x243F6A8885A308D3u, (uint64_t)place);
    for (Py_ssize_t i = 0; i < width; i++) hash = mixed(hash, bits_of(values[i]) + values[i].kind);
    return hash;
}

static bool same_values(const Value *one, const Value *other, Py_ssize_t width) {
    for (Py_ssize_t i = 0; i < width; i++) {
        if (one[i].kind != other[i].kind || bits_of(one[i]) != bits_of(other[i])) return false;
        if (one[i].kind == VALUE_TEXT && PyUnicode_Compare(one[i].as.text, other[i].as.text) != 0)
            return false;
    }
    return true;
}

static Value *values_at(const Failed *failed, Py_ssize_t entry) {
    return failed->width > 0 ? failed->values + entry * failed->width : NULL;
}

/* Return the index of an entry in the table, or where it belongs. */
static Py_ssize_t find(const Failed *failed, int64_t place, const Value *values) {
    uint64_t mask = (uint64_t)failed->capacity - 1;
    for (uint64_t at = hash_of(place, values, failed->width) & mask;; at = (at + 1) & mask) {
        uint32_t entry = failed->table[at];
        if (entry == 0) return (Py_ssize_t)at;
        const Value *known = values_at(failed, entry - 1);
        if (failed->places[entry - 1] == place && same_values(known, values, failed->width))
            return (Py_ssize_t)at;
    }
}

bool failed_has(const Failed *failed, int64_t place, const Value *values) {
    return failed->size > 0 && failed->table[find(failed, place, values)] != 0;
}

/* Make a table that is at least twice as large. */
static int widen(Failed *failed) {
    Py_ssize_t capacity = failed->capacity ? 2 * failed->capacity : LEAST_CAPACITY;
    uint32_t *table = allocate_zeros(capacity, sizeof(uint32_t));
    if (table == NULL) return -1;
    release_memory(failed->table);
    failed->table = table;
    failed->capacity = capacity;
    for (Py_ssize_t i = 0; i < failed->size; i++)
        table[find(failed, failed->places[i], values_at(failed, i))] = (uint32_t)i + 1;
    return 0;
}

int failed_add(Failed *failed, int64_t place, Value *values) {
    Py_ssize_t width = failed->width;
    if (failed->size >= failed->most) {
        for (Py_ssize_t i = 0; i < width; i++) value_drop(values[i]);
        return 0;
    }
    if (2 * (failed->size + 1) > failed->capacity && widen(failed) < 0) return -1;
    int64_t *places = reserve(failed->places, &failed->room, failed->size + 1, sizeof(int64_t));
    if (places == NULL) return -1;
    failed->places = places;
    if (width > 0) {
        Value *all =
            reserve(failed->values, &failed->value_room, (failed->size + 1) * width, sizeof(Value));
        if (all == NULL) return -1;
        failed->values = all;
        memcpy(all + failed->size * width, values, (size_t)width * sizeof(Value));
    }
    failed->places[failed->size] = place;
    Py_ssize_t at = find(failed, place, values);
    failed->table[at] = (uint32_t)++failed->size;
    return 0;
}

void failed_clear(Failed *failed) {
    for (Py_ssize_t i = 0; i < failed->size * failed->width; i++) value_drop(failed->values[i]);
    if (failed->capacity > MOST_KEPT_CAPACITY) {
        release_memory(failed->table);
        failed->table = NULL;
        failed->capacity = 0;
    } else if (failed->size > 0) {
        memset(failed->table, 0, (size_t)failed->capacity * sizeof(uint32_t));
    }
    failed->size = 0;
}

void failed_free(Failed *failed) {
    failed_clear(failed);
    release_memory(failed->table);
    release_memory(failed->places);
    release_memory(failed->values);
}
