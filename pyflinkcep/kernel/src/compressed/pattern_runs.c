/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The partial matches of a pattern without a skip strategy, as counts of those that continue in the
 * same way. Mirror: engines/compressed/patterns.py. Partial matches of one state that agree in what
 * conditions still read are one run, whatever events they began with: it has a count for each.
 */
#include "base/signals.h"
#include "compressed/pattern_runs.h"

static int64_t until(const PatternRuns *runs) {
    return runs->kernel->pattern.window_time > 0 ? runs->starts.next : 1;
}

static void drop(PatternRuns *runs, Run *run) {
    table_remove(&runs->table, run);
    list_remove(&runs->alive[run->state], run);
    run_free(run);
}

/* --- runs that an event makes */

/* Let a copy of another run take the current event, if the move takes it. */
static int take(const PatternRuns *runs, Run *run, const Run *other, const Move *move) {
    const Kernel *kernel = runs->kernel;
    const Values *values = &kernel->values;
    if (move->takes && kernel->pattern.has_gaps) run->previous = kernel->asked.timestamp;
    if (values->slot_count == 0) return 0;
    run->tally = move->takes ? tally_after(values, other->tally, move->stage, kernel->asked.handle)
                             : tally_copy(other->tally);
    if (run->tally == NULL) return -1;
    run->is_marked = tally_overflowed(run->tally);
    return 0;
}

/* Return the run that another becomes by a move. */
static Run *fresh_run(PatternRuns *runs, const Run *other, const Move *move) {
    Run like = {.state = move->target, .begun = other->begun, .previous = other->previous};
    const Live *live = &runs->live[like.state];
    if (take(runs, &like, other, move) < 0) return NULL;
    run_recognize(&like, live, runs->known);
    Run *run = table_find(&runs->fresh, &like, live, runs->known);
    if (run != NULL) {
        tally_free(like.tally);
        if (like.begun < run->begun) run->begun = like.begun;
        return run;
    }
    run = allocate_small(sizeof(Run));
    if (run == NULL) {
        tally_free(like.tally);
        return NULL;
    }
    *run = like;
    if (list_put(&runs->made, run) < 0) {
        run_free(run);
        return NULL;
    }
    return table_put(&runs->fresh, run) < 0 ? NULL : run;
}

/* Apply the moves of a step that change a run. */
static int go_on(PatternRuns *runs, const Run *run, const Decision *step) {
    const Weighing *weighing = &runs->weighing;
    int64_t head = runs->starts.head;
    for (Py_ssize_t i = 0; i < step->size; i++) {
        const Move *move = &step->moves[i];
        if (move->stays) continue;
        uint64_t weight =
            move->takes ? weight_of(weighing, move->stage, runs->kernel->asked.handle) : 0;
        if (move->completes && run_end(weighing, run, head, until(runs), weight, &runs->now) < 0)
            return -1;
        if (!move->continues) continue;
        Run *next = fresh_run(runs, run, move);
        if (next == NULL || run_add(weighing, next, run, head, weight) < 0) return -1;
    }
    return 0;
}

static bool stays(const Decision *step) {
    for (Py_ssize_t i = 0; i < step->size; i++)
        if (step->moves[i].stays) return true;
    return false;
}

/* Process the current event for a run, given what is decided for all in its state. */
static int show(PatternRuns *runs, Run *run, Decision *decision) {
    if (counts_end(&run->counts) <= runs->starts.head) {
        drop(runs, run);
        return 0;
    }
    const Decision *step = evaluation_with(runs->kernel, run->tally, decision);
    if (step == NULL) return -1;
    if (step->keeps) return 0;
    if (go_on(runs, run, step) < 0) return -1;
    if (!stays(step)) drop(runs, run);
    return 0;
}

/* Number the current event as a start; equal times share a number. */
static int number_start(PatternRuns *runs, int64_t time, int64_t *start) {
    Starts *starts = &runs->starts;
    *start = 0;
    if (runs->kernel->pattern.window_time <= 0) return 0;
    *start = starts->next - 1;
    if (starts->next > starts->head && starts_at(starts, *start)->time == time) return 0;
    *start = starts->next;
    return starts_add(starts, time, 0);
}

/* Begin runs with the current event. */
static int begin(PatternRuns *runs) {
    Kernel *kernel = runs->kernel;
    Decision *decision = evaluation_of_runs(kernel, kernel->pattern.start);
    const Decision *step = decision == NULL ? NULL : evaluation_with(kernel, NULL, decision);
    if (step == NULL) return -1;
    if (step->keeps) return 0;
    Run run = {.begun = kernel->asked.timestamp};
    int64_t start;
    if (number_start(runs, run.begun, &start) < 0) return -1;
    int status = counts_one(&run.counts, start);
    if (status == 0) status = go_on(runs, &run, step);
    counts_free(&run.counts);
    return status;
}

/* Add a run to the live ones, or merge it into its equal; takes over the run. */
static int put(PatternRuns *runs, Run *run) {
    const Live *live = &runs->live[run->state];
    RunList *alive = &runs->alive[run->state];
    run_recognize(run, live, runs->known);
    Run *other = table_find(&runs->table, run, live, runs->known);
    int status;
    if (other != NULL) {
        if (run->begun < other->begun) other->begun = run->begun;
        status = run_add(&runs->weighing, other, run, runs->starts.head, 0);
    } else {
        status = list_put(alive, run);
        if (status == 0) {
            status = table_put(&runs->table, run);
            if (status == 0) return 0;
            list_remove(alive, run);
        }
    }
    run_free(run);
    return status;
}

int pattern_runs_show(PatternRuns *runs) {
    const Pattern *pattern = &runs->kernel->pattern;
    for (int32_t state = 0; state < pattern->state_count; state++) {
        RunList *own = &runs->alive[state];
        if (own->size == 0) continue;
        Decision *decision = evaluation_of_runs(runs->kernel, state);
        if (decision == NULL) return -1;
        if (decision->is_step && decision->keeps) continue;
        for (Py_ssize_t i = own->size - 1; i >= 0; i--)
            if (check_signals() < 0 || show(runs, own->items[i], decision) < 0) return -1;
    }
    if (begin(runs) < 0) return -1;
    for (Py_ssize_t i = 0; i < runs->made.size; i++)
        table_remove(&runs->fresh, runs->made.items[i]);
    while (runs->made.size > 0)
        if (put(runs, runs->made.items[--runs->made.size]) < 0 || check_signals() < 0) return -1;
    return 0;
}

/* --- time */

/* Release the runs that are out of the window, from time to time. */
static void sweep(PatternRuns *runs) {
    if (!starts_need_sweep(&runs->starts, 0)) return;
    for (Py_ssize_t s = 0; s < runs->kernel->pattern.state_count; s++)
        for (Py_ssize_t i = runs->alive[s].size - 1; i >= 0; i--) {
            Run *run = runs->alive[s].items[i];
            if (counts_end(&run->counts) <= runs->starts.head) drop(runs, run);
        }
}

/* End the runs that began too long ago; those that waited for that are matches. */
static int end_windows(PatternRuns *runs, int64_t time) {
    const Pattern *pattern = &runs->kernel->pattern;
    Starts *starts = &runs->starts;
    int64_t latest, head = starts->head;
    if (pattern->window_time <= 0 || subtract_overflows(time, pattern->window_time, &latest))
        return 0;
    while (head < starts->next && starts_at(starts, head)->time <= latest) head++;
    for (Py_ssize_t s = 0; s < pattern->state_count && head > starts->head; s++)
        for (Py_ssize_t i = 0; pattern->states[s].is_pending && i < runs->alive[s].size; i++) {
            const Run *run = runs->alive[s].items[i];
            if (run_end(&runs->weighing, run, starts->head, head, 0, &runs->now) < 0) return -1;
        }
    starts->head = head;
    sweep(runs);
    return 0;
}

/* The same for those whose last event is too long ago. */
static int end_gaps(PatternRuns *runs, int64_t time) {
    const Pattern *pattern = &runs->kernel->pattern;
    for (Py_ssize_t s = 0; s < pattern->state_count; s++) {
        const State *state = &pattern->states[s];
        int64_t latest;
        if (state->gap_ms <= 0 || subtract_overflows(time, state->gap_ms, &latest)) continue;
        for (Py_ssize_t i = runs->alive[s].size - 1; i >= 0; i--) {
            Run *run = runs->alive[s].items[i];
            if (run->previous > latest) continue;
            if (state->is_pending &&
                run_end(&runs->weighing, run, runs->starts.head, until(runs), 0, &runs->now) < 0)
                return -1;
            drop(runs, run);
        }
    }
    return 0;
}

int pattern_runs_advance(PatternRuns *runs, int64_t time) {
    if (end_windows(runs, time) < 0) return -1;
    return runs->kernel->pattern.has_gaps ? end_gaps(runs, time) : 0;
}

/* Find when the first live run began; return false if there is none. */
static bool begun(const PatternRuns *runs, const Run *run, int64_t *time) {
    *time = run->begun;
    if (runs->kernel->pattern.window_time <= 0) return true;
    int64_t first = counts_first(&run->counts, runs->starts.head);
    if (first >= counts_end(&run->counts)) return false;
    *time = starts_at(&runs->starts, first)->time;
    return true;
}

bool pattern_runs_begun(const PatternRuns *runs, int64_t *time) {
    bool found = false;
    for (Py_ssize_t s = 0; s < runs->kernel->pattern.state_count; s++)
        for (Py_ssize_t i = 0; i < runs->alive[s].size; i++) {
            int64_t own;
            if (!begun(runs, runs->alive[s].items[i], &own)) continue;
            if (!found || own < *time) *time = own;
            found = true;
        }
    return found;
}

static bool earlier(int64_t time, int64_t length, int64_t *deadline, bool found) {
    int64_t end;
    if (length <= 0 || add_overflows(time, length, &end)) return found;
    if (!found || end < *deadline) *deadline = end;
    return true;
}

bool pattern_runs_deadline(const PatternRuns *runs, int64_t *deadline) {
    const Pattern *pattern = &runs->kernel->pattern;
    bool found = false;
    for (Py_ssize_t s = 0; s < pattern->state_count; s++)
        for (Py_ssize_t i = 0; i < runs->alive[s].size; i++) {
            const Run *run = runs->alive[s].items[i];
            int64_t own;
            if (!begun(runs, run, &own)) continue;
            found = earlier(own, pattern->window_time, deadline, found);
            found = earlier(run->previous, pattern->states[s].gap_ms, deadline, found);
        }
    return found;
}

/* --- a key */

void pattern_runs_clear(PatternRuns *runs) {
    for (Py_ssize_t s = 0; s < runs->kernel->pattern.state_count; s++)
        while (runs->alive[s].size > 0) drop(runs, runs->alive[s].items[0]);
    Starts *starts = &runs->starts;
    starts->base = starts->head = starts->next = starts->swept = 0;
}

static int read_live(PatternRuns *runs, PyObject *given) {
    Py_ssize_t states = runs->kernel->pattern.state_count;
    if (PyTuple_Size(given) != states) {
        PyErr_SetString(PyExc_ValueError, "expected slots for each state");
        return -1;
    }
    for (Py_ssize_t s = 0; s < states; s++) {
        Live *live = &runs->live[s];
        if (live_read(live, PyTuple_GetItem(given, s)) < 0) return -1;
        for (Py_ssize_t i = 0; i < live->size; i++) {
            if (live->slots[i] >= 0 && live->slots[i] < runs->kernel->values.slot_count) continue;
            PyErr_SetString(PyExc_ValueError, "expected known slots");
            return -1;
        }
    }
    return 0;
}

int pattern_runs_open(PatternRuns *runs, Kernel *kernel, PyObject *live) {
    Py_ssize_t states = kernel->pattern.state_count;
    *runs = (PatternRuns){.kernel = kernel};
    runs->alive = allocate_zeros(states, sizeof(RunList));
    runs->live = allocate_zeros(states, sizeof(Live));
    runs->known = allocate_zeros(kernel->values.slot_count, sizeof(Value));
    if (runs->alive == NULL || runs->live == NULL || runs->known == NULL) return -1;
    for (Py_ssize_t i = 0; i < kernel->pattern.atom_count; i++)
        if (kernel->pattern.atoms[i].kind == ATOM_OF_MATCH) {
            PyErr_SetString(PyExc_ValueError, "expected no function of the partial match");
            return -1;
        }
    return read_live(runs, live);
}

void pattern_runs_close(PatternRuns *runs) {
    Py_ssize_t states = runs->kernel->pattern.state_count;
    for (Py_ssize_t s = 0; s < states && runs->alive != NULL; s++) list_free(&runs->alive[s]);
    for (Py_ssize_t s = 0; s < states && runs->live != NULL; s++)
        release_memory(runs->live[s].slots);
    list_free(&runs->made);
    table_free(&runs->table);
    table_free(&runs->fresh);
    starts_free(&runs->starts);
    ended_free(&runs->now);
    release_memory(runs->alive);
    release_memory(runs->live);
    release_memory(runs->known);
}
