/* SPDX-License-Identifier: Apache-2.0 */
/* What an event, or time, does to the partial matches of a key; see nfa/nfa.py. */
#include "kernel.h"

/* --- partial matches */

void partial_push(Partials *partials, Partial partial) {
    if (partials->size == partials->room) {
        partials->room = partials->room ? partials->room * 2 : 4;
        partials->items = must_grow(partials->items, (size_t)partials->room * sizeof(Partial));
    }
    partials->items[partials->size++] = partial;
}

static void partial_drop(Partial *partial) {
    if (partial->node != NULL) node_drop(partial->node);
    version_drop(partial->version);
}

/* Give back what a partial match holds in the buffer, and itself. */
static void partial_release(Key *key, Partial *partial) {
    if (partial->node != NULL) buffer_release_node(&key->buffer, partial->node, partial->version);
    partial_drop(partial);
}

static void partials_swap(Partials *one, Partials *other) {
    Partials kept = *one;
    *one = *other;
    *other = kept;
}

void key_begin(Kernel *kernel, Key *key) {
    *key = (Key){.deadline = INT64_MAX, .never = true};
    Version *version = version_following(NULL, 1);
    partial_push(&key->partials, (Partial){.version = version, .state = kernel->start});
}

void key_clear(Key *key) {
    for (Py_ssize_t i = 0; i < key->partials.size; i++) partial_drop(&key->partials.items[i]);
    for (Py_ssize_t i = 0; i < key->completed.size; i++) partial_drop(&key->completed.items[i]);
    release_memory(key->partials.items);
    release_memory(key->completed.items);
    release_memory(key->timers);
    release_memory(key->present);
    buffer_clear(&key->buffer);
    *key = (Key){0};
}

/* Find the states that partial matches are in, in the order of the tables. */
static void find_present(Kernel *kernel, Key *key) {
    key->present_count = 0;
    for (Py_ssize_t i = 0; i < key->partials.size; i++) {
        int32_t state = key->partials.items[i].state;
        if (kernel->stamps[state]) continue;
        kernel->stamps[state] = true;
        if (key->present_count == key->present_room) {
            key->present_room = key->present_room ? key->present_room * 2 : 4;
            key->present =
                must_grow(key->present, (size_t)key->present_room * sizeof(int32_t));
        }
        int32_t at = key->present_count++;
        for (; at > 0 && key->present[at - 1] > state; at--)
            key->present[at] = key->present[at - 1];
        key->present[at] = state;
    }
    for (int32_t i = 0; i < key->present_count; i++) kernel->stamps[key->present[i]] = false;
    key->present_known = true;
}

/* --- time */

/* Give when the first of the windows of a partial match ends; false when never. */
static bool deadline_of(const Kernel *kernel, const Partial *partial, int64_t *deadline) {
    bool ends = false;
    if (!partial->has_start || partial->node == NULL) return false;
    if (kernel->window_time > 0)
        ends = !__builtin_add_overflow(partial->start_timestamp, kernel->window_time, deadline);
    int64_t gap = kernel->states[partial->state].gap_ms, by_gap;
    if (gap > 0 && !__builtin_add_overflow(partial->node->entry->timestamp, gap, &by_gap) &&
        (!ends || by_gap < *deadline)) {
        *deadline = by_gap;
        ends = true;
    }
    return ends;
}

void key_first_deadline(Kernel *kernel, Key *key) {
    Py_ssize_t looked_at = kernel->has_gaps ? key->partials.size : 1;
    key->never = true;
    key->deadline = INT64_MAX;
    for (Py_ssize_t i = 0; i < looked_at && i < key->partials.size; i++) {
        int64_t deadline;
        if (deadline_of(kernel, &key->partials.items[i], &deadline)) {
            if (key->never || deadline < key->deadline) key->deadline = deadline;
            key->never = false;
        }
    }
}

static int64_t passed_deadline(const Kernel *kernel, const Partial *partial, int64_t timestamp) {
    int64_t gap = kernel->states[partial->state].gap_ms, gap_end;
    if (gap > 0 && !__builtin_add_overflow(partial->node->entry->timestamp, gap, &gap_end) &&
        timestamp >= gap_end)
        return gap_end;
    return partial->start_timestamp + kernel->window_time;
}

/* Keep a timeout until the matches that waited for time have been given. */
static void keep_timeout(Kernel *kernel, const Partial *partial, int64_t timestamp) {
    Path *path = &kernel->path;
    path_of_run(path, partial->node, partial->version);
    for (Py_ssize_t i = 0; i < path->size; i++)
        found_event(&kernel->late, path->steps[i].stage, path->steps[i].entry->handle);
    found_end(&kernel->late, false, passed_deadline(kernel, partial, timestamp));
}

static void give_timeouts(Kernel *kernel) {
    Found *late = &kernel->late;
    for (Py_ssize_t i = 0, event = 0; i < late->size; i++) {
        for (; event < late->ends[i]; event++)
            found_event(&kernel->found, late->stages[event], late->handles[event]);
        found_end(&kernel->found, false, late->times[i]);
    }
    late->size = late->events = 0;
}

static int give_pending(Kernel *kernel, Key *key, int64_t timestamp) {
    Partials *pending = &kernel->done;
    if (kernel->skip_kind != SKIP_NONE) return emit(kernel, key, pending, timestamp);
    for (Py_ssize_t i = 0; i < pending->size; i++) {
        Partial *partial = &pending->items[i];
        matches_add(kernel, partial, partial->node, partial->version, NO_STATE);
        partial_release(key, partial);
    }
    pending->size = 0;
    emit_at_once(kernel, timestamp);
    return 0;
}

/* End the partial matches whose window has passed. */
int key_advance(Kernel *kernel, Key *key, int64_t timestamp) {
    if (key->never || timestamp < key->deadline) return 0;
    Partials *kept = &kernel->following;
    kept->size = kernel->done.size = 0;
    Py_ssize_t before = key->partials.size;
    for (Py_ssize_t i = 0; i < before; i++) {
        Partial *partial = &key->partials.items[i];
        int64_t deadline;
        if (!deadline_of(kernel, partial, &deadline) || timestamp < deadline) {
            partial_push(kept, *partial);
        } else if (kernel->states[partial->state].is_pending) {
            partial_push(&kernel->done, *partial);
        } else {
            if (kernel->handle_timeout) keep_timeout(kernel, partial, timestamp);
            partial_release(key, partial);
        }
    }
    partials_swap(&key->partials, kept);
    key_first_deadline(kernel, key);
    if (key->partials.size == before) return 0;
    key->present_known = false;
    int status = give_pending(kernel, key, timestamp);
    give_timeouts(kernel);
    return status;
}

void key_drop_oldest(Kernel *kernel, Key *key, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) partial_release(key, &key->partials.items[i]);
    key->partials.size -= count;
    memmove(key->partials.items, key->partials.items + count,
            (size_t)key->partials.size * sizeof(Partial));
    key->present_known = false;
    key_first_deadline(kernel, key);
}

/* --- events */

/* Let a partial match go on to one other state. */
static void move_on(Kernel *kernel, Key *key, Partial *partial, const Move *move, Entry *entry) {
    Version *old = partial->version, *raised = version_increase(old, move->increase);
    Version *version = version_add_stage(raised);
    version_drop(raised);
    if (move->takes) { /* the only take, so that the version did not grow before it */
        Node *node = node_keep(buffer_extend(
            &key->buffer, &kernel->values, move->stage, entry, partial->node, old, version));
        node_drop(partial->node);
        partial->node = node;
    } else {
        buffer_relabel(&key->buffer, partial->node, old, version);
    }
    version_drop(old);
    partial->version = version;
    partial->state = move->target;
}

/* Begin partial matches; the others stay as they are. */
static void begin(Kernel *kernel, Key *key, const Decision *step) {
    Partial start = key->partials.items[--key->partials.size];
    Entry *entry = buffer_register(&key->buffer, kernel->handle, kernel->timestamp);
    for (Py_ssize_t i = 0; i < step->size; i++) {
        const Move *move = &step->moves[i];
        Version *version = version_increase(start.version, move->increase);
        if (move->stays) {
            version_drop(start.version);
            start.version = version;
            partial_push(&key->partials, start);
            continue;
        }
        Version *following = version_add_stage(version);
        Node *node = buffer_extend(
            &key->buffer, &kernel->values, move->stage, entry, NULL, version, following);
        version_drop(version);
        Partial partial = {.version = following, .node = node_keep(node), .state = move->target,
                           .start_timestamp = entry->timestamp, .start_id = entry->id,
                           .has_start = true};
        partial_push(&key->partials, partial);
        int64_t deadline;
        if (deadline_of(kernel, &partial, &deadline) && (key->never || deadline < key->deadline)) {
            key->deadline = deadline;
            key->never = false;
        }
    }
    buffer_release_event(&key->buffer, entry);
    key->present_known = false;
    if (kernel->timestamp > 0) key->is_new_start = true;
}

/* Add what a partial match becomes to the partial matches and the matches. */
static void branch(Kernel *kernel, Key *key, Partial partial, const Decision *step, Entry *entry) {
    Node *before = partial.node;
    Version *old = partial.version;
    bool skips = kernel->skip_kind != SKIP_NONE;
    Py_ssize_t stays = -1;
    int64_t raise = 0;
    for (Py_ssize_t i = 0; i < step->size; i++) {
        const Move *move = &step->moves[i];
        if (move->stays) {
            stays = kernel->following.size;
            raise = move->increase;
            partial_push(&kernel->following, partial);
            continue;
        }
        Node *node = before;
        Version *version = version_increase(old, move->increase);
        Partial next = partial;
        next.state = move->target;
        if (!partial.has_start) {
            next.has_start = true;
            next.start_timestamp = entry == NULL ? INT64_MAX : entry->timestamp;
            next.start_id = entry == NULL ? INT64_MAX : entry->id;
        }
        if (move->completes && !skips) {
            matches_add(kernel, &next, before, version, move->takes ? move->stage : NO_STATE);
            if (!move->continues) {
                version_drop(version);
                continue;
            }
        }
        if (move->takes)
            node = buffer_put(&kernel->values, move->stage, entry, before, version);
        if (move->adds_stage) {
            Version *longer = version_add_stage(version);
            version_drop(version);
            version = longer;
        }
        if (move->continues) {
            buffer_lock_node(node, version);
            next.node = node_keep(node);
            next.version = version_keep(version);
            partial_push(&kernel->following, next);
        }
        if (move->completes && skips) {
            buffer_lock_node(node, version);
            next.node = node_keep(node);
            next.version = version_keep(version);
            next.state = kernel->final;
            partial_push(&kernel->done, next);
        }
        version_drop(version);
    }
    if (stays >= 0) {
        Version *version = version_increase(old, raise);
        if (before != NULL) buffer_relabel(&key->buffer, before, old, version);
        version_drop(old);
        kernel->following.items[stays].version = version;
    } else {
        partial_release(key, &partial);
    }
}

/* Find each partial match's step before any is taken, so that a failing condition harms nothing. */
static int decide(Kernel *kernel, Key *key, bool *changes) {
    if (key->partials.size > kernel->step_room) {
        kernel->step_room = key->partials.size * 2;
        kernel->steps =
            must_grow(kernel->steps, (size_t)kernel->step_room * sizeof(Decision *));
    }
    *changes = false;
    for (Py_ssize_t i = 0; i < key->partials.size; i++) {
        Partial *partial = &key->partials.items[i];
        Decision *step = kernel->by_state[partial->state];
        if (!step->is_step) {
            step = evaluation_of_match(kernel, partial, step);
            if (step == NULL) return -1;
        }
        kernel->steps[i] = step;
        *changes = *changes || !step->keeps;
    }
    return 0;
}

static int give_matches(Kernel *kernel, Key *key) {
    if (kernel->done.size > 0 || key->completed.size > 0)
        return emit(kernel, key, &kernel->done, kernel->timestamp);
    emit_at_once(kernel, kernel->timestamp);
    return 0;
}

static int take_steps(Kernel *kernel, Key *key) {
    bool skips = kernel->skip_kind != SKIP_NONE;
    Entry *entry = NULL;
    kernel->following.size = kernel->done.size = 0;
    for (Py_ssize_t i = 0; i < key->partials.size; i++) {
        Decision *step = kernel->steps[i];
        Partial partial = key->partials.items[i];
        if (step->keeps) {
            partial_push(&kernel->following, partial);
            continue;
        }
        if (entry == NULL && (step->keeps_event || (skips && step->takes)))
            entry = buffer_register(&key->buffer, kernel->handle, kernel->timestamp);
        if (step->single != NULL) {
            move_on(kernel, key, &partial, step->single, entry);
            partial_push(&kernel->following, partial);
            continue;
        }
        if (partial.state == kernel->start && kernel->timestamp > 0) key->is_new_start = true;
        branch(kernel, key, partial, step, entry);
    }
    partials_swap(&key->partials, &kernel->following);
    key->present_known = false;
    key_first_deadline(kernel, key);
    int status = give_matches(kernel, key);
    if (entry != NULL) buffer_release_event(&key->buffer, entry);
    return status;
}

/* Show the event at work to every partial match of a key. */
int key_apply(Kernel *kernel, Key *key) {
    bool changing = false, asks = false, others = false;
    if (!key->present_known) find_present(kernel, key);
    for (int32_t i = 0; i < key->present_count; i++) {
        int32_t state = key->present[i];
        Decision *decision = evaluation_of_event(kernel, state);
        if (decision == NULL) return -1;
        kernel->by_state[state] = decision;
        if (decision->is_step && decision->keeps) continue;
        changing = true;
        asks |= !decision->is_step;
        others |= state != kernel->start;
    }
    if (!changing) return 0;
    Decision *start = kernel->by_state[kernel->start];
    if (!asks && !others && !start->completes) {
        begin(kernel, key, start);
        return 1;
    }
    bool changes;
    if (decide(kernel, key, &changes) < 0) return -1;
    if (changes && take_steps(kernel, key) < 0) return -1;
    return 1;
}
