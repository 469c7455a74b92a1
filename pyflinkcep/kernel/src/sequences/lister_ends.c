/* SPDX-License-Identifier: Apache-2.0 */
/* Negated events before and after matches. Mirror: before_first and after_last in engines/sequences/runs.py. */
#include "sequences/lister.h"

static bool is_plain(const Negative *negative, int32_t gap) {
    return negative->gap == gap && !negative->judges;
}

static bool is_negated(const Automaton *automaton, Py_ssize_t at, int32_t gap) {
    int64_t absents = bits_of(&automaton->stream, automaton->stream.absents, at);
    for (Py_ssize_t n = 0; absents >> n != 0; n++) {
        if (!has_bit(absents, n)) continue;
        const Absent *absent = &automaton->absent[n];
        if (is_plain(&automaton->negatives[absent->negative], gap) &&
            automaton_holds(automaton, &absent->alone, NULL, automaton_handle(automaton, at)))
            return true;
    }
    return false;
}

static bool has_negative(const Automaton *automaton, int32_t gap) {
    for (Py_ssize_t n = 0; n < automaton->negative_count; n++)
        if (is_plain(&automaton->negatives[n], gap)) return true;
    return false;
}

/* Find for each event the next negated one of a gap; the number of events if there is none. */
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

int lister_find_barred(Lister *lister) {
    const Automaton *automaton = &lister->sequence.automaton;
    if (find_next(automaton, 0, &lister->barred_before) < 0) return -1;
    return find_next(automaton, (int32_t)automaton->component_count, &lister->barred_after);
}

/* Return the first position from `head` on whose time is not before a given time. */
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

/* Return the first start whose window contains an event that follows a match. */
static int64_t reached_by(const Lister *lister, int64_t at, int64_t until) {
    const Automaton *automaton = &lister->sequence.automaton;
    int64_t time = automaton->stream.times[at], latest;
    if (subtract_overflows(time, automaton->window, &latest)) latest = INT64_MIN;
    return position_of(lister, latest, until);
}

/* Like lister_first_forbidden, for the candidates of one component that reads the match. */
static int64_t first_struck(
    const Lister *lister, int32_t negative, int64_t at, int64_t until, const Tally *tally) {
    const Automaton *automaton = &lister->sequence.automaton;
    const Negative *own = &automaton->negatives[negative];
    const Program *joint = &automaton->absent[own->first].joint;
    const Candidates *candidates = &lister->sequence.candidates[own->first];
    bool is_first = own->gap == 0;
    int64_t from = is_first ? lister->head : at + 1;
    int64_t i = sequence_candidates_to(&lister->sequence, own->first, from);
    for (; i < candidates->size; i++) {
        int64_t place = candidates->items[i];
        if (place >= lister->end) break;
        int64_t start = is_first ? place + 1 : reached_by(lister, place, until);
        if (start >= until) break;
        int64_t handle = automaton_handle(automaton, (Py_ssize_t)place);
        if (automaton_holds(automaton, joint, tally, handle)) return start;
    }
    return until;
}

int64_t lister_first_forbidden(const Lister *lister, int64_t at, const Tally *tally) {
    const Automaton *automaton = &lister->sequence.automaton;
    int64_t until = at + 1;
    if (!automaton->minds_position) return until;
    if (lister->barred_before != NULL && lister->barred_before[lister->head] < at)
        until = lister->barred_before[lister->head] + 1;
    if (lister->barred_after != NULL && lister->barred_after[at + 1] < lister->end)
        until = reached_by(lister, lister->barred_after[at + 1], until);
    for (int32_t n = 0; n < automaton->negative_count; n++) {
        const Negative *negative = &automaton->negatives[n];
        bool is_at_end = negative->gap == 0 || negative->gap == automaton->component_count;
        if (negative->judges && is_at_end) until = first_struck(lister, n, at, until, tally);
    }
    return until;
}
