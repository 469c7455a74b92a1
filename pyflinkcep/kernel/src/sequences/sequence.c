/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a SEQ query over the events of a partition. Mirror: engines/sequences/runs.py.
 * The runs of one state that agree in what conditions still read are merged, whatever
 * events they began with.
 */
#include "base/signals.h"
#include "sequences/sequence.h"

static const Live *live_of(const Sequence *sequence, const Run *run) {
    return &sequence->automaton.components[run->state].live[run->mode];
}

/* --- runs that an event makes */

static int keep_spans(Run *run, const Spans *spans) {
    if (spans == NULL) return 0;
    run->spans = allocate(sizeof(Spans) + (size_t)spans->size * sizeof(Span));
    if (run->spans == NULL) return -1;
    run->spans->size = spans->size;
    for (Py_ssize_t i = 0; i < spans->size; i++) run->spans->items[i] = spans->items[i];
    return 0;
}

/* Return what runs with a tally become when they take an event for a component. */
static Run *fresh_run(Sequence *sequence, const Tally *before, int32_t component, int64_t handle) {
    const Values *values = &sequence->automaton.values;
    bool loops = sequence->automaton.components[component].loops;
    Run like = {.state = component, .mode = loops ? LOOPING : WAITING, .way = -1};
    if (sequence->is_judging && sequence->passed->size > 0) like.spans = sequence->passed;
    const Live *live = live_of(sequence, &like);
    for (Py_ssize_t i = 0; i < live->size; i++)
        sequence->known[i] = tally_slot_after(values, before, component, handle, live->slots[i]);
    run_identify(&like, sequence->known, live->size);
    Run *run = table_find(&sequence->fresh, &like, live, sequence->known);
    for (Py_ssize_t i = 0; i < live->size; i++) value_drop(sequence->known[i]);
    if (run != NULL) return run;
    run = allocate_small(sizeof(Run));
    if (run == NULL) return NULL;
    *run = like;
    run->spans = NULL;
    if (values->slot_count > 0) run->tally = tally_after(values, before, component, handle);
    if ((values->slot_count > 0 && run->tally == NULL) || keep_spans(run, like.spans) < 0 ||
        list_put(&sequence->made, run) < 0) {
        run_free(run);
        return NULL;
    }
    return table_put(&sequence->fresh, run) < 0 ? NULL : run;
}

/* Whether runs that have taken an event for a component cannot take another. */
static bool ends_with(const Automaton *automaton, Py_ssize_t component) {
    return component + 1 == automaton->component_count && !automaton->components[component].loops;
}

int sequence_take(Sequence *sequence, const Run *runs, int32_t component, Py_ssize_t at) {
    const Automaton *automaton = &sequence->automaton;
    if (!sequence->is_judging && ends_with(automaton, component))
        return sequence->payloads->complete(sequence, runs, true, at);
    int may = sequence->is_judging ? sequence_pass(sequence, runs, component, at) : 1;
    if (may <= 0) return may;
    Run *run = fresh_run(sequence, runs->tally, component, automaton_handle(automaton, at));
    return run == NULL ? -1 : sequence->payloads->add(sequence, run, runs, at);
}

/* --- an event */

bool sequence_concerns(const Sequence *sequence, Py_ssize_t at) {
    const Stream *stream = &sequence->automaton.stream;
    int32_t code = stream->codes[at];
    if (sequence->is_restless) return true;
    return code >= 0 && code < stream->kinds &&
           (stream->begins[code] | stream->takes[code] | stream->absents[code]) != 0;
}

int64_t sequence_awaited(const Sequence *sequence) {
    int64_t components = 1;
    for (Py_ssize_t c = 1; c < sequence->automaton.component_count; c++)
        if (sequence->alive[c - 1].size > 0) components |= (int64_t)1 << c;
    return components;
}

static void drop(Sequence *sequence, Run *run) {
    joined_remove(&sequence->joined[run->state], run);
    table_remove(&sequence->table, run);
    list_remove(&sequence->alive[run->state], run);
}

/* Process an event for a run; return -1 with an exception. */
static int advance(Sequence *sequence, Run *run, Py_ssize_t at) {
    if (sequence->payloads->is_over(sequence, run)) {
        drop(sequence, run);
        run_free(run);
        return 0;
    }
    const Automaton *automaton = &sequence->automaton;
    if (sequence->watched != NULL) sequence->watched[run->state].met++;
    Edges edges = automaton_edges(
        automaton, run->state, run->mode, run->tally, automaton_handle(automaton, at));
    if (edges.begins && !run->is_marked &&
        sequence->payloads->take(sequence, run, run->state + 1, at) < 0)
        return -1;
    if (edges.takes && sequence->payloads->take(sequence, run, run->state, at) < 0) return -1;
    bool closes = has_bit(automaton->closes, run->state);
    if (!closes && edges.mode == run->mode) return 0;
    drop(sequence, run);
    run->mode = closes ? edges.mode & LOOPING : edges.mode;
    run->is_marked |= closes;
    if (run->mode != 0 && list_put(&sequence->moved, run) == 0) return 0;
    bool failed = run->mode != 0;
    run_free(run);
    return failed ? -1 : 0;
}

/* Process an event for the runs of a component that may take it, found by value. */
static int advance_joined(Sequence *sequence, Py_ssize_t component, Py_ssize_t at) {
    Joined *joined = &sequence->joined[component];
    joined_ask(joined, &sequence->automaton, component, at);
    for (int edge = 0; edge < JOINED_EDGES; edge++)
        for (Run *run = joined_first(joined, edge), *next; run != NULL; run = next) {
            next = run->links->after[edge];
            if (!joined_meets(joined, run, edge)) continue;
            if (check_signals() < 0 || advance(sequence, run, at) < 0) return -1;
        }
    return 0;
}

int sequence_advance(Sequence *sequence, Py_ssize_t at) {
    for (Py_ssize_t c = 0; c < sequence->automaton.component_count; c++) {
        RunList *runs = &sequence->alive[c];
        if (runs->size == 0 || !automaton_concerns(&sequence->automaton, c)) continue;
        int found = joined_answers(&sequence->joined[c], &sequence->automaton, c, runs);
        if (found < 0) return -1;
        if (found > 0) {
            if (advance_joined(sequence, c, at) < 0) return -1;
            continue;
        }
        for (Py_ssize_t i = runs->size - 1; i >= 0; i--)
            if (check_signals() < 0 || advance(sequence, runs->items[i], at) < 0) return -1;
    }
    return 0;
}

/* Add a run to the live ones, or merge it into its equal; takes over the run. */
static int put(Sequence *sequence, Run *run) {
    const Live *live = live_of(sequence, run);
    run_recognize(run, live, sequence->known);
    Run *other = table_find(&sequence->table, run, live, sequence->known);
    int status;
    if (other != NULL) {
        status = sequence->payloads->merge(sequence, other, run);
        if (sequence->watched != NULL) sequence->watched[run->state].merged++;
    } else {
        status = list_put(&sequence->alive[run->state], run);
        if (status == 0) {
            status = joined_put(&sequence->joined[run->state], run);
            if (status == 0) status = table_put(&sequence->table, run);
            if (status == 0) return 0;
            joined_remove(&sequence->joined[run->state], run);
            list_remove(&sequence->alive[run->state], run);
        }
    }
    run_free(run);
    return status;
}

/* Complete and continue a run that an event made; takes over the run. */
static int settle(Sequence *sequence, Run *run, Py_ssize_t at) {
    const Automaton *automaton = &sequence->automaton;
    Py_ssize_t last = automaton->component_count - 1;
    const Program *leave = &automaton->components[last].leave;
    bool completes = run->state == last && automaton_holds(automaton, leave, run->tally, 0) &&
                     !sequence_is_forbidden(sequence, run);
    int status = completes ? sequence->payloads->complete(sequence, run, false, at) : 0;
    if (status == 0 && !ends_with(automaton, run->state)) return put(sequence, run);
    run_free(run);
    return status;
}

static void count_alive(Sequence *sequence) {
    for (Py_ssize_t c = 0; c < sequence->automaton.component_count; c++) {
        Watched *own = &sequence->watched[c];
        int64_t alive = sequence->alive[c].size;
        if (alive > own->most) own->most = alive;
        own->sum += alive;
        own->events++;
    }
}

int sequence_settle(Sequence *sequence, Py_ssize_t at) {
    RunList *made = &sequence->made, *moved = &sequence->moved;
    for (Py_ssize_t i = 0; i < made->size; i++) table_remove(&sequence->fresh, made->items[i]);
    while (made->size > 0)
        if (settle(sequence, made->items[--made->size], at) < 0 || check_signals() < 0) return -1;
    while (moved->size > 0)
        if (put(sequence, moved->items[--moved->size]) < 0) return -1;
    if (sequence->watched != NULL) count_alive(sequence);
    return 0;
}

int sequence_watch(Sequence *sequence) {
    if (sequence->watched != NULL) return 0;
    sequence->watched = allocate_zeros(sequence->automaton.component_count, sizeof(Watched));
    return sequence->watched == NULL ? -1 : 0;
}

void sequence_sweep(Sequence *sequence) {
    for (Py_ssize_t c = 0; c < sequence->automaton.component_count; c++) {
        RunList *runs = &sequence->alive[c];
        for (Py_ssize_t i = runs->size - 1; i >= 0; i--) {
            Run *run = runs->items[i];
            if (!sequence->payloads->is_over(sequence, run)) continue;
            drop(sequence, run);
            run_free(run);
        }
    }
}

void sequence_restart(Sequence *sequence) {
    for (Py_ssize_t c = 0; c < sequence->automaton.component_count; c++) {
        RunList *runs = &sequence->alive[c];
        while (runs->size > 0) {
            Run *run = runs->items[runs->size - 1];
            drop(sequence, run);
            run_free(run);
        }
        joined_clear(&sequence->joined[c]);
    }
}

/* --- the query */

int sequence_read(Sequence *sequence, PyObject *args, const Payloads *payloads, void *owner) {
    Automaton *automaton = &sequence->automaton;
    sequence->payloads = payloads;
    sequence->owner = owner;
    if (automaton_read(automaton, args) < 0) return -1;
    for (Py_ssize_t c = 0; c < automaton->component_count; c++)
        sequence->is_restless |= automaton_is_restless(automaton, c);
    for (Py_ssize_t n = 0; n < automaton->negative_count; n++)
        sequence->is_judging |= automaton->negatives[n].judges;
    sequence->alive = allocate_zeros(automaton->component_count, sizeof(RunList));
    sequence->joined = allocate_zeros(automaton->component_count, sizeof(Joined));
    sequence->known = allocate_zeros(automaton->values.slot_count, sizeof(Value));
    sequence->candidates = allocate_zeros(automaton->absent_count, sizeof(Candidates));
    size_t room = (size_t)automaton->negative_count * sizeof(Span);
    sequence->passed = allocate(sizeof(Spans) + room);
    if (sequence->alive == NULL || sequence->joined == NULL || sequence->known == NULL ||
        sequence->candidates == NULL || sequence->passed == NULL)
        return -1;
    for (Py_ssize_t c = 0; c < automaton->component_count; c++)
        joined_prepare(&sequence->joined[c], automaton, c);
    return 0;
}

void sequence_clear(Sequence *sequence) {
    Py_ssize_t count = sequence->automaton.component_count;
    for (Py_ssize_t c = 0; c < count && sequence->alive != NULL; c++)
        list_free(&sequence->alive[c]);
    for (Py_ssize_t c = 0; c < count && sequence->joined != NULL; c++)
        joined_clear(&sequence->joined[c]);
    list_free(&sequence->made);
    list_free(&sequence->moved);
    table_free(&sequence->table);
    table_free(&sequence->fresh);
    sequence_forget_candidates(sequence);
}

void sequence_free(Sequence *sequence) {
    sequence_clear(sequence);
    automaton_free(&sequence->automaton);
    release_memory(sequence->alive);
    release_memory(sequence->joined);
    release_memory(sequence->watched);
    release_memory(sequence->known);
    release_memory(sequence->candidates);
    release_memory(sequence->passed);
}
