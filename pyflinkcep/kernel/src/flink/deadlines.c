/* SPDX-License-Identifier: Apache-2.0 */
/* When windows end. Mirror: engines/flink/nfa/partial_matches.py. */
#include "flink/kernel.h"

bool deadline_of(const Kernel *kernel, const Partial *partial, int64_t *deadline) {
    const Pattern *pattern = &kernel->pattern;
    bool ends = false;
    if (!partial->has_start || partial->node == NULL) return false;
    if (pattern->window_time > 0)
        ends = !add_overflows(partial->start_timestamp, pattern->window_time, deadline);
    int64_t gap = pattern->states[partial->state].gap_ms, by_gap;
    if (gap > 0 && !add_overflows(partial->node->entry->timestamp, gap, &by_gap) &&
        (!ends || by_gap < *deadline)) {
        *deadline = by_gap;
        ends = true;
    }
    return ends;
}

int64_t deadline_passed(const Kernel *kernel, const Partial *partial, int64_t timestamp) {
    int64_t gap = kernel->pattern.states[partial->state].gap_ms, end;
    if (gap > 0 && !add_overflows(partial->node->entry->timestamp, gap, &end) && timestamp >= end)
        return end;
    add_overflows(partial->start_timestamp, kernel->pattern.window_time, &end);
    return end;
}

void key_earlier_deadline(const Kernel *kernel, Key *key, const Partial *partial) {
    int64_t deadline;
    if (!deadline_of(kernel, partial, &deadline)) return;
    if (key->never || deadline < key->deadline) key->deadline = deadline;
    key->never = false;
}

void key_first_deadline(const Kernel *kernel, Key *key) {
    key->never = true;
    key->deadline = INT64_MAX;
    for (Py_ssize_t i = 0; i < key->partials.size; i++)
        key_earlier_deadline(kernel, key, &key->partials.items[i]);
}

void key_deadline_after(const Kernel *kernel, Key *key) {
    const Partials *partials = &key->partials;
    if (kernel->pattern.has_gaps || partials->size < 2)
        key_first_deadline(kernel, key);
    else /* what the event began is the last but one */
        key_earlier_deadline(kernel, key, &partials->items[partials->size - 2]);
}
