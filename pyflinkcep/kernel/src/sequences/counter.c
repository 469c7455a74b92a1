/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a SEQ query as counts, one for each event that they began with. Mirror:
 * MergedRuns in engines/sequences/runs.py with the counts of engines/compressed/counting.py.
 */
#include "sequences/counter.h"

/* --- what runs carry */

static bool is_over(const Sequence *sequence, const Run *run) {
    const Counter *counter = sequence->owner;
    return counts_end(&run->counts) <= counter->starts.head;
}

static int take(Sequence *sequence, const Run *runs, int32_t component, Py_ssize_t at) {
    Counter *counter = sequence->owner;
    Rising *rising = &counter->rising[component];
    if (rising->rises)
        return counts_add(&rising->ladder.fresh, &runs->counts, counter->starts.head);
    return sequence_take(sequence, runs, component, at);
}

static int add(Sequence *sequence, Run *run, const Run *before, Py_ssize_t at) {
    Counter *counter = sequence->owner;
    int64_t handle = automaton_handle(&sequence->automaton, at);
    uint64_t weight = weight_of(&counter->weighing, run->state, handle);
    return run_add(&counter->weighing, run, before, counter->starts.head, weight);
}

static int merge(Sequence *sequence, Run *run, const Run *equal) {
    Counter *counter = sequence->owner;
    return run_add(&counter->weighing, run, equal, counter->starts.head, 0);
}

static int complete(Sequence *sequence, const Run *runs, bool takes, Py_ssize_t at) {
    Counter *counter = sequence->owner;
    int32_t last = (int32_t)sequence->automaton.component_count - 1;
    int64_t handle = automaton_handle(&sequence->automaton, at);
    uint64_t weight = takes ? weight_of(&counter->weighing, last, handle) : 0;
    int64_t until = counter_first_forbidden(counter, at);
    return run_end(&counter->weighing, runs, counter->starts.head, until, weight, &counter->now);
}

const Payloads counter_payloads = {is_over, take, add, merge, complete};

/* --- an event */

/* Let a run begin with an event. */
static int begin(Counter *counter, Py_ssize_t at) {
    int64_t start;
    Run run = {0};
    if (counter_number_start(counter, counter->sequence.automaton.stream.times[at], &start) < 0)
        return -1;
    int status = counts_one(&run.counts, start);
    if (status == 0) status = take(&counter->sequence, &run, 0, at);
    counts_free(&run.counts);
    return status;
}

static void pass_time(Counter *counter, int64_t time) {
    Starts *starts = &counter->starts;
    int64_t window = counter->sequence.automaton.window, oldest;
    if (window < 0 || subtract_overflows(time, window, &oldest)) return;
    while (starts->head < starts->next && starts_at(starts, starts->head)->time < oldest)
        starts->head++;
    if (starts_need_sweep(starts, counter->sequence.table.size)) sequence_sweep(&counter->sequence);
}

/* Return a bit for each component that an event may begin. */
static int64_t awaited(const Counter *counter) {
    int64_t components = sequence_awaited(&counter->sequence);
    for (Py_ssize_t c = 1; c < counter->sequence.automaton.component_count; c++)
        if (counter->rising[c - 1].rises) components |= (int64_t)1 << c;
    return components;
}

int counter_event(Counter *counter, Py_ssize_t at) {
    Automaton *automaton = &counter->sequence.automaton;
    int64_t time = automaton->stream.times[at];
    ended_clear(&counter->now);
    if (!sequence_concerns(&counter->sequence, at)) return 0;
    pass_time(counter, time);
    bool bars = automaton_ask_alone(automaton, at, awaited(counter));
    for (Py_ssize_t c = 0; c < automaton->component_count; c++)
        if (counter->rising[c].rises && ladder_event(counter, c, at) < 0) return -1;
    if (sequence_advance(&counter->sequence, at) < 0) return -1;
    if (has_bit(automaton->begins, 0) && begin(counter, at) < 0) return -1;
    if (bars) counter->barred_at = at;
    int64_t until = counter_first_forbidden(counter, at);
    for (Py_ssize_t c = 0; c < automaton->component_count; c++)
        if (counter->rising[c].rises && ladder_settle(counter, c, at, until) < 0) return -1;
    return sequence_settle(&counter->sequence, at);
}

/* --- a partition */

/* Find for each event the next one that must not follow a match. */
static int find_barred_after(Counter *counter) {
    const Automaton *automaton = &counter->sequence.automaton;
    const Stream *stream = &automaton->stream;
    counter->barred_after = allocate_zeros(stream->size, sizeof(int64_t));
    if (counter->barred_after == NULL) return -1;
    int64_t next = stream->size;
    for (Py_ssize_t at = stream->size - 1; at >= 0; at--) {
        counter->barred_after[at] = next;
        int64_t absents = bits_of(stream, stream->absents, at);
        for (Py_ssize_t n = 0; absents >> n != 0; n++) {
            if (!has_bit(absents, n)) continue;
            const Absent *absent = &automaton->absent[n];
            if (automaton->negatives[absent->negative].gap == automaton->component_count &&
                automaton_holds(automaton, &absent->alone, NULL, automaton_handle(automaton, at)))
                next = at;
        }
    }
    return 0;
}

int counter_begin(Counter *counter) {
    counter->barred_at = -1;
    if (sequence_find_candidates(&counter->sequence) < 0) return -1;
    return counter->sequence.automaton.waits_for_end ? find_barred_after(counter) : 0;
}

void counter_end(Counter *counter) {
    Py_ssize_t count = counter->sequence.automaton.component_count;
    for (Py_ssize_t c = 0; c < count && counter->rising != NULL; c++)
        ladder_free(&counter->rising[c].ladder);
    sequence_clear(&counter->sequence);
    starts_free(&counter->starts);
    release_memory(counter->barred_after);
    counter->barred_after = NULL;
    ended_free(&counter->now);
}
