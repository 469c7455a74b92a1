/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Negated components between others that read what a run has taken, or will take, and negated
 * sequences. Mirror: `gaps` and `pending` in engines/sequences/runs.py.
 */
#include "sequences/sequence.h"

/* --- candidates */

static int add_candidate(Candidates *candidates, int64_t at) {
    int64_t *items =
        reserve(candidates->items, &candidates->room, candidates->size + 1, sizeof(int64_t));
    if (items == NULL) return -1;
    candidates->items = items;
    items[candidates->size++] = at;
    return 0;
}

int sequence_find_candidates(Sequence *sequence) {
    const Automaton *automaton = &sequence->automaton;
    if (!sequence->is_judging) return 0;
    for (Py_ssize_t at = 0; at < automaton->stream.size; at++) {
        int64_t absents = bits_of(&automaton->stream, automaton->stream.absents, at);
        for (Py_ssize_t n = 0; absents >> n != 0; n++) {
            if (!has_bit(absents, n)) continue;
            const Absent *absent = &automaton->absent[n];
            if (automaton->negatives[absent->negative].judges &&
                automaton_holds(automaton, &absent->alone, NULL, automaton_handle(automaton, at)) &&
                add_candidate(&sequence->candidates[n], at) < 0)
                return -1;
        }
    }
    return 0;
}

void sequence_forget_candidates(Sequence *sequence) {
    Py_ssize_t count = sequence->automaton.absent_count;
    for (Py_ssize_t n = 0; sequence->candidates != NULL && n < count; n++) {
        release_memory(sequence->candidates[n].items);
        sequence->candidates[n] = (Candidates){0};
    }
}

int64_t sequence_candidates_to(const Sequence *sequence, int32_t absent, int64_t at) {
    const Candidates *candidates = &sequence->candidates[absent];
    Py_ssize_t low = 0, high = candidates->size;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (candidates->items[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t next_candidate(const void *owner, int32_t absent, int64_t at) {
    const Sequence *sequence = owner;
    const Candidates *candidates = &sequence->candidates[absent];
    int64_t number = sequence_candidates_to(sequence, absent, at);
    return number < candidates->size ? candidates->items[number] : INT64_MAX;
}

/* Whether a span has candidates: of a sequence, one for its first event and then one for its last. */
static bool has_candidates(const Sequence *sequence, const Negative *negative, Span span) {
    const Candidates *first = &sequence->candidates[negative->first];
    const Candidates *last = &first[negative->count - 1];
    if (negative->count == 1) return span.low < span.high;
    return span.low < first->size && span.high > 0 &&
           first->items[span.low] < last->items[span.high - 1];
}

/* Whether some candidates forbid runs to continue. */
static bool is_struck(const Sequence *sequence, Span span, const Tally *tally) {
    const Automaton *automaton = &sequence->automaton;
    const Negative *negative = &automaton->negatives[span.negative];
    const Candidates *candidates = &sequence->candidates[negative->first];
    const Program *joint = &automaton->absent[negative->first].joint;
    if (negative->count > 1) {
        int64_t high = candidates[negative->count - 1].items[span.high - 1] + 1;
        return automaton_follow(
            automaton, negative, next_candidate, sequence, candidates->items[span.low], high,
            tally);
    }
    for (int64_t i = span.low; i < span.high; i++) {
        int64_t handle = automaton_handle(automaton, (Py_ssize_t)candidates->items[i]);
        if (automaton_holds(automaton, joint, tally, handle)) return true;
    }
    return false;
}

bool sequence_is_forbidden(const Sequence *sequence, const Run *run) {
    for (Py_ssize_t i = 0; run->spans != NULL && i < run->spans->size; i++)
        if (is_struck(sequence, run->spans->items[i], run->tally)) return true;
    return false;
}

/* --- runs */

/* Reset for the gap after a component. */
static void open_gap(Sequence *sequence, int32_t component, int64_t at) {
    Spans *passed = sequence->passed;
    const Automaton *automaton = &sequence->automaton;
    if (component + 1 == automaton->component_count) return;
    for (int32_t n = 0; n < automaton->negative_count; n++) {
        const Negative *negative = &automaton->negatives[n];
        if (!negative->judges || negative->gap != component + 1) continue;
        int64_t low = sequence_candidates_to(sequence, negative->first, at + 1);
        passed->items[passed->size++] = (Span){n, low, OPEN};
    }
}

/* Decide what the next component makes decidable; return whether runs may begin it. */
static bool decide(
    Sequence *sequence, const Spans *spans, int32_t component, int64_t at, const Tally *tally) {
    Spans *passed = sequence->passed;
    for (Py_ssize_t i = 0; i < spans->size; i++) {
        Span span = spans->items[i];
        const Negative *negative = &sequence->automaton.negatives[span.negative];
        int32_t last = negative->first + negative->count - 1;
        if (span.high == OPEN) span.high = sequence_candidates_to(sequence, last, at);
        if (!has_candidates(sequence, negative, span)) continue;
        if (negative->needs > component)
            passed->items[passed->size++] = span;
        else if (is_struck(sequence, span, tally))
            return false;
    }
    return true;
}

int sequence_pass(Sequence *sequence, const Run *runs, int32_t component, Py_ssize_t at) {
    const Values *values = &sequence->automaton.values;
    Spans *passed = sequence->passed;
    const Spans *spans = runs->spans;
    passed->size = 0;
    if (spans != NULL && component > runs->state) {
        int64_t handle = automaton_handle(&sequence->automaton, at);
        Tally *tally = tally_after(values, runs->tally, component, handle);
        if (tally == NULL) return -1;
        bool may = decide(sequence, spans, component, at, tally);
        tally_free(tally);
        if (!may) return 0;
    } else {
        for (Py_ssize_t i = 0; spans != NULL && i < spans->size; i++)
            if (spans->items[i].high != OPEN) passed->items[passed->size++] = spans->items[i];
    }
    open_gap(sequence, component, at);
    return 1;
}
