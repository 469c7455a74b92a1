/* SPDX-License-Identifier: Apache-2.0 */
/* Offers of many events, rule by rule. Mirror: engines/latest/columns.py. */
#include "base/signals.h"
#include "latest/latest.h"

#include <string.h>

/* What is asked of a call. */
typedef struct {
    const int64_t *times;
    const int32_t *events, *steps;
    const int64_t *keys;
    Py_ssize_t event_count, size;
    int64_t first;
    Cursor *cursors; /* by code of a step */
    int32_t *sorted_events; /* by step; NULL if the offers were so */
    int64_t *sorted_keys;
} Batch;

static int wrong(const char *text) {
    lock_take();
    PyErr_SetString(PyExc_ValueError, text);
    return -1;
}

/* Count the offers of each step into `ends`, shifted by one; return whether they are by step. */
static int count_steps(const Batch *batch, Py_ssize_t code_count, bool *is_sorted) {
    int32_t before = 0;
    *is_sorted = true;
    for (Py_ssize_t i = 0; i < batch->size; i++) {
        int32_t step = batch->steps[i];
        if (step < 0 || step >= code_count) return wrong("expected the code of a step");
        if (batch->events[i] < 0 || batch->events[i] >= batch->event_count)
            return wrong("expected the index of an event");
        if (step < before) *is_sorted = false;
        before = step;
        batch->cursors[step].end++;
    }
    return 0;
}

/* Bring the offers of each step together, in their order; return 1 if one has events in disorder. */
static int sort_offers(Batch *batch, Py_ssize_t code_count) {
    bool is_sorted;
    if (count_steps(batch, code_count, &is_sorted) < 0) return -1;
    const int32_t *events = batch->events;
    const int64_t *keys = batch->keys;
    Py_ssize_t at = 0;
    for (Py_ssize_t code = 0; code < code_count; code++) {
        batch->cursors[code].at = at;
        at += batch->cursors[code].end;
    }
    if (!is_sorted) {
        batch->sorted_events = allocate((size_t)batch->size * sizeof(int32_t));
        batch->sorted_keys = allocate((size_t)batch->size * sizeof(int64_t));
        if (batch->sorted_events == NULL || batch->sorted_keys == NULL) return -1;
        for (Py_ssize_t i = 0; i < batch->size; i++) {
            Py_ssize_t to = batch->cursors[batch->steps[i]].at++;
            batch->sorted_events[to] = batch->events[i];
            batch->sorted_keys[to] = batch->keys[i];
        }
        events = batch->sorted_events;
        keys = batch->sorted_keys;
        for (Py_ssize_t code = 0; code < code_count; code++)
            batch->cursors[code].at -= batch->cursors[code].end;
    }
    for (Py_ssize_t code = 0; code < code_count; code++) {
        Cursor *own = &batch->cursors[code];
        own->events = events;
        own->keys = keys;
        own->end += own->at;
        for (Py_ssize_t i = own->at + 1; i < own->end; i++)
            if (events[i] < events[i - 1]) return 1;
    }
    return 0;
}

static int32_t next_event(const Cursor *cursors, int32_t count) {
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < count; i++)
        if (cursors[i].at < cursors[i].end && cursors[i].events[cursors[i].at] < least)
            least = cursors[i].events[cursors[i].at];
    return least;
}

/* Offer an event to the steps of a rule that want it: later steps first, `until` after all. */
static int offer_event(
    Latest *latest, LatestRule *rule, Cursor *cursors, const Batch *batch, int32_t event) {
    int64_t time = batch->times[event], handle = batch->first + event;
    for (int32_t turn = 0; turn < rule->step_count; turn++) {
        int32_t step = turn == rule->step_count - 1 ? turn : rule->step_count - 2 - turn;
        Cursor *own = &cursors[step];
        while (own->at < own->end && own->events[own->at] == event) {
            int64_t key = own->keys[own->at++];
            if (rule_offer(latest, rule, &rule->steps[step], handle, time, key) < 0) return -1;
        }
    }
    return 0;
}

static int run_rule(Latest *latest, int32_t number, const Batch *batch) {
    LatestRule *rule = &latest->rules[number];
    Cursor *cursors = &batch->cursors[rule->code];
    for (int32_t event; (event = next_event(cursors, rule->step_count)) != INT32_MAX;) {
        if (offer_event(latest, rule, cursors, batch, event) < 0 || check_signals() < 0) return -1;
    }
    return 0;
}

static int run_rules(Latest *latest, const Batch *batch, bool is_last) {
    for (int32_t number = 0; number < latest->rule_count; number++) {
        LatestRule *rule = &latest->rules[number];
        if (run_rule(latest, number, batch) < 0) return -1;
        if (!rule->has_missing) continue;
        int64_t end =
            is_last || batch->event_count == 0 ? INT64_MAX : batch->times[batch->event_count - 1];
        if ((is_last || batch->event_count > 0) && rule_advance(latest, rule, end, is_last) < 0)
            return -1;
        if (rule_tell(latest, number) < 0) return -1;
    }
    return 0;
}

int latest_process(
    Latest *latest, const Array *times, const Array *events, const Array *steps, const Array *keys,
    int64_t first, bool is_last) {
    Batch batch = {.times = times->items,
        .events = events->items,
        .steps = steps->items,
        .keys = keys->items,
        .event_count = times->size,
        .size = events->size,
        .first = first};
    batch.cursors = allocate_zeros(latest->code_count, sizeof(Cursor));
    if (batch.cursors == NULL) return -1;
    lock_leave();
    int status = sort_offers(&batch, latest->code_count);
    if (status == 0) status = run_rules(latest, &batch, is_last);
    lock_take();
    release_memory(batch.cursors);
    release_memory(batch.sorted_events);
    release_memory(batch.sorted_keys);
    return status;
}
