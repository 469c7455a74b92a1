/* SPDX-License-Identifier: Apache-2.0 */
/* The starts of matches, numbered, and which of them may end at an event. Mirror: engines/sequences/runs.py. */
#include "sequences/counter.h"

static bool counts_starts(const Counter *counter) {
    return counter->sequence.automaton.window >= 0 || counter->sequence.automaton.minds_position;
}

int counter_number_start(Counter *counter, int64_t time, int64_t *start) {
    Starts *starts = &counter->starts;
    *start = 0;
    if (!counts_starts(counter)) return 0;
    *start = starts->next - 1;
    if (!counter->sequence.automaton.minds_position && starts->next > starts->head &&
        starts_at(starts, *start)->time == time)
        return 0;
    *start = starts->next;
    return starts_add(starts, time, counter->barred_at);
}

static bool is_barred(const Stream *stream, const Start *start, int64_t least) {
    return start->barred >= 0 && stream->times[start->barred] >= least;
}

int64_t counter_first_forbidden(const Counter *counter, Py_ssize_t at) {
    const Automaton *automaton = &counter->sequence.automaton;
    const Stream *stream = &automaton->stream;
    const Starts *starts = &counter->starts;
    int64_t until = counts_starts(counter) ? starts->next : 1, least, latest;
    if (!automaton->minds_position) return until;
    if (subtract_overflows(stream->times[at], automaton->window, &least)) least = INT64_MIN;
    while (until > starts->head && is_barred(stream, starts_at(starts, until - 1), least)) until--;
    if (!automaton->waits_for_end || counter->barred_after[at] == stream->size) return until;
    if (subtract_overflows(stream->times[counter->barred_after[at]], automaton->window, &latest))
        latest = INT64_MIN;
    while (until > starts->head && starts_at(starts, until - 1)->time >= latest) until--;
    return until;
}
