/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of partial matches, and the state of a key. Mirror: engines/flink/nfa/partial_matches.py. */
#include "flink/key.h"

#include <string.h>

int partial_push(Partials *partials, Partial partial) {
    Partial *items = reserve(partials->items, &partials->room, partials->size + 1, sizeof(Partial));
    if (items == NULL) return -1;
    partials->items = items;
    partials->items[partials->size++] = partial;
    return 0;
}

int partial_push_kept(Partials *partials, Partial partial) {
    if (partial_push(partials, partial) < 0) return -1;
    version_keep(partial.version);
    if (partial.node != NULL) node_keep(partial.node);
    return 0;
}

void partial_drop(Partial *partial) {
    if (partial->node != NULL) node_drop(partial->node);
    version_drop(partial->version);
}

int partial_release(Key *key, Partial *partial) {
    int status = 0;
    if (partial->node != NULL)
        status = buffer_release_node(&key->buffer, partial->node, partial->version);
    partial_drop(partial);
    return status;
}

void partials_clear(Partials *partials) {
    for (Py_ssize_t i = 0; i < partials->size; i++) partial_drop(&partials->items[i]);
    partials->size = 0;
}

void partials_forget(Partials *partials, Py_ssize_t count) {
    partials->size -= count;
    if (partials->size > 0)
        memmove(partials->items, partials->items + count, (size_t)partials->size * sizeof(Partial));
}

void partials_swap(Partials *one, Partials *other) {
    Partials kept = *one;
    *one = *other;
    *other = kept;
}

int key_begin(Key *key, int32_t start) {
    *key = (Key){.deadline = INT64_MAX, .never = true};
    Version *version = version_following(NULL, 1);
    if (version == NULL) return -1;
    if (partial_push(&key->partials, (Partial){.version = version, .state = start}) == 0) return 0;
    version_drop(version);
    return -1;
}

void key_clear(Key *key) {
    partials_clear(&key->partials);
    partials_clear(&key->completed);
    release_memory(key->partials.items);
    release_memory(key->completed.items);
    release_memory(key->timers);
    release_memory(key->present);
    buffer_clear(&key->buffer);
    *key = (Key){0};
}

int key_check_usable(const Key *key) {
    if (key->partials.size > 0) return 0;
    PyErr_SetString(PyExc_RuntimeError, "this key was lost to an earlier error");
    return -1;
}
