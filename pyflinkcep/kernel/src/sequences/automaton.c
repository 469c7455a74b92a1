/* SPDX-License-Identifier: Apache-2.0 */
/* The edges of a SEQ query's automaton. Mirror: engines/sequences/runs.py. */
#include "sequences/automaton.h"

bool automaton_holds(
    const Automaton *automaton, const Program *program, const Tally *tally, int64_t handle) {
    return program->size == 0 ||
           program_run(&automaton->values, program, tally, handle) == PROGRAM_TRUE;
}

bool automaton_needs_python(const Automaton *automaton) {
    bool needs = values_need_python(&automaton->values) ||
                 program_needs_python(&automaton->partition_alone) ||
                 program_needs_python(&automaton->partition_joint);
    for (Py_ssize_t c = 0; c < automaton->component_count; c++) {
        const Component *own = &automaton->components[c];
        needs |= program_needs_python(&own->begin_alone) || program_needs_python(&own->leave) ||
                 program_needs_python(&own->begin_joint) ||
                 program_needs_python(&own->take_alone) || program_needs_python(&own->take_joint);
    }
    for (Py_ssize_t n = 0; n < automaton->absent_count; n++)
        needs |= program_needs_python(&automaton->absent[n].alone) ||
                 program_needs_python(&automaton->absent[n].joint);
    return needs;
}

/* --- conditions on the event alone */

/*
 * Find what an event is a candidate for, and the gaps that it closes unconditionally; return
 * whether it is negated before the first component.
 */
static bool ask_negatives(Automaton *automaton, Py_ssize_t at, int64_t handle) {
    int64_t absents = bits_of(&automaton->stream, automaton->stream.absents, at);
    bool bars = false;
    automaton->closes = 0;
    automaton->absents = absents;
    for (Py_ssize_t n = 0; absents >> n != 0; n++) {
        if (!has_bit(absents, n)) continue;
        const Negative *negative = &automaton->negatives[automaton->absent[n].negative];
        if (!automaton_holds(automaton, &automaton->absent[n].alone, NULL, handle)) {
            automaton->absents &= ~((int64_t)1 << n);
            continue;
        }
        if (negative->judges) continue; /* up to what a run has taken */
        if (negative->gap == 0)
            bars = true;
        else if (negative->gap < automaton->component_count)
            automaton->closes |= (int64_t)1 << (negative->gap - 1);
    }
    return bars;
}

bool automaton_ask_alone(Automaton *automaton, Py_ssize_t at, int64_t awaited) {
    const Stream *stream = &automaton->stream;
    int64_t handle = automaton_handle(automaton, at);
    int64_t begins = bits_of(stream, stream->begins, at) & awaited;
    int64_t takes = bits_of(stream, stream->takes, at);
    if (stream->starts != NULL && !stream->starts[at]) begins &= ~(int64_t)1;
    for (Py_ssize_t c = 0; (begins | takes) >> c != 0; c++) {
        const Component *own = &automaton->components[c];
        if (has_bit(begins, c) && !automaton_holds(automaton, &own->begin_alone, NULL, handle))
            begins &= ~((int64_t)1 << c);
        if (has_bit(takes, c) && !automaton_holds(automaton, &own->take_alone, NULL, handle))
            takes &= ~((int64_t)1 << c);
    }
    automaton->begins = begins;
    automaton->takes = takes;
    return ask_negatives(automaton, at, handle);
}

/* --- negated sequences */

/* Where the events of a negated sequence are sought. */
typedef struct {
    const Automaton *automaton;
    NextCandidate next;
    const void *owner;
    int32_t last; /* the last event */
    int64_t high; /* it comes before this position */
} Sought;

/* Make the slots after an absent event. */
static const Tally *tally_beyond(
    const Values *values, const Absent *absent, const Tally *before, int64_t handle) {
    absent->after->size = values->slot_count;
    for (Py_ssize_t i = 0; i < values->slot_count; i++)
        absent->after->slots[i] = tally_slot_after(values, before, absent->stage, handle, i);
    return absent->after;
}

/* Whether an absent event comes from a position on, and those after it in its sequence. */
static bool follow(const Sought *sought, int32_t number, int64_t low, const Tally *tally) {
    const Automaton *automaton = sought->automaton;
    const Absent *absent = &automaton->absent[number];
    int64_t at = sought->next(sought->owner, number, low);
    for (; at < sought->high; at = sought->next(sought->owner, number, at + 1)) {
        int64_t handle = automaton_handle(automaton, (Py_ssize_t)at);
        if (!automaton_holds(automaton, &absent->joint, tally, handle)) continue;
        if (number == sought->last) return true;
        if (absent->stage < 0)
            return follow(sought, number + 1, at + 1, tally); /* the first is enough */
        const Tally *after = tally_beyond(&automaton->values, absent, tally, handle);
        bool is_found = follow(sought, number + 1, at + 1, after);
        for (Py_ssize_t i = 0; i < after->size; i++) value_drop(after->slots[i]);
        if (is_found) return true;
    }
    return false;
}

bool automaton_follow(
    const Automaton *automaton, const Negative *negative, NextCandidate next, const void *owner,
    int64_t low, int64_t high, const Tally *tally) {
    Sought sought = {automaton, next, owner, negative->first + negative->count - 1, high};
    return follow(&sought, negative->first, low, tally);
}

/* --- edges */

static bool may_begin(
    const Automaton *automaton, Py_ssize_t component, const Tally *tally, int64_t handle) {
    const Program *asked = &automaton->components[component].begin_joint;
    return has_bit(automaton->begins, component) &&
           automaton_holds(automaton, asked, tally, handle);
}

static bool may_take(
    const Automaton *automaton, Py_ssize_t component, const Tally *tally, int64_t handle) {
    const Program *asked = &automaton->components[component].take_joint;
    return has_bit(automaton->takes, component) && automaton_holds(automaton, asked, tally, handle);
}

static bool ignores(
    const Automaton *automaton, Py_ssize_t component, const Tally *tally, int64_t handle,
    bool consumed) {
    switch (automaton->components[component].strategy) {
    case ANY: return true;
    case STRICT: return false;
    case NEXT: return !consumed;
    default:
        return !(
            automaton_holds(automaton, &automaton->partition_alone, NULL, handle) &&
            automaton_holds(automaton, &automaton->partition_joint, tally, handle));
    }
}

Edges automaton_edges(
    const Automaton *automaton, Py_ssize_t component, int32_t mode, const Tally *tally,
    int64_t handle) {
    Edges edges = {0};
    Py_ssize_t following = component + 1;
    if (mode & LOOPING) {
        edges.takes = may_take(automaton, component, tally, handle);
        bool stays = ignores(automaton, component, tally, handle, edges.takes);
        if (stays) edges.mode = LOOPING;
        const Program *leave = &automaton->components[component].leave;
        if (following < automaton->component_count &&
            automaton_holds(automaton, leave, tally, handle)) {
            edges.begins = may_begin(automaton, following, tally, handle);
            bool peeks = edges.begins || !(edges.takes || stays);
            if (peeks && ignores(automaton, following, tally, handle, edges.begins))
                edges.mode |= WAITING;
        }
    }
    if (mode & WAITING) {
        bool begun = may_begin(automaton, following, tally, handle);
        edges.begins |= begun;
        if (ignores(automaton, following, tally, handle, begun)) edges.mode |= WAITING;
    }
    return edges;
}

bool automaton_is_restless(const Automaton *automaton, Py_ssize_t component) {
    int32_t strategy = automaton->components[component].strategy;
    return strategy == STRICT || strategy == PARTITION;
}

bool automaton_concerns(const Automaton *automaton, Py_ssize_t component) {
    return has_bit(automaton->begins, component + 1) || has_bit(automaton->takes, component) ||
           has_bit(automaton->closes, component) || automaton_is_restless(automaton, component) ||
           (component + 1 < automaton->component_count &&
               automaton_is_restless(automaton, component + 1));
}
