/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pattern as passed from Python, and its decisions, which are fetched when events need them.
 * Mirror: engines/flink/nfa/state.py, through bridge.py.
 */
#include "flink/tables.h"

#include "base/lock.h"

int pattern_read_states(Pattern *pattern, PyObject *states) {
    Py_ssize_t count = PyTuple_Size(states);
    pattern->states = allocate_zeros(count, sizeof(State));
    if (pattern->states == NULL) return -1;
    pattern->state_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        State *state = &pattern->states[i];
        long long gap;
        int pending;
        if (!PyArg_ParseTuple(PyTuple_GetItem(states, i), "Lip", &gap, &state->stage, &pending))
            return -1;
        state->gap_ms = gap;
        state->is_pending = pending;
        if (state->gap_ms > 0) pattern->has_gaps = true;
        if (state->stage >= pattern->stage_count) pattern->stage_count = state->stage + 1;
    }
    return 0;
}

int pattern_read_atoms(Pattern *pattern, PyObject *atoms) {
    Py_ssize_t count = PyTuple_Size(atoms);
    pattern->atoms = allocate_zeros(count, sizeof(Atom));
    if (pattern->atoms == NULL) return -1;
    pattern->atom_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        Atom *atom = &pattern->atoms[i];
        unsigned long long bit;
        PyObject *function, *code;
        if (!PyArg_ParseTuple(
                PyTuple_GetItem(atoms, i), "iiKOO", &atom->kind, &atom->word, &bit, &function,
                &code))
            return -1;
        atom->bit = bit;
        atom->function = Py_NewRef(function);
        if (program_read(&atom->program, code) < 0) return -1;
    }
    return 0;
}

/* --- decisions */

static int read_move(Move *move, PyObject *spec) {
    long long increase;
    int takes, stays, continues, completes, adds_stage;
    if (!PyArg_ParseTuple(
            spec, "iiLppppp", &move->target, &move->stage, &increase, &takes, &stays, &continues,
            &completes, &adds_stage))
        return -1;
    move->increase = increase;
    move->takes = takes;
    move->stays = stays;
    move->continues = continues;
    move->completes = completes;
    move->adds_stage = adds_stage;
    return 0;
}

static void decision_free(Decision *decision) {
    if (decision == NULL) return;
    decision_free(decision->yes);
    decision_free(decision->no);
    Py_XDECREF(decision->ask);
    release_memory(decision->moves);
    release_memory(decision);
}

static int decision_visit(Decision *decision, visitproc visit, void *arg) {
    if (decision == NULL) return 0;
    Py_VISIT(decision->ask);
    int status = decision_visit(decision->yes, visit, arg);
    return status ? status : decision_visit(decision->no, visit, arg);
}

int pattern_visit(Pattern *pattern, visitproc visit, void *arg) {
    int status = 0;
    for (Py_ssize_t i = 0; i < pattern->atom_count; i++) Py_VISIT(pattern->atoms[i].function);
    for (Py_ssize_t i = 0; i < pattern->state_count && status == 0; i++)
        status = decision_visit(pattern->states[i].first, visit, arg);
    return status;
}

void pattern_clear_functions(Pattern *pattern) {
    for (Py_ssize_t i = 0; i < pattern->atom_count; i++) Py_CLEAR(pattern->atoms[i].function);
    for (Py_ssize_t i = 0; i < pattern->state_count; i++) {
        decision_free(pattern->states[i].first);
        pattern->states[i].first = NULL;
    }
}

void pattern_free(Pattern *pattern) {
    pattern_clear_functions(pattern);
    for (Py_ssize_t i = 0; i < pattern->atom_count; i++) {
        program_free(&pattern->atoms[i].program);
    }
    release_memory(pattern->states);
    release_memory(pattern->atoms);
    Py_CLEAR(pattern->stage_names);
}

static int read_step(Decision *step, PyObject *moves) {
    step->is_step = true;
    step->size = PyTuple_Size(moves);
    if (step->size < 0) return -1;
    step->moves = allocate_zeros(step->size, sizeof(Move));
    if (step->moves == NULL) return -1;
    for (Py_ssize_t i = 0; i < step->size; i++) {
        Move *move = &step->moves[i];
        if (read_move(move, PyTuple_GetItem(moves, i)) < 0) return -1;
        step->takes |= move->takes;
        step->keeps_event |= move->takes && move->continues;
        step->completes |= move->completes;
    }
    if (step->size == 1) {
        step->keeps = step->moves[0].stays;
        if (!step->moves[0].stays && !step->moves[0].completes) step->single = &step->moves[0];
    }
    return 0;
}

/* Make a decision from (atom, Ask, None, 0) or (-1, None, moves, ending); takes the reference to `spec`. */
static Decision *decision_read(PyObject *spec) {
    if (spec == NULL) return NULL;
    Decision *decision = allocate_zeros(1, sizeof(Decision));
    PyObject *ask, *moves;
    bool good = decision != NULL &&
                PyArg_ParseTuple(spec, "iOOi", &decision->atom, &ask, &moves, &decision->ending) &&
                decision->ending >= 0 && decision->ending < ENDINGS;
    if (good && decision->atom >= 0)
        decision->ask = Py_NewRef(ask);
    else if (good)
        good = read_step(decision, moves) == 0;
    Py_DECREF(spec);
    if (good) return decision;
    decision_free(decision);
    return NULL;
}

Decision *decision_first(Pattern *pattern, PyObject *helper, int32_t number) {
    State *state = &pattern->states[number];
    if (state->first != NULL) return state->first;
    bool given_up = lock_take();
    state->first = decision_read(PyObject_CallMethod(helper, "first", "i", number));
    if (state->first != NULL) lock_return(given_up);
    return state->first;
}

Decision *decision_following(PyObject *helper, Decision *decision, bool holds) {
    Decision **next = holds ? &decision->yes : &decision->no;
    if (*next != NULL) return *next;
    bool given_up = lock_take();
    *next = decision_read(PyObject_CallMethod(
        helper, "following", "OO", decision->ask, holds ? Py_True : Py_False));
    if (*next != NULL) lock_return(given_up);
    return *next;
}
