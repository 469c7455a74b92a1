/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of an event, or of time, on the partial matches of a key. Mirror: engines/flink/nfa/nfa.py,
   partial_matches.py. */
#include "base/signals.h"
#include "flink/kernel.h"

/* Find the states that partial matches are in, in the order of the tables. */
static int find_present(Kernel *kernel, Key *key) {
    bool *stamps = kernel->work.stamps;
    int32_t *present =
        reserve(key->present, &key->present_room, kernel->pattern.state_count, sizeof(int32_t));
    if (present == NULL) return -1;
    key->present = present;
    key->present_count = 0;
    for (Py_ssize_t i = 0; i < key->partials.size; i++) {
        int32_t state = key->partials.items[i].state;
        if (stamps[state]) continue;
        stamps[state] = true;
        Py_ssize_t at = key->present_count++;
        for (; at > 0 && present[at - 1] > state; at--) present[at] = present[at - 1];
        present[at] = state;
    }
    for (Py_ssize_t i = 0; i < key->present_count; i++) stamps[present[i]] = false;
    key->present_known = true;
    return 0;
}

/* Fail in the middle of a step, with `taken` partial matches already taken over or dropped. */
static int half_done(Key *key, Py_ssize_t taken) {
    partials_forget(&key->partials, taken);
    partials_clear(&key->partials);
    return -1;
}

/* --- time */

/* Keep a timeout until the matches that waited for time have been emitted. */
static int keep_timeout(Kernel *kernel, const Partial *partial, int64_t timestamp) {
    if (context_path(kernel, partial->node, partial->version) < 0 ||
        found_path(&kernel->late, &kernel->work.path) < 0)
        return -1;
    return found_end(&kernel->late, TIMEOUT, deadline_passed(kernel, partial, timestamp));
}

static int give_timeouts(Kernel *kernel) {
    Found *late = &kernel->late, *found = &kernel->found;
    int status = 0;
    for (Py_ssize_t i = 0, event = 0; i < late->size && status == 0; i++) {
        for (; event < late->ends[i] && status == 0; event++)
            status = found_event(found, late->stages[event], late->handles[event]);
        if (status == 0) status = found_end(found, TIMEOUT, late->times[i]);
    }
    found_empty(late);
    return status;
}

static int match_of_run(
    Kernel *kernel, const Partial *partial, Node *node, Version *version, int64_t time,
    int32_t last_stage) {
    if (context_path(kernel, node, version) < 0) return -1;
    return matches_add(
        &kernel->matches, partial, &kernel->work.path, time, last_stage, kernel->asked.handle);
}

static int give_pending(Kernel *kernel, Key *key, int64_t timestamp) {
    Partials *pending = &kernel->work.done;
    if (kernel->pattern.skip_kind != SKIP_NONE) return emit(kernel, key, pending, timestamp);
    int status = 0;
    for (Py_ssize_t i = 0; i < pending->size && status == 0; i++) {
        Partial *partial = &pending->items[i];
        int64_t end = timestamp;
        if (kernel->by_windows) deadline_of(kernel, partial, &end);
        status = match_of_run(kernel, partial, partial->node, partial->version, end, NO_STATE);
    }
    for (Py_ssize_t i = 0; i < pending->size; i++)
        if (partial_release(key, &pending->items[i]) < 0) status = -1;
    pending->size = 0;
    return status < 0 ? -1 : emit_at_once(kernel, key);
}

/* Keep a partial match whose window is open; end one whose window has passed. */
static int advance_one(Kernel *kernel, Key *key, Partial partial, int64_t timestamp) {
    Partials *goes_to = NULL;
    int64_t deadline;
    int status = 0;
    if (!deadline_of(kernel, &partial, &deadline) || timestamp < deadline)
        goes_to = &kernel->work.following;
    else if (kernel->pattern.states[partial.state].is_pending)
        goes_to = &kernel->work.done;
    if (goes_to != NULL) {
        status = partial_push(goes_to, partial);
        if (status < 0) partial_drop(&partial);
        return status;
    }
    kernel->ended.window++;
    if (kernel->pattern.handle_timeout) status = keep_timeout(kernel, &partial, timestamp);
    return partial_release(key, &partial) < 0 ? -1 : status;
}

int64_t key_release_time(const Kernel *kernel, const Key *key, int64_t timestamp) {
    if (!kernel->by_windows || kernel->pattern.skip_kind == SKIP_NONE || key->never ||
        timestamp < key->deadline)
        return timestamp;
    const Partial *waiting = key->completed.size > 0 ? &key->completed.items[0] : NULL;
    bool is_held = false;
    int64_t first = timestamp, released = INT64_MIN;
    for (Py_ssize_t i = 0; i < key->partials.size; i++) {
        const Partial *partial = &key->partials.items[i];
        int64_t end;
        if (!deadline_of(kernel, partial, &end)) end = INT64_MAX;
        if (kernel->pattern.states[partial->state].is_pending && end < first) first = end;
        if (waiting == NULL || !partial->has_start || !starts_before(partial, waiting)) continue;
        is_held = true;
        if (end > released) released = end;
    }
    return is_held && released < first ? released : first;
}

int key_advance(Kernel *kernel, Key *key, int64_t timestamp) {
    if (key->never || timestamp < key->deadline) return 0;
    Partials *kept = &kernel->work.following;
    Py_ssize_t before = key->partials.size;
    for (Py_ssize_t i = 0; i < before; i++)
        if (advance_one(kernel, key, key->partials.items[i], timestamp) < 0 || check_signals() < 0)
            return half_done(key, i + 1);
    key->partials.size = 0;
    partials_swap(&key->partials, kept);
    key_first_deadline(kernel, key);
    if (key->partials.size == before) return 0;
    key->present_known = false;
    int status = give_pending(kernel, key, timestamp);
    return give_timeouts(kernel) < 0 ? -1 : status;
}

int key_drop_oldest(Kernel *kernel, Key *key, Py_ssize_t count) {
    int status = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (partial_release(key, &key->partials.items[i]) < 0) status = -1;
    partials_forget(&key->partials, count);
    key->present_known = false;
    key_first_deadline(kernel, key);
    if (status < 0 || key->completed.size == 0) return status;
    return emit(kernel, key, &kernel->work.done, kernel->asked.timestamp);
}

/* --- events */

/*
 * Give the way of a partial match that takes the current event for a stage that it has not taken
 * any for; `node` and `version` are those before. Mirror: engines/flink/nfa/observer.py.
 */
static int give_reached(Kernel *kernel, int32_t stage, Node *node, Version *version) {
    Path *path = &kernel->work.path;
    if (node != NULL && node->stage == stage) return 0;
    if (node == NULL)
        path->size = 0;
    else if (context_path(kernel, node, version) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < path->size; i++)
        if (path->steps[i].stage == stage) return 0;
    Found *found = &kernel->found;
    if (found_path(found, path) < 0 || found_event(found, stage, kernel->asked.handle) < 0)
        return -1;
    return found_end(found, REACHED, kernel->asked.timestamp);
}

/* Move a partial match to one other state. */
static int move_on(Kernel *kernel, Key *key, Partial *partial, const Move *move, Entry *entry) {
    Version *old = partial->version, *raised = version_increase(old, move->increase);
    if (raised == NULL) return -1;
    Version *version = version_add_stage(raised);
    version_drop(raised);
    if (version == NULL) return -1;
    if (move->takes) { /* the only take, so the version did not grow before it */
        if (kernel->gives_reached && give_reached(kernel, move->stage, partial->node, old) < 0) {
            version_drop(version);
            return -1;
        }
        Node *node = buffer_extend(
            &key->buffer, &kernel->values, move->stage, entry, partial->node, old, version);
        if (node == NULL) {
            version_drop(version);
            return -1;
        }
        node_keep(node);
        node_drop(partial->node);
        partial->node = node;
    } else if (buffer_relabel(&key->buffer, partial->node, old, version) < 0) {
        version_drop(version);
        return -1;
    }
    version_drop(old);
    partial->version = version;
    partial->state = move->target;
    return 0;
}

/* Begin a partial match with an event, under a version that the start state has advanced to. */
static int begin_one(Kernel *kernel, Key *key, const Move *move, Version *version, Entry *entry) {
    Version *following = version_add_stage(version);
    if (following == NULL) return -1;
    Node *node =
        buffer_extend(&key->buffer, &kernel->values, move->stage, entry, NULL, version, following);
    Partial partial = {.version = following,
        .node = node,
        .state = move->target,
        .start_timestamp = entry->timestamp,
        .start_id = entry->id,
        .has_start = true};
    int status = node == NULL ? -1 : partial_push_kept(&key->partials, partial);
    version_drop(following);
    if (status == 0) key_earlier_deadline(kernel, key, &partial);
    if (status == 0 && kernel->gives_reached)
        status = give_reached(kernel, move->stage, NULL, NULL);
    return status;
}

/* Begin partial matches; the others are unchanged. */
static int begin(Kernel *kernel, Key *key, const Decision *step) {
    Partial start = key->partials.items[--key->partials.size];
    Entry *entry = buffer_register(&key->buffer, kernel->asked.handle, kernel->asked.timestamp);
    int status = entry == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; i < step->size && status == 0; i++) {
        const Move *move = &step->moves[i];
        Version *version = version_increase(start.version, move->increase);
        if (version == NULL) {
            status = -1;
        } else if (move->stays) {
            version_drop(start.version);
            start.version = version_keep(version);
            status = partial_push_kept(&key->partials, start);
        } else {
            status = begin_one(kernel, key, move, version, entry);
        }
        version_drop(version);
    }
    partial_drop(&start);
    if (entry != NULL) buffer_release_event(&key->buffer, entry);
    key->present_known = false;
    if (kernel->asked.timestamp > 0) key->is_new_start = true;
    return status;
}

/* What a partial match becomes by one move, but for its node and version. */
static Partial moved(const Partial *partial, const Move *move, const Entry *entry) {
    Partial next = *partial;
    next.state = move->target;
    if (!partial->has_start) {
        next.has_start = true;
        next.start_timestamp = entry == NULL ? INT64_MAX : entry->timestamp;
        next.start_id = entry == NULL ? INT64_MAX : entry->id;
    }
    return next;
}

/* Add what a partial match becomes by a move that does not stay; `version` is the version then. */
static int branch_to(
    Kernel *kernel, const Partial *partial, const Move *move, Entry *entry, Version *version) {
    bool completes = move->completes, skips = kernel->pattern.skip_kind != SKIP_NONE;
    Partial next = moved(partial, move, entry);
    if (move->takes && kernel->gives_reached &&
        give_reached(kernel, move->stage, partial->node, version) < 0)
        return -1;
    if (completes && !skips) {
        int32_t last = move->takes ? move->stage : NO_STATE;
        if (match_of_run(kernel, &next, partial->node, version, kernel->asked.timestamp, last) < 0)
            return -1;
        if (!move->continues) return 0;
    }
    if (move->takes) {
        next.node = buffer_put(&kernel->values, move->stage, entry, partial->node, version);
        if (next.node == NULL) return -1;
    }
    next.version = move->adds_stage ? version_add_stage(version) : version_keep(version);
    if (next.version == NULL) return -1;
    int status = 0;
    if (move->continues) {
        buffer_lock_node(next.node, next.version);
        status = partial_push_kept(&kernel->work.following, next);
    }
    if (completes && skips && status == 0) {
        buffer_lock_node(next.node, next.version);
        next.state = kernel->pattern.final;
        status = partial_push_kept(&kernel->work.done, next);
    }
    version_drop(next.version);
    return status;
}

/*
 * Add what a partial match becomes to the partial matches and the matches. Takes over the partial
 * match, and drops it if memory runs out.
 */
static int branch(Kernel *kernel, Key *key, Partial partial, const Decision *step, Entry *entry) {
    Partials *following = &kernel->work.following;
    Py_ssize_t stays = -1;
    int64_t raise = 0;
    int status = 0;
    if (step->size == 0) kernel->ended.by_event[step->ending]++;
    for (Py_ssize_t i = 0; i < step->size && status == 0; i++) {
        const Move *move = &step->moves[i];
        if (move->stays) {
            status = partial_push(following, partial);
            if (status == 0) stays = following->size - 1;
            raise = move->increase;
            continue;
        }
        Version *version = version_increase(partial.version, move->increase);
        status = version == NULL ? -1 : branch_to(kernel, &partial, move, entry, version);
        version_drop(version);
    }
    if (stays < 0) {
        if (status == 0) return partial_release(key, &partial);
        partial_drop(&partial);
        return -1;
    }
    Version *version = status < 0 ? NULL : version_increase(partial.version, raise);
    if (version == NULL) return -1;
    if (partial.node != NULL)
        status = buffer_relabel(&key->buffer, partial.node, partial.version, version);
    version_drop(partial.version);
    following->items[stays].version = version;
    return status;
}

/* Find each partial match's step before taking any, so that a failing condition does no harm. */
static int decide(Kernel *kernel, Key *key, bool *changes) {
    Workspace *work = &kernel->work;
    Decision **steps =
        reserve(work->steps, &work->step_room, key->partials.size, sizeof(Decision *));
    if (steps == NULL) return -1;
    work->steps = steps;
    *changes = false;
    for (Py_ssize_t i = 0; i < key->partials.size; i++) {
        if (check_signals() < 0) return -1;
        Partial *partial = &key->partials.items[i];
        Decision *step = work->by_state[partial->state];
        if (!step->is_step) {
            step = evaluation_of_match(kernel, partial, step);
            if (step == NULL) return -1;
        }
        steps[i] = step;
        *changes = *changes || !step->keeps;
    }
    return 0;
}

static int give_matches(Kernel *kernel, Key *key) {
    Partials *done = &kernel->work.done;
    if (done->size > 0 || key->completed.size > 0)
        return emit(kernel, key, done, kernel->asked.timestamp);
    return emit_at_once(kernel, key);
}

/* Take a partial match's step. Takes over the partial match, and drops it if memory runs out. */
static int take_step(Kernel *kernel, Key *key, Partial partial, Decision *step, Entry **entry) {
    bool skips = kernel->pattern.skip_kind != SKIP_NONE;
    int status = 0;
    if (!step->keeps) {
        if (*entry == NULL && (step->keeps_event || (skips && step->takes))) {
            *entry = buffer_register(&key->buffer, kernel->asked.handle, kernel->asked.timestamp);
            if (*entry == NULL) status = -1;
        }
        if (status == 0 && step->single == NULL) {
            if (partial.state == kernel->pattern.start && kernel->asked.timestamp > 0)
                key->is_new_start = true;
            return branch(kernel, key, partial, step, *entry);
        }
        if (status == 0) status = move_on(kernel, key, &partial, step->single, *entry);
    }
    if (status == 0) status = partial_push(&kernel->work.following, partial);
    if (status < 0) partial_drop(&partial);
    return status;
}

static int take_steps(Kernel *kernel, Key *key) {
    Partials *following = &kernel->work.following;
    Entry *entry = NULL;
    for (Py_ssize_t i = 0; i < key->partials.size; i++)
        if (take_step(kernel, key, key->partials.items[i], kernel->work.steps[i], &entry) < 0 ||
            check_signals() < 0)
            return half_done(key, i + 1);
    key->partials.size = 0;
    partials_swap(&key->partials, following);
    key->present_known = false;
    key_deadline_after(kernel, key);
    int status = give_matches(kernel, key);
    if (entry != NULL) buffer_release_event(&key->buffer, entry);
    return status;
}

int key_apply(Kernel *kernel, Key *key) {
    bool changing = false, asks = false, others = false;
    if (!key->present_known && find_present(kernel, key) < 0) return -1;
    Decision **by_state = kernel->work.by_state;
    int32_t start = kernel->pattern.start;
    for (Py_ssize_t i = 0; i < key->present_count; i++) {
        int32_t state = key->present[i];
        Decision *decision = evaluation_of_event(kernel, state);
        if (decision == NULL) return -1;
        by_state[state] = decision;
        if (decision->is_step && decision->keeps) continue;
        changing = true;
        asks |= !decision->is_step;
        others |= state != start;
    }
    if (!changing) return 0;
    if (!asks && !others && !by_state[start]->completes)
        return begin(kernel, key, by_state[start]) < 0 ? -1 : 1;
    bool changes;
    if (decide(kernel, key, &changes) < 0) return -1;
    if (changes && take_steps(kernel, key) < 0) return -1;
    return 1;
}
