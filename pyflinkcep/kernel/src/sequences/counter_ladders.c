/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop whose events rise, and whose runs nothing else distinguishes: one inequality decides all
 * of them at once. Mirror: MergedRuns in engines/sequences/runs.py.
 */
#include "sequences/counter.h"

enum { AHEAD = 1024 };

static int32_t rank_at(const Counter *counter, Py_ssize_t component, Py_ssize_t at) {
    int64_t handle = automaton_handle(&counter->sequence.automaton, at);
    const Array *ranks = &counter->rising[component].ranks;
    return handle >= 0 && handle < ranks->size ? ((const int32_t *)ranks->items)[handle] : -1;
}

static bool may_be_taken(const Counter *counter, Py_ssize_t component, Py_ssize_t at) {
    int32_t code = counter->sequence.automaton.stream.codes[at];
    if (code < 0 || code >= counter->sequence.automaton.stream.kinds) return false;
    return (counter->sequence.automaton.stream.begins[code] |
               counter->sequence.automaton.stream.takes[code]) >>
               component &
           1;
}

/* Give places to the current event and to future ones. */
static int look_ahead(Counter *counter, Py_ssize_t component, Py_ssize_t at) {
    Ladder *ladder = &counter->rising[component].ladder;
    Py_ssize_t most = ladder_alive(ladder, counter->starts.head), count = 0;
    if (most < AHEAD) most = AHEAD; /* or as many as there are, so that growth is amortized */
    int32_t *coming = allocate_zeros(most, sizeof(int32_t));
    if (coming == NULL) return -1;
    for (; at < counter->sequence.automaton.stream.size && count < most; at++) {
        int32_t rank = may_be_taken(counter, component, at) ? rank_at(counter, component, at) : -1;
        if (rank >= 0) coming[count++] = rank;
    }
    int status = ladder_make_room(ladder, coming, count, counter->starts.head);
    release_memory(coming);
    return status;
}

int ladder_event(Counter *counter, Py_ssize_t component, Py_ssize_t at) {
    Rising *own = &counter->rising[component];
    if (counts_end(&own->ladder.whole) <= counter->starts.head) return 0;
    if ((uint64_t)counter->sequence.automaton.begins >> (component + 1) & 1) {
        Run all = {.counts = own->ladder.whole};
        if (counter->sequence.payloads->take(&counter->sequence, &all, (int32_t)component + 1, at) <
            0)
            return -1;
    }
    int32_t rank = rank_at(counter, component, at);
    if (rank < 0 || !((uint64_t)counter->sequence.automaton.takes >> component & 1)) return 0;
    return ladder_sum_below(
        &own->ladder, rank, own->or_equal, counter->starts.head, &own->ladder.fresh);
}

int ladder_settle(Counter *counter, Py_ssize_t component, Py_ssize_t at, int64_t until) {
    Ladder *ladder = &counter->rising[component].ladder;
    if (ladder->fresh.size == 0) return 0;
    bool completes = component + 1 == counter->sequence.automaton.component_count;
    if (completes &&
        counts_sum(&ladder->fresh, counter->starts.head, until, &counter->now.count) < 0)
        return -1;
    int32_t rank = rank_at(counter, component, at);
    if (rank >= 0 && !ladder_has(ladder, rank) && look_ahead(counter, component, at) < 0) return -1;
    int status = ladder_put(ladder, rank, &ladder->fresh, counter->starts.head);
    counts_clear(&ladder->fresh);
    return status;
}
