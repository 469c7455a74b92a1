/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's rules for one key; see operator/cep_operator.py. */
#include "kernel.h"

static bool timer_after(const Kernel *kernel, int64_t time, int64_t *timer) {
    if (__builtin_add_overflow(time, kernel->window_time, timer)) return false;
    return !kernel->processing_time || !__builtin_add_overflow(*timer, 1, timer);
}

/* Give the place of a timer among the others, which rise. */
static Py_ssize_t timer_place(const Key *key, int64_t timer) {
    Py_ssize_t low = 0, high = key->timer_count;
    if (high > 0 && key->timers[high - 1] < timer) low = high;
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        if (key->timers[middle] < timer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_timer(const Key *key, int64_t timer) {
    Py_ssize_t place = timer_place(key, timer);
    return place < key->timer_count && key->timers[place] == timer;
}

static void add_timer(Key *key, int64_t timer) {
    if (has_timer(key, timer)) return;
    Py_ssize_t place = timer_place(key, timer);
    if (key->timer_count == key->timer_room) {
        key->timer_room = key->timer_room ? key->timer_room * 2 : 4;
        key->timers = must_grow(key->timers, (size_t)key->timer_room * sizeof(int64_t));
    }
    memmove(key->timers + place + 1, key->timers + place,
            (size_t)(key->timer_count - place) * sizeof(int64_t));
    key->timers[place] = timer;
    key->timer_count++;
}

/*
 * Set the timers that end windows, after events of which one at `begun` began a match. Flink sets
 * one for each event from then on; one for each partial match does, but where a gap ends it
 * earlier or it began at or before the epoch.
 */
static void set_timers(
    Kernel *kernel, Key *key, const int64_t *times, Py_ssize_t start, Py_ssize_t end,
    int64_t begun) {
    const Partials *partials = &key->partials;
    const Partial *earliest = &partials->items[0];
    int64_t timer;
    if (kernel->has_gaps || (earliest->has_start && earliest->start_timestamp <= 0)) {
        for (Py_ssize_t i = start; i < end; i++)
            if (times[i] >= begun && timer_after(kernel, times[i], &timer)) add_timer(key, timer);
        return;
    }
    Py_ssize_t first = partials->size;
    while (first > 0) { /* timers of earlier starts were set before */
        const Partial *partial = &partials->items[first - 1];
        if (partial->has_start && timer_after(kernel, partial->start_timestamp, &timer) &&
            has_timer(key, timer))
            break;
        first--;
    }
    for (Py_ssize_t i = first; i < partials->size; i++)
        if (partials->items[i].has_start &&
            timer_after(kernel, partials->items[i].start_timestamp, &timer))
            add_timer(key, timer);
}

static int enforce_limit(Kernel *kernel, Key *key) {
    Py_ssize_t surplus = key->partials.size - 1 - (Py_ssize_t)kernel->limit;
    if (surplus <= 0) return 0;
    if (!kernel->drop_oldest) {
        PyObject *none =
            PyObject_CallMethod(kernel->helper, "too_many", "nL", key->partials.size - 1,
                                (long long)kernel->timestamp);
        Py_XDECREF(none);
        return -1;
    }
    key_drop_oldest(kernel, key, surplus);
    kernel->found.dropped += surplus;
    return 0;
}

/*
 * Match events that are in their final order, from `start` on. Give where to go on: `end`, or,
 * once there are `most_results`, an event of another time before; -1 with an exception.
 */
Py_ssize_t key_process(
    Kernel *kernel, Key *key, const int64_t *times, const int64_t *handles, int64_t base,
    const int64_t *bits, Py_ssize_t start, Py_ssize_t end, Py_ssize_t most_results) {
    bool has_begun = key->is_new_start && start < end, has_now = false;
    int64_t begun = start < end ? times[start] : 0, now = 0;
    Py_ssize_t at = start;
    for (; at < end; at++) {
        int64_t timestamp = times[at];
        if (kernel->found.size >= most_results && at > start && times[at - 1] != timestamp) break;
        /* Once for a time: its first event may move a partial match to a state with a gap that
         * is over already, and Flink lets the second event still have it. */
        if (!key->never && timestamp >= key->deadline && !(has_now && now == timestamp) &&
            key_advance(kernel, key, timestamp) < 0)
            return -1;
        evaluation_begin(kernel, handles == NULL ? base + at : handles[at], timestamp,
                         bits == NULL ? 0 : (uint64_t)bits[at]);
        int status = key_apply(kernel, key);
        if (status < 0) return -1;
        if (status == 0) continue;
        has_now = true;
        now = timestamp;
        if (kernel->limit > 0 && enforce_limit(kernel, key) < 0) return -1;
        if (!has_begun && key->is_new_start) {
            has_begun = true;
            begun = timestamp;
        }
    }
    evaluation_end(kernel);
    if (has_begun && kernel->window_time > 0 && kernel->sets_timers)
        set_timers(kernel, key, times, start, at, begun);
    return at;
}

/* Let time pass for a key after its events up to then were processed. */
int key_advance_watermark(Kernel *kernel, Key *key, int64_t timestamp) {
    Py_ssize_t passed = 0;
    while (passed < key->timer_count && key->timers[passed] <= timestamp) passed++;
    key->timer_count -= passed;
    if (passed > 0)
        memmove(key->timers, key->timers + passed, (size_t)key->timer_count * sizeof(int64_t));
    kernel->timestamp = timestamp;
    if (key_advance(kernel, key, timestamp) < 0) return -1;
    key->is_new_start = false;
    return 0;
}

/* Whether nothing is pending, so that the key needs no state. */
bool key_is_idle(const Kernel *kernel, const Key *key) {
    return key->partials.size == 1 && key->completed.size == 0 &&
           !(kernel->has_gaps && key->timer_count > 0);
}
