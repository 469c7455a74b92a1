/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a SEQ query over the events of a partition, as numbers of runs. Mirror:
 * nfa/merged.py, runs.py and track.py with the counts of compact/counting.py. The runs of one state
 * that agree in what conditions still read are one, whatever events they began with: it has a
 * number for each.
 */
#include "counter.h"

/* --- runs that an event makes */

static const Live *run_live(const Counter *counter, const Run *run) {
    return &counter->automaton.components[run->state].live[run->mode];
}

/* Return the run that those with a tally become when they take an event for a component. */
static Run *fresh_run(Counter *counter, const Tally *before, int32_t component, int64_t handle) {
    const Values *values = &counter->automaton.values;
    bool loops = counter->automaton.components[component].loops;
    Run like = {.state = component, .mode = loops ? LOOPING : WAITING};
    const Live *live = run_live(counter, &like);
    for (Py_ssize_t i = 0; i < live->size; i++)
        counter->known[i] = tally_slot_after(values, before, component, handle, live->slots[i]);
    run_identify(&like, counter->known, live->size);
    Run *run = table_find(&counter->fresh, &like, live, counter->known);
    for (Py_ssize_t i = 0; i < live->size; i++) value_drop(counter->known[i]);
    if (run != NULL) return run;
    run = allocate(sizeof(Run));
    if (run == NULL) return NULL;
    *run = like;
    if (values->slot_count > 0) {
        run->tally = tally_after(values, before, component, handle);
        if (run->tally == NULL) {
            run_free(run);
            return NULL;
        }
    }
    if (list_put(&counter->made, run) < 0) {
        run_free(run);
        return NULL;
    }
    return table_put(&counter->fresh, run) < 0 ? NULL : run;
}

/* Let runs take an event for a component. */
int counter_take(Counter *counter, const Run *runs, int32_t component, Py_ssize_t at) {
    const Component *own = &counter->automaton.components[component];
    const Weighing *weighing = &counter->weighing;
    int64_t handle = automaton_handle(&counter->automaton, at), head = counter->starts.head;
    uint64_t weight = weight_of(weighing, component, handle);
    if (component + 1 == counter->automaton.component_count && !own->loops) {
        int64_t until = counter_first_forbidden(counter, at);
        return run_end(weighing, runs, head, until, weight, &counter->now);
    }
    Rising *rising = &counter->rising[component];
    if (rising->rises) return counts_add(&rising->ladder.fresh, &runs->counts, head);
    Run *run = fresh_run(counter, runs->tally, component, handle);
    return run == NULL ? -1 : run_add(weighing, run, runs, head, weight);
}

/* Let a run begin with an event. */
static int begin(Counter *counter, Py_ssize_t at) {
    int64_t start;
    Run run = {0};
    if (counter_number_start(counter, counter->automaton.stream.times[at], &start) < 0) return -1;
    int status = counts_one(&run.counts, start);
    if (status == 0) status = counter_take(counter, &run, 0, at);
    counts_free(&run.counts);
    return status;
}

/* --- an event */

static void drop(Counter *counter, Run *run) {
    table_remove(&counter->table, run);
    list_remove(&counter->alive[run->state], run);
}

/* Show an event to a run; return -1 with an exception. */
static int advance(Counter *counter, Run *run, Py_ssize_t at) {
    if (counts_end(&run->counts) <= counter->starts.head) {
        drop(counter, run);
        run_free(run);
        return 0;
    }
    const Automaton *automaton = &counter->automaton;
    Edges edges = automaton_edges(
        automaton, run->state, run->mode, run->tally, automaton_handle(automaton, at));
    if (edges.begins && !run->is_marked && counter_take(counter, run, run->state + 1, at) < 0)
        return -1;
    if (edges.takes && counter_take(counter, run, run->state, at) < 0) return -1;
    bool closes = has_bit(counter->automaton.closes, run->state);
    if (!closes && edges.mode == run->mode) return 0;
    drop(counter, run);
    run->mode = closes ? edges.mode & LOOPING : edges.mode;
    run->is_marked |= closes;
    if (run->mode != 0 && list_put(&counter->moved, run) == 0) return 0;
    bool failed = run->mode != 0;
    run_free(run);
    return failed ? -1 : 0;
}

/* Add a run to those alive, or to the one that it is equal to; it is given away. */
static int put(Counter *counter, Run *run) {
    const Live *live = run_live(counter, run);
    run_recognize(run, live, counter->known);
    Run *other = table_find(&counter->table, run, live, counter->known);
    int status;
    if (other != NULL) {
        status = run_add(&counter->weighing, other, run, counter->starts.head, 0);
    } else {
        status = list_put(&counter->alive[run->state], run);
        if (status == 0) {
            status = table_put(&counter->table, run);
            if (status == 0) return 0;
            list_remove(&counter->alive[run->state], run);
        }
    }
    run_free(run);
    return status;
}

/* Let the runs that an event made complete, and go on. */
static int settle(Counter *counter, Py_ssize_t at) {
    const Automaton *automaton = &counter->automaton;
    Py_ssize_t last = automaton->component_count - 1;
    const Program *leave = &automaton->components[last].leave;
    for (Py_ssize_t i = 0; i < counter->made.size; i++)
        table_remove(&counter->fresh, counter->made.items[i]);
    while (counter->made.size > 0) {
        Run *run = counter->made.items[--counter->made.size];
        bool completes = run->state == last && automaton_holds(automaton, leave, run->tally, 0);
        int64_t until = completes ? counter_first_forbidden(counter, at) : 0;
        if (completes &&
            run_end(&counter->weighing, run, counter->starts.head, until, 0, &counter->now) < 0) {
            run_free(run);
            return -1;
        }
        if (put(counter, run) < 0) return -1;
    }
    while (counter->moved.size > 0)
        if (put(counter, counter->moved.items[--counter->moved.size]) < 0) return -1;
    return 0;
}

/* Let go of the runs that the window has left behind, from time to time. */
static void sweep(Counter *counter) {
    if (!starts_need_sweep(&counter->starts)) return;
    for (Py_ssize_t c = 0; c < counter->automaton.component_count; c++) {
        RunList *runs = &counter->alive[c];
        for (Py_ssize_t i = runs->size - 1; i >= 0; i--) {
            Run *run = runs->items[i];
            if (counts_end(&run->counts) > counter->starts.head) continue;
            drop(counter, run);
            run_free(run);
        }
    }
}

static void pass_time(Counter *counter, int64_t time) {
    Starts *starts = &counter->starts;
    int64_t window = counter->automaton.window, oldest;
    if (window < 0 || subtract_overflows(time, window, &oldest)) return;
    while (starts->head < starts->next && starts_at(starts, starts->head)->time < oldest)
        starts->head++;
    sweep(counter);
}

/* Return a bit for each component that an event may begin: the first, and those runs wait for. */
static int64_t awaited(const Counter *counter) {
    int64_t components = 1;
    for (Py_ssize_t c = 1; c < counter->automaton.component_count; c++)
        if (counter->alive[c - 1].size > 0 || counter->rising[c - 1].rises)
            components |= (int64_t)1 << c;
    return components;
}

/* Show an event to all runs; `now` is then the number of matches that end with it. */
int counter_event(Counter *counter, Py_ssize_t at) {
    int64_t time = counter->automaton.stream.times[at];
    ended_clear(&counter->now);
    pass_time(counter, time);
    bool bars = automaton_ask_alone(&counter->automaton, at, awaited(counter));
    for (Py_ssize_t c = 0; c < counter->automaton.component_count; c++) {
        RunList *runs = &counter->alive[c];
        if (counter->rising[c].rises && ladder_event(counter, c, at) < 0) return -1;
        if (runs->size == 0 || !automaton_concerns(&counter->automaton, c)) continue;
        for (Py_ssize_t i = runs->size - 1; i >= 0; i--)
            if (advance(counter, runs->items[i], at) < 0) return -1;
    }
    if (has_bit(counter->automaton.begins, 0) && begin(counter, at) < 0) return -1;
    if (bars) counter->barred_time = time;
    int64_t until = counter_first_forbidden(counter, at);
    for (Py_ssize_t c = 0; c < counter->automaton.component_count; c++)
        if (counter->rising[c].rises && ladder_settle(counter, c, at, until) < 0) return -1;
    return settle(counter, at);
}

/* --- a partition */

/* Find for each event the next one that may not come after a match. */
static int find_barred_after(Counter *counter) {
    const Automaton *automaton = &counter->automaton;
    const Stream *stream = &automaton->stream;
    counter->barred_after = allocate_zeros(stream->size, sizeof(int64_t));
    if (counter->barred_after == NULL) return -1;
    int64_t next = INT64_MAX;
    for (Py_ssize_t at = stream->size - 1; at >= 0; at--) {
        counter->barred_after[at] = next;
        int64_t absents = bits_of(stream, stream->absents, at);
        for (Py_ssize_t n = 0; absents >> n != 0; n++) {
            const Negative *negative = &automaton->negatives[n];
            if (has_bit(absents, n) && negative->gap == automaton->component_count &&
                automaton_holds(automaton, &negative->alone, NULL, automaton_handle(automaton, at)))
                next = stream->times[at];
        }
    }
    return 0;
}

/* Begin with the events of a partition. */
int counter_begin(Counter *counter) {
    counter->barred_time = INT64_MIN;
    return counter->automaton.waits_for_end ? find_barred_after(counter) : 0;
}

/* Forget all runs. */
void counter_end(Counter *counter) {
    Py_ssize_t count = counter->automaton.component_count;
    for (Py_ssize_t c = 0; c < count && counter->alive != NULL; c++) list_free(&counter->alive[c]);
    for (Py_ssize_t c = 0; c < count && counter->rising != NULL; c++)
        ladder_free(&counter->rising[c].ladder);
    list_free(&counter->made);
    list_free(&counter->moved);
    table_free(&counter->table);
    table_free(&counter->fresh);
    starts_free(&counter->starts);
    release_memory(counter->barred_after);
    counter->barred_after = NULL;
    ended_free(&counter->now);
}
