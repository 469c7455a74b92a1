/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's rules for one key. Mirror: engines/flink/operator.py, engines/flink/operator.py. */
#include "base/signals.h"
#include "flink/kernel.h"

#include <string.h>

static bool timer_after(const Kernel *kernel, int64_t time, int64_t *timer) {
    if (add_overflows(time, kernel->pattern.window_time, timer)) return false;
    return !kernel->processing_time || !add_overflows(*timer, 1, timer);
}

/* Return the index of a timer among the sorted others. */
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

static int add_timer(Key *key, int64_t timer) {
    Py_ssize_t place = timer_place(key, timer);
    if (place < key->timer_count && key->timers[place] == timer) return 0;
    int64_t *timers = reserve(key->timers, &key->timer_room, key->timer_count + 1, sizeof(int64_t));
    if (timers == NULL) return -1;
    key->timers = timers;
    memmove(
        timers + place + 1, timers + place, (size_t)(key->timer_count - place) * sizeof(int64_t));
    timers[place] = timer;
    key->timer_count++;
    return 0;
}

/* Set a timer for each event from `begun` on. */
static int set_timers_of_events(
    Kernel *kernel, Key *key, const int64_t *times, Py_ssize_t start, Py_ssize_t end,
    int64_t begun) {
    int64_t timer;
    for (Py_ssize_t i = start; i < end; i++)
        if (times[i] >= begun && timer_after(kernel, times[i], &timer) && add_timer(key, timer) < 0)
            return -1;
    return 0;
}

/* Set a timer for each partial match that began later than those with a timer. */
static int set_timers_of_starts(Kernel *kernel, Key *key) {
    const Partials *partials = &key->partials;
    int64_t timer;
    Py_ssize_t first = partials->size;
    while (first > 0) {
        const Partial *partial = &partials->items[first - 1];
        if (partial->has_start && timer_after(kernel, partial->start_timestamp, &timer) &&
            has_timer(key, timer))
            break;
        first--;
    }
    for (Py_ssize_t i = first; i < partials->size; i++)
        if (partials->items[i].has_start &&
            timer_after(kernel, partials->items[i].start_timestamp, &timer) &&
            add_timer(key, timer) < 0)
            return -1;
    return 0;
}

/*
 * Set the timers that end windows, after events that include the start of a match at `begun`. Flink
 * sets one for each event from then on; one for each partial match will do, unless a gap ends it
 * earlier or it began at or before the epoch.
 */
static int set_timers(
    Kernel *kernel, Key *key, const int64_t *times, Py_ssize_t start, Py_ssize_t end,
    int64_t begun) {
    const Partial *earliest = &key->partials.items[0];
    if (kernel->pattern.has_gaps || (earliest->has_start && earliest->start_timestamp <= 0))
        return set_timers_of_events(kernel, key, times, start, end, begun);
    return set_timers_of_starts(kernel, key);
}

static int enforce_limit(Kernel *kernel, Key *key) {
    Py_ssize_t surplus = key->partials.size - 1 - (Py_ssize_t)kernel->limit;
    if (kernel->limit == 0 || surplus <= 0) return 0;
    if (!kernel->drop_oldest) {
        lock_take();
        Py_XDECREF(PyObject_CallMethod(
            kernel->helper, "too_many", "nL", key->partials.size - 1,
            (long long)kernel->asked.timestamp));
        return -1;
    }
    kernel->found.dropped += surplus;
    return key_drop_oldest(kernel, key, surplus);
}

void name_memory_error(Kernel *kernel, Py_ssize_t partials) {
    if (PyErr_Occurred() != PyExc_MemoryError) return;
    PyErr_Clear();
    Py_XDECREF(PyObject_CallMethod(
        kernel->helper, "out_of_memory", "nL", partials, (long long)kernel->asked.timestamp));
}

/*
 * Fail. If memory has run out or a step is half done, the key cannot continue: it is cleared, and
 * shared memory is made ready for other keys. After other errors the key can continue.
 */
static int failed(Kernel *kernel, Key *key) {
    lock_take();
    evaluation_end(&kernel->asked);
    if (PyErr_Occurred() != PyExc_MemoryError && key->partials.size > 0) return -1;
    Py_ssize_t partials = key->partials.size + kernel->work.following.size;
    partials_clear(&kernel->work.following);
    partials_clear(&kernel->work.done);
    matches_empty(&kernel->matches);
    found_empty(&kernel->late);
    found_forget_open(&kernel->found);
    context_forget(kernel);
    key_clear(key);
    name_memory_error(kernel, partials);
    return -1;
}

/* End windows up to a time, one by one where matches have the times of these ends. */
static int advance_through(Kernel *kernel, Key *key, int64_t timestamp) {
    int64_t now;
    do {
        now = key_release_time(kernel, key, timestamp);
        if (key_advance(kernel, key, now) < 0) return -1;
    } while (now != timestamp);
    return 0;
}

/* Whether the bits that come with events, in one word, decide all conditions on one event. */
static bool bits_decide(const Kernel *kernel, const Events *events) {
    if (events->words != 1 || kernel->asked.words != 1) return false;
    for (Py_ssize_t i = 0; i < kernel->pattern.atom_count; i++) {
        const Atom *atom = &kernel->pattern.atoms[i];
        bool is_known = (kernel->asked.first.always_known & atom->bit) != 0;
        if (atom->kind == ATOM_OF_EVENT && !is_known) return false;
    }
    return true;
}

/* Whether a key has no partial match whose time may come. */
static bool is_empty(const Kernel *kernel, const Key *key) {
    const Partials *partials = &key->partials;
    return partials->size == 1 && partials->items[0].state == kernel->pattern.start && key->never;
}

Py_ssize_t key_process(
    Kernel *kernel, Key *key, const Events *events, Py_ssize_t start, Py_ssize_t end,
    Py_ssize_t most_events) {
    const int64_t *times = events->times.items, *handles = events->handles.items;
    const int64_t *bits = events->bits.items;
    Py_ssize_t words = events->words;
    bool has_begun = key->is_new_start && start < end, has_now = false;
    int64_t begun = start < end ? times[start] : 0, now = 0;
    bool are_decided = bits_decide(kernel, events);
    Py_ssize_t at = start;
    for (; at < end; at++) {
        int64_t timestamp = times[at];
        if (check_signals() < 0) return failed(kernel, key);
        bool has_kind = are_decided && (uint64_t)bits[at] < KINDS && is_empty(kernel, key);
        if (has_kind && kernel->passes[bits[at]]) continue;
        if (kernel->found.events >= most_events && at > start && times[at - 1] != timestamp) break;
        /* Once per time: its first event may move a partial match to a state whose gap is already
           over, and in Flink the second event can still use it. */
        if (!key->never && timestamp >= key->deadline && !(has_now && now == timestamp) &&
            advance_through(kernel, key, timestamp) < 0)
            return failed(kernel, key);
        evaluation_begin(
            &kernel->asked, handles == NULL ? events->base + at : handles[at], timestamp,
            words == 0 ? NULL : bits + at * words, words);
        int status = key_apply(kernel, key);
        if (status == 0) {
            if (has_kind) kernel->passes[bits[at]] = true;
            continue;
        }
        if (status < 0 || enforce_limit(kernel, key) < 0) return failed(kernel, key);
        has_now = true;
        now = timestamp;
        if (!has_begun && key->is_new_start) {
            has_begun = true;
            begun = timestamp;
        }
    }
    evaluation_end(&kernel->asked);
    if (has_begun && kernel->pattern.window_time > 0 && kernel->sets_timers &&
        set_timers(kernel, key, times, start, at, begun) < 0)
        return failed(kernel, key);
    return at;
}

int key_advance_watermark(Kernel *kernel, Key *key, int64_t timestamp) {
    Py_ssize_t passed = 0;
    while (passed < key->timer_count && key->timers[passed] <= timestamp) passed++;
    key->timer_count -= passed;
    if (passed > 0)
        memmove(key->timers, key->timers + passed, (size_t)key->timer_count * sizeof(int64_t));
    kernel->asked.timestamp = timestamp;
    if (advance_through(kernel, key, timestamp) < 0) return failed(kernel, key);
    key->is_new_start = false;
    return 0;
}

bool key_is_idle(const Kernel *kernel, const Key *key) {
    return key->partials.size == 1 && key->completed.size == 0 &&
           !(kernel->pattern.has_gaps && key->timer_count > 0);
}
