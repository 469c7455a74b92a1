/* SPDX-License-Identifier: Apache-2.0 */
/* Negated events before and after matches. Mirror: before_first and after_last in nfa/track.py. */
#include "lister.h"

static bool is_negated(const Automaton *automaton, Py_ssize_t at, int32_t gap) {
    int64_t absents = bits_of(&automaton->stream, automaton->stream.absents, at);
    for (Py_ssize_t n = 0; absents >> n != 0; n++) {
        const Negative *negative = &automaton->negatives[n];
        if (has_bit(absents, n) && negative->gap == gap &&
            automaton_holds(automaton, &negative->alone, NULL, automaton_handle(automaton, at)))
            return true;
    }
    return false;
}

static bool has_negative(const Automaton *automaton, int32_t gap) {
    for (Py_ssize_t n = 0; n < automaton->negative_count; n++)
        if (automaton->negatives[n].gap == gap) return true;
    return false;
}

/* Find for each event the next negated one of a gap; after the last one it is their number. */
static int find_next(const Automaton *automaton, int32_t gap, int64_t **next) {
    if (!has_negative(automaton, gap)) return 0;
    Py_ssize_t size = automaton->stream.size;
    *next = allocate_zeros(size + 1, sizeof(int64_t));
    if (*next == NULL) return -1;
    (*next)[size] = size;
    for (Py_ssize_t at = size - 1; at >= 0; at--)
        (*next)[at] = is_negated(automaton, at, gap) ? at : (*next)[at + 1];
    return 0;
}

/* Find the events that may not come before the first one of a match, or after the last one. */
int lister_find_barred(Lister *lister) {
    const Automaton *automaton = &lister->sequence.automaton;
    if (find_next(automaton, 0, &lister->barred_before) < 0) return -1;
    return find_next(automaton, (int32_t)automaton->component_count, &lister->barred_after);
}

/* Return the first position from `head` on whose time is not before another. */
static int64_t position_of(const Lister *lister, int64_t time, int64_t end) {
    int64_t low = lister->head;
    while (low < end) {
        int64_t middle = low + (end - low) / 2;
        if (lister->sequence.automaton.stream.times[middle] < time)
            low = middle + 1;
        else
            end = middle;
    }
    return low;
}

/* Return the start from which on a negated event forbids a match that ends with an event. */
int64_t lister_first_forbidden(const Lister *lister, int64_t at) {
    const Stream *stream = &lister->sequence.automaton.stream;
    int64_t until = at + 1, latest;
    if (lister->barred_before != NULL && lister->barred_before[lister->head] < at)
        until = lister->barred_before[lister->head] + 1;
    if (lister->barred_after == NULL || lister->barred_after[at + 1] == stream->size) return until;
    int64_t time = stream->times[lister->barred_after[at + 1]];
    if (subtract_overflows(time, lister->sequence.automaton.window, &latest)) latest = INT64_MIN;
    return position_of(lister, latest, until);
}
