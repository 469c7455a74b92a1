/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a SEQ query with their ways, and their matches. Mirror:
 * MergedRuns in engines/sequences/runs.py with the nodes of engines/compressed/counting.py.
 */
#include "base/signals.h"
#include "sequences/lister.h"

/* --- what runs carry */

static bool is_over(const Sequence *sequence, const Run *run) {
    const Lister *lister = sequence->owner;
    return !ways_live(&lister->ways, run->way, lister->head);
}

static int add(Sequence *sequence, Run *run, const Run *before, Py_ssize_t at) {
    Lister *lister = sequence->owner;
    int64_t number;
    if (ways_add(&lister->ways, run->state, at, before->way, &number) < 0) return -1;
    return ways_meld(&lister->ways, number, run->way, lister->head, &run->way);
}

static int merge(Sequence *sequence, Run *run, const Run *equal) {
    Lister *lister = sequence->owner;
    return ways_meld(&lister->ways, equal->way, run->way, lister->head, &run->way);
}

static int complete(Sequence *sequence, const Run *runs, bool takes, Py_ssize_t at) {
    Lister *lister = sequence->owner;
    int64_t until = lister_first_forbidden(lister, at, runs->tally);
    if (until <= lister->head) return 0;
    Completed *ended =
        reserve(lister->ended, &lister->ended_room, lister->ended_size + 1, sizeof(Completed));
    if (ended == NULL) return -1;
    lister->ended = ended;
    ended[lister->ended_size++] = (Completed){runs->way, takes, until};
    return 0;
}

const Payloads lister_payloads = {is_over, sequence_take, add, merge, complete};

/* --- an event */

static void move_window(Lister *lister, int64_t at) {
    const int64_t *times = lister->sequence.automaton.stream.times;
    int64_t window = lister->sequence.automaton.window, oldest;
    if (window >= 0 && !subtract_overflows(times[at], window, &oldest))
        while (times[lister->head] < oldest) lister->head++;
}

/* Release what is out of the window. */
static void pass_time(Lister *lister, int64_t at) {
    int64_t runs = lister->sequence.table.size, often = runs > 1024 ? runs : 1024;
    move_window(lister, at);
    if (lister->head - lister->swept >= often) {
        lister->swept = lister->head;
        sequence_sweep(&lister->sequence);
    }
    if (lister->sequence.table.size == 0)
        ways_clear(&lister->ways);
    else
        ways_forget(&lister->ways, lister->head, at);
}

/* Raise if there are too many runs in the window of an event. */
static int enforce_limit(Lister *lister, int64_t at) {
    Sequence *sequence = &lister->sequence;
    if (lister->most == 0 || sequence->table.size <= lister->most) return 0;
    sequence_sweep(sequence);
    if (sequence->table.size <= lister->most) return 0;
    long long time = sequence->automaton.stream.times[at];
    lock_take();
    Py_XDECREF(PyObject_CallFunction(lister->too_many, "nL", sequence->table.size, time));
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "expected an error");
    return -1;
}

/* Process an event, and find the runs that it completes. */
static int show(Lister *lister, int64_t at) {
    Sequence *sequence = &lister->sequence;
    lister->ended_size = 0;
    if (!sequence_concerns(sequence, (Py_ssize_t)at)) return 0;
    pass_time(lister, at);
    automaton_ask_alone(&sequence->automaton, (Py_ssize_t)at, sequence_awaited(sequence));
    if (sequence_advance(sequence, (Py_ssize_t)at) < 0) return -1;
    static const Run nothing = {.way = NO_WAY};
    bool begins = has_bit(sequence->automaton.begins, 0);
    if (begins && sequence_take(sequence, &nothing, 0, (Py_ssize_t)at) < 0) return -1;
    if (sequence_settle(sequence, (Py_ssize_t)at) < 0) return -1;
    if (enforce_limit(lister, at) < 0) return -1;
    const uint8_t *ends = lister->ends.items;
    if (ends != NULL && !ends[at]) lister->ended_size = 0;
    return 0;
}

/* --- partitions */

/*
 * Return the position at which the first live run began, after the last event; INT64_MAX if there
 * is none, -1 with an exception.
 */
static int64_t earliest_start(Lister *lister) {
    const Ways *ways = &lister->ways;
    if (lister->sequence.table.size == 0) return INT64_MAX;
    move_window(lister, lister->end - 1);
    uint8_t *reached = allocate_zeros(ways->size, sizeof(uint8_t));
    if (reached == NULL) return -1;
    for (Py_ssize_t c = 0; c < lister->sequence.automaton.component_count; c++)
        for (Py_ssize_t i = 0; i < lister->sequence.alive[c].size; i++) {
            int64_t way = lister->sequence.alive[c].items[i]->way;
            if (ways_live(ways, way, lister->head)) reached[way - ways->base] = 1;
        }
    int64_t earliest = ways_earliest(ways, reached, lister->head);
    release_memory(reached);
    return earliest;
}

/* Record where the first live run began. */
static int note_begun(Lister *lister) {
    int64_t earliest = earliest_start(lister);
    if (earliest < 0) return -1;
    if (earliest == INT64_MAX) return 0;
    int64_t *begun =
        reserve(lister->begun, &lister->begun_room, lister->begun_size + 1, sizeof(int64_t));
    if (begun == NULL) return -1;
    lister->begun = begun;
    const Automaton *automaton = &lister->sequence.automaton;
    begun[lister->begun_size++] = automaton_handle(automaton, (Py_ssize_t)earliest);
    return 0;
}

/* Open the next partition: return 1, 0 if there is none, -1 with an exception. */
static int next_partition(Lister *lister) {
    const int64_t *bounds = lister->bounds.items;
    if (lister->is_open && lister->wants_begun && note_begun(lister) < 0) return -1;
    lister->is_open = lister->partition + 1 < lister->bounds.size;
    if (!lister->is_open) return 0;
    lister->at = lister->head = lister->swept = bounds[lister->partition++];
    lister->end = bounds[lister->partition];
    sequence_restart(&lister->sequence);
    ways_clear(&lister->ways);
    return 1;
}

/* --- matches */

/* Begin with the ways of the last run that the current event completes. */
static int walk_ended(Lister *lister, Py_ssize_t *length) {
    Completed ended = lister->ended[--lister->ended_size];
    Py_ssize_t last = lister->sequence.automaton.component_count - 1;
    WayEvent event = {lister->at - 1, (int32_t)last};
    lister->walk.head = lister->head;
    lister->walk.until = ended.until;
    if (walk_begin(&lister->walk, &lister->ways, ended.way, ended.adds_event ? &event : NULL) < 0)
        return -1;
    *length = ended.way == NO_WAY && event.at < ended.until;
    return 0;
}

int lister_next(Lister *lister, Py_ssize_t *length) {
    for (;;) {
        int status = walk_next(&lister->walk, &lister->ways, length);
        if (status != 0) return status;
        if (lister->ended_size > 0) {
            if (walk_ended(lister, length) < 0) return -1;
            if (*length > 0) return 1;
        } else if (lister->at < lister->end) {
            if (check_signals() < 0) return -1;
            if (show(lister, lister->at++) < 0) return -1;
        } else {
            status = next_partition(lister);
            if (status <= 0) return status;
        }
    }
}

int lister_begin(Lister *lister) {
    if (sequence_find_candidates(&lister->sequence) < 0) return -1;
    return lister_find_barred(lister);
}

void lister_end(Lister *lister) {
    sequence_clear(&lister->sequence);
    ways_free(&lister->ways);
    walk_free(&lister->walk);
    release_memory(lister->ended);
    release_memory(lister->begun);
    release_memory(lister->barred_before);
    release_memory(lister->barred_after);
    lister->ended = NULL;
    lister->begun = NULL;
    lister->begun_size = lister->begun_room = lister->partition = 0;
    lister->at = lister->end = 0;
    lister->is_open = false;
    lister->barred_before = lister->barred_after = NULL;
    lister->ended_size = lister->ended_room = 0;
    array_close(&lister->ends);
    array_close(&lister->bounds);
    automaton_close(&lister->sequence.automaton);
}
