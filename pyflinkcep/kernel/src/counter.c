/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a SEQ query over the events of a partition, as numbers of runs. Mirror:
 * nfa/merged.py, runs.py and track.py with the counts of compact/counting.py. The runs of one state
 * that agree in what conditions still read are one, whatever events they began with: it has a
 * number for each.
 */
#include "counter.h"

/* --- runs that an event makes */

/* Return the run that those with a tally become when they take an event for a component. */
static Run *fresh_run(Counter *counter, const Tally *before, int32_t component, int64_t handle) {
    bool loops = counter->automaton.components[component].loops;
    Run like = {.component = component, .mode = loops ? LOOPING : WAITING};
    const Live *live = run_live(counter, &like);
    like.hash = run_hash(component, like.mode, false);
    for (Py_ssize_t i = 0; i < live->size; i++) {
        counter->known[i] =
            tally_slot_after(&counter->automaton.values, before, component, handle, live->slots[i]);
        like.hash = value_hash(like.hash, counter->known[i]);
    }
    Run *run = table_find(&counter->fresh, &like, live, counter->known);
    for (Py_ssize_t i = 0; i < live->size; i++) value_drop(counter->known[i]);
    if (run != NULL) return run;
    run = allocate(sizeof(Run));
    if (run == NULL) return NULL;
    *run = like;
    if (counter->automaton.values.slot_count > 0) {
        run->tally = tally_after(&counter->automaton.values, before, component, handle);
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

static uint64_t weight_of(const Counter *counter, int32_t component, Py_ssize_t at) {
    return component == counter->weighed
               ? counter->weights[automaton_handle(&counter->automaton, at)]
               : 0;
}

/* Let runs complete with an event of the last component. */
static int complete(Counter *counter, const Run *runs, int32_t component, Py_ssize_t at) {
    int64_t until = counter_first_forbidden(counter, at);
    if (counter->weighed < 0) return counts_sum(&runs->counts, counter->head, until, &counter->now);
    Total ended = {0};
    int status = counts_sum(&runs->counts, counter->head, until, &ended);
    if (status == 0) status = total_add(&counter->now, &ended);
    if (status == 0)
        status = total_add_times(&counter->now_sum, &ended, weight_of(counter, component, at));
    if (status == 0) status = counts_sum(&runs->sums, counter->head, until, &counter->now_sum);
    total_free(&ended);
    return status;
}

/* Let runs take an event for a component. */
int counter_take(Counter *counter, const Run *runs, int32_t component, Py_ssize_t at) {
    const Component *own = &counter->automaton.components[component];
    if (component + 1 == counter->automaton.component_count && !own->loops)
        return complete(counter, runs, component, at);
    Rising *rising = &counter->rising[component];
    if (rising->rises) return counts_add(&rising->ladder.fresh, &runs->counts, counter->head);
    Run *run =
        fresh_run(counter, runs->tally, component, automaton_handle(&counter->automaton, at));
    if (run == NULL || counts_add(&run->counts, &runs->counts, counter->head) < 0) return -1;
    if (counter->weighed < 0) return 0;
    if (counts_add(&run->sums, &runs->sums, counter->head) < 0) return -1;
    return counts_add_times(
        &run->sums, &runs->counts, counter->head, weight_of(counter, component, at));
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
    list_remove(&counter->alive[run->component], run);
}

/* Show an event to a run; return -1 with an exception. */
static int advance(Counter *counter, Run *run, Py_ssize_t at) {
    if (counts_end(&run->counts) <= counter->head) {
        drop(counter, run);
        run_free(run);
        return 0;
    }
    const Automaton *automaton = &counter->automaton;
    Edges edges = automaton_edges(
        automaton, run->component, run->mode, run->tally, automaton_handle(automaton, at));
    if (edges.begins && !run->is_closed && counter_take(counter, run, run->component + 1, at) < 0)
        return -1;
    if (edges.takes && counter_take(counter, run, run->component, at) < 0) return -1;
    bool closes = has_bit(counter->automaton.closes, run->component);
    if (!closes && edges.mode == run->mode) return 0;
    drop(counter, run);
    run->mode = closes ? edges.mode & LOOPING : edges.mode;
    run->is_closed |= closes;
    if (run->mode != 0 && list_put(&counter->moved, run) == 0) return 0;
    bool failed = run->mode != 0;
    run_free(run);
    return failed ? -1 : 0;
}

/* Add a run to those alive, or to the one that it is equal to; it is given away. */
static int put(Counter *counter, Run *run) {
    const Live *live = run_live(counter, run);
    run->hash = run_hash(run->component, run->mode, run->is_closed);
    for (Py_ssize_t i = 0; i < live->size; i++) {
        counter->known[i] = run->tally->slots[live->slots[i]];
        run->hash = value_hash(run->hash, counter->known[i]);
    }
    Run *other = table_find(&counter->table, run, live, counter->known);
    int status;
    if (other != NULL) {
        status = counts_add(&other->counts, &run->counts, counter->head);
        if (status == 0) status = counts_add(&other->sums, &run->sums, counter->head);
    } else {
        status = list_put(&counter->alive[run->component], run);
        if (status == 0) {
            status = table_put(&counter->table, run);
            if (status == 0) return 0;
            list_remove(&counter->alive[run->component], run);
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
        bool completes = run->component == last && automaton_holds(automaton, leave, run->tally, 0);
        int64_t until = completes ? counter_first_forbidden(counter, at) : 0;
        if (completes && (counts_sum(&run->counts, counter->head, until, &counter->now) < 0 ||
                             counts_sum(&run->sums, counter->head, until, &counter->now_sum) < 0)) {
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
    static const int64_t often = 1024;
    if (counter->head - counter->swept < often) return;
    counter->swept = counter->head;
    for (Py_ssize_t c = 0; c < counter->automaton.component_count; c++) {
        RunList *runs = &counter->alive[c];
        for (Py_ssize_t i = runs->size - 1; i >= 0; i--) {
            Run *run = runs->items[i];
            if (counts_end(&run->counts) > counter->head) continue;
            drop(counter, run);
            run_free(run);
        }
    }
}

static void pass_time(Counter *counter, int64_t time) {
    int64_t window = counter->automaton.window, oldest;
    if (window < 0 || subtract_overflows(time, window, &oldest)) return;
    while (
        counter->head < counter->next_start && counter_start_time(counter, counter->head) < oldest)
        counter->head++;
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
    total_clear(&counter->now);
    total_clear(&counter->now_sum);
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
    counter->base = counter->head = counter->next_start = counter->swept = 0;
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
    release_memory(counter->start_times);
    release_memory(counter->barred);
    release_memory(counter->barred_after);
    counter->start_times = counter->barred = counter->barred_after = NULL;
    counter->start_room = counter->barred_room = 0;
    total_free(&counter->now);
    total_free(&counter->now_sum);
}
