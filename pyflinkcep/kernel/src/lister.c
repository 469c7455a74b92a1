/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a SEQ query over the events of a partition, with the ways they came. Mirror:
 * nfa/merged.py, runs.py and track.py with the nodes of compact/nodes.py. The runs of one state
 * that agree in what conditions still read are one, whatever events they began with.
 */
#include "lister.h"

static const Live *live_of(const Lister *lister, const Run *run) {
    return &lister->automaton.components[run->state].live[run->mode];
}

/* --- runs that an event makes */

/* Return the run that those with a tally become when they take an event for a component. */
static Run *fresh_run(Lister *lister, const Tally *before, int32_t component, int64_t handle) {
    const Values *values = &lister->automaton.values;
    bool loops = lister->automaton.components[component].loops;
    Run like = {.state = component, .mode = loops ? LOOPING : WAITING, .way = NO_WAY};
    const Live *live = live_of(lister, &like);
    for (Py_ssize_t i = 0; i < live->size; i++)
        lister->known[i] = tally_slot_after(values, before, component, handle, live->slots[i]);
    run_identify(&like, lister->known, live->size);
    Run *run = table_find(&lister->fresh, &like, live, lister->known);
    for (Py_ssize_t i = 0; i < live->size; i++) value_drop(lister->known[i]);
    if (run != NULL) return run;
    run = allocate(sizeof(Run));
    if (run == NULL) return NULL;
    *run = like;
    if (values->slot_count > 0) run->tally = tally_after(values, before, component, handle);
    if ((values->slot_count > 0 && run->tally == NULL) || list_put(&lister->made, run) < 0) {
        run_free(run);
        return NULL;
    }
    return table_put(&lister->fresh, run) < 0 ? NULL : run;
}

/* Let ways be those of matches, with the event at hand after them or as it is. */
static int complete(Lister *lister, int64_t way, bool adds_event) {
    Completed *ended =
        reserve(lister->ended, &lister->ended_room, lister->ended_size + 1, sizeof(Completed));
    if (ended == NULL) return -1;
    lister->ended = ended;
    ended[lister->ended_size++] = (Completed){way, adds_event};
    return 0;
}

/* Let runs that came some ways take an event for a component. */
static int take(Lister *lister, int64_t way, const Tally *before, int32_t component, int64_t at) {
    const Automaton *automaton = &lister->automaton;
    if (component + 1 == automaton->component_count && !automaton->components[component].loops)
        return complete(lister, way, true);
    Run *run = fresh_run(lister, before, component, automaton_handle(automaton, (Py_ssize_t)at));
    int64_t number;
    if (run == NULL || ways_add(&lister->ways, component, at, way, &number) < 0) return -1;
    return ways_meld(&lister->ways, number, run->way, lister->head, &run->way);
}

/* --- an event */

static void drop(Lister *lister, Run *run) {
    table_remove(&lister->table, run);
    list_remove(&lister->alive[run->state], run);
}

/* Show an event to a run; return -1 with an exception. */
static int advance(Lister *lister, Run *run, int64_t at) {
    if (!ways_live(&lister->ways, run->way, lister->head)) {
        drop(lister, run);
        run_free(run);
        return 0;
    }
    const Automaton *automaton = &lister->automaton;
    Edges edges = automaton_edges(
        automaton, run->state, run->mode, run->tally, automaton_handle(automaton, (Py_ssize_t)at));
    if (edges.begins && !run->is_marked &&
        take(lister, run->way, run->tally, run->state + 1, at) < 0)
        return -1;
    if (edges.takes && take(lister, run->way, run->tally, run->state, at) < 0) return -1;
    bool closes = has_bit(automaton->closes, run->state);
    if (!closes && edges.mode == run->mode) return 0;
    drop(lister, run);
    run->mode = closes ? edges.mode & LOOPING : edges.mode;
    run->is_marked |= closes;
    if (run->mode != 0 && list_put(&lister->moved, run) == 0) return 0;
    bool failed = run->mode != 0;
    run_free(run);
    return failed ? -1 : 0;
}

/* Add a run to those alive, or to the one that it is equal to; it is given away. */
static int put(Lister *lister, Run *run) {
    const Live *live = live_of(lister, run);
    run_recognize(run, live, lister->known);
    Run *other = table_find(&lister->table, run, live, lister->known);
    int status;
    if (other != NULL) {
        status = ways_meld(&lister->ways, run->way, other->way, lister->head, &other->way);
    } else {
        status = list_put(&lister->alive[run->state], run);
        if (status == 0) {
            status = table_put(&lister->table, run);
            if (status == 0) return 0;
            list_remove(&lister->alive[run->state], run);
        }
    }
    run_free(run);
    return status;
}

/* Let the runs that an event made complete, and go on. */
static int settle(Lister *lister) {
    const Automaton *automaton = &lister->automaton;
    Py_ssize_t last = automaton->component_count - 1;
    const Program *leave = &automaton->components[last].leave;
    for (Py_ssize_t i = 0; i < lister->made.size; i++)
        table_remove(&lister->fresh, lister->made.items[i]);
    while (lister->made.size > 0) {
        Run *run = lister->made.items[--lister->made.size];
        bool completes = run->state == last && automaton_holds(automaton, leave, run->tally, 0);
        if (completes && complete(lister, run->way, false) < 0) {
            run_free(run);
            return -1;
        }
        if (put(lister, run) < 0) return -1;
    }
    while (lister->moved.size > 0)
        if (put(lister, lister->moved.items[--lister->moved.size]) < 0) return -1;
    return 0;
}

/* Let go of the runs that the window has left behind, from time to time. */
static void sweep(Lister *lister) {
    static const int64_t often = 1024;
    if (lister->head - lister->swept < often) return;
    lister->swept = lister->head;
    for (Py_ssize_t c = 0; c < lister->automaton.component_count; c++) {
        RunList *runs = &lister->alive[c];
        for (Py_ssize_t i = runs->size - 1; i >= 0; i--) {
            Run *run = runs->items[i];
            if (ways_live(&lister->ways, run->way, lister->head)) continue;
            drop(lister, run);
            run_free(run);
        }
    }
}

/* Let go of what is out of the window. */
static void pass_time(Lister *lister, int64_t at) {
    const int64_t *times = lister->automaton.stream.times;
    int64_t window = lister->automaton.window, oldest;
    if (window >= 0 && !subtract_overflows(times[at], window, &oldest))
        while (times[lister->head] < oldest) lister->head++;
    sweep(lister);
    if (lister->table.size == 0)
        ways_clear(&lister->ways);
    else
        ways_forget(&lister->ways, lister->head, at);
}

/* Return a bit for each component that an event may begin: the first, and those runs wait for. */
static int64_t awaited(const Lister *lister) {
    int64_t components = 1;
    for (Py_ssize_t c = 1; c < lister->automaton.component_count; c++)
        if (lister->alive[c - 1].size > 0) components |= (int64_t)1 << c;
    return components;
}

/* Show an event to all runs, and find those that it completes. */
int lister_event(Lister *lister, int64_t at) {
    lister->ended_size = 0;
    pass_time(lister, at);
    Automaton *automaton = &lister->automaton;
    automaton_ask_alone(automaton, (Py_ssize_t)at, awaited(lister));
    for (Py_ssize_t c = 0; c < automaton->component_count; c++) {
        RunList *runs = &lister->alive[c];
        if (runs->size == 0 || !automaton_concerns(automaton, c)) continue;
        for (Py_ssize_t i = runs->size - 1; i >= 0; i--)
            if (advance(lister, runs->items[i], at) < 0) return -1;
    }
    if (has_bit(automaton->begins, 0) && take(lister, NO_WAY, NULL, 0, at) < 0) return -1;
    if (settle(lister) < 0) return -1;
    const uint8_t *ends = lister->ends.items;
    if (ends != NULL && !ends[at]) lister->ended_size = 0;
    if (lister->ended_size > 0) {
        lister->walk.head = lister->head;
        lister->walk.until = lister_first_forbidden(lister, at);
    }
    return 0;
}

/* --- matches */

/* Turn to the ways of the last of the runs that the event at hand completes. */
static int walk_ended(Lister *lister, Py_ssize_t *length) {
    Completed ended = lister->ended[--lister->ended_size];
    Py_ssize_t last = lister->automaton.component_count - 1;
    WayEvent event = {lister->at - 1, (int32_t)last};
    if (walk_begin(&lister->walk, &lister->ways, ended.way, ended.adds_event ? &event : NULL) < 0)
        return -1;
    *length = ended.way == NO_WAY && event.at < lister->walk.until;
    return 0;
}

/*
 * Find the next match, whose events are then those of the walk, the last one first. Return 1 and
 * its length, 0 at the end of the partition, -1 with an exception.
 */
int lister_next(Lister *lister, Py_ssize_t *length) {
    static const int64_t often = 1 << 12;
    for (;;) {
        int status = walk_next(&lister->walk, &lister->ways, length);
        if (status != 0) return status;
        if (lister->ended_size > 0) {
            if (walk_ended(lister, length) < 0) return -1;
            if (*length > 0) return 1;
        } else if (lister->at < lister->automaton.stream.size) {
            if (lister->at % often == 0 && PyErr_CheckSignals() < 0) return -1;
            if (lister_event(lister, lister->at++) < 0) return -1;
        } else {
            return 0;
        }
    }
}

/* Return the position that the first run alive began with, INT64_MAX if there is none; -1 with an
 * exception. */
int64_t lister_earliest(const Lister *lister) {
    const Ways *ways = &lister->ways;
    uint8_t *reached = allocate_zeros(ways->size, sizeof(uint8_t));
    if (reached == NULL) return -1;
    for (Py_ssize_t c = 0; c < lister->automaton.component_count; c++)
        for (Py_ssize_t i = 0; i < lister->alive[c].size; i++) {
            int64_t way = lister->alive[c].items[i]->way;
            if (ways_live(ways, way, lister->head)) reached[way - ways->base] = 1;
        }
    int64_t earliest = ways_earliest(ways, reached, lister->head);
    release_memory(reached);
    return earliest;
}

/* --- a partition */

/* Begin with the events of a partition. */
int lister_begin(Lister *lister) {
    lister->at = lister->head = lister->swept = 0;
    return lister_find_barred(lister);
}

/* Forget the partition. */
void lister_end(Lister *lister) {
    Py_ssize_t count = lister->automaton.component_count;
    for (Py_ssize_t c = 0; c < count && lister->alive != NULL; c++) list_free(&lister->alive[c]);
    list_free(&lister->made);
    list_free(&lister->moved);
    table_free(&lister->table);
    table_free(&lister->fresh);
    ways_free(&lister->ways);
    walk_free(&lister->walk);
    release_memory(lister->ended);
    release_memory(lister->barred_before);
    release_memory(lister->barred_after);
    lister->ended = NULL;
    lister->barred_before = lister->barred_after = NULL;
    lister->ended_size = lister->ended_room = 0;
    array_close(&lister->ends);
    automaton_close(&lister->automaton);
}
