/* SPDX-License-Identifier: Apache-2.0 */
/* The events that matches begin with, by number, and which of them may end one. Mirror: nfa/runs.py. */
#include "counter.h"

static bool counts_starts(const Counter *counter) {
    return counter->automaton.window >= 0 || counter->automaton.minds_position;
}

int64_t counter_start_time(const Counter *counter, int64_t start) {
    return counter->start_times[start - counter->base];
}

/* Forget the times of starts whose window is over. */
static void forget_starts(Counter *counter) {
    Py_ssize_t gone = (Py_ssize_t)(counter->head - counter->base);
    Py_ssize_t kept = (Py_ssize_t)(counter->next_start - counter->head);
    if (gone <= kept + 64) return;
    for (Py_ssize_t i = 0; i < kept; i++) {
        counter->start_times[i] = counter->start_times[gone + i];
        counter->barred[i] = counter->barred[gone + i];
    }
    counter->base = counter->head;
}

/* Number the start that an event is; equal times have one number where only time matters. */
int counter_number_start(Counter *counter, int64_t time, int64_t *start) {
    *start = 0;
    if (!counts_starts(counter)) return 0;
    int64_t last = counter->next_start - 1;
    *start = last;
    if (!counter->automaton.minds_position && last >= counter->head &&
        counter_start_time(counter, last) == time)
        return 0;
    forget_starts(counter);
    Py_ssize_t size = (Py_ssize_t)(counter->next_start - counter->base);
    int64_t *times = reserve(counter->start_times, &counter->start_room, size + 1, sizeof(int64_t));
    if (times == NULL) return -1;
    counter->start_times = times;
    int64_t *barred = reserve(counter->barred, &counter->barred_room, size + 1, sizeof(int64_t));
    if (barred == NULL) return -1;
    counter->barred = barred;
    times[size] = time;
    barred[size] = counter->barred_time;
    *start = counter->next_start++;
    return 0;
}

/* Return the start from which on a negated event at an end forbids a match that ends here. */
int64_t counter_first_forbidden(const Counter *counter, Py_ssize_t at) {
    int64_t until = counts_starts(counter) ? counter->next_start : 1, least, latest;
    if (!counter->automaton.minds_position) return until;
    if (subtract_overflows(counter->automaton.stream.times[at], counter->automaton.window, &least))
        least = INT64_MIN;
    while (until > counter->head && counter->barred[until - 1 - counter->base] >= least &&
           counter->barred[until - 1 - counter->base] != INT64_MIN)
        until--;
    if (!counter->automaton.waits_for_end || counter->barred_after[at] == INT64_MAX) return until;
    if (subtract_overflows(counter->barred_after[at], counter->automaton.window, &latest))
        latest = INT64_MIN;
    while (until > counter->head && counter_start_time(counter, until - 1) >= latest) until--;
    return until;
}
