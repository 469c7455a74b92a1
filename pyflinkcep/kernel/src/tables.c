/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern as Python hands it over, and its decisions, which are fetched as events need them. */
#include "kernel.h"

int kernel_read_states(Kernel *kernel, PyObject *states) {
    Py_ssize_t count = PyTuple_GET_SIZE(states);
    kernel->states = must_alloc((size_t)count * sizeof(State));
    for (Py_ssize_t i = 0; i < count; i++) {
        State *state = &kernel->states[i];
        int pending;
        *state = (State){0};
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(states, i), "Lip", &state->gap_ms, &state->stage,
                              &pending))
            return -1;
        state->is_pending = pending;
        if (state->gap_ms > 0) kernel->has_gaps = true;
        if (state->stage >= kernel->stage_count) kernel->stage_count = state->stage + 1;
        kernel->state_count = i + 1;
    }
    kernel->by_state = must_alloc((size_t)count * sizeof(Decision *));
    kernel->stamps = must_alloc((size_t)count * sizeof(bool));
    for (Py_ssize_t i = 0; i < count; i++) kernel->stamps[i] = false;
    kernel->stage_stamps = must_alloc((size_t)(kernel->stage_count + 1) * sizeof(bool));
    for (Py_ssize_t i = 0; i < kernel->stage_count; i++) kernel->stage_stamps[i] = false;
    return 0;
}

static int read_program(Program *program, PyObject *code) {
    Py_ssize_t size = PyTuple_GET_SIZE(code);
    program->code = must_alloc((size_t)(size + 1) * sizeof(Instruction));
    program->stack = must_alloc((size_t)(size + 1) * sizeof(Value));
    program->size = size;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *operand;
        Instruction *instruction = &program->code[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(code, i), "iO", &instruction->opcode, &operand))
            return -1;
        if (operand == Py_None) {
            instruction->operand = (Value){.kind = VALUE_NULL};
        } else if (PyFloat_Check(operand)) {
            instruction->operand = (Value){{.f = PyFloat_AS_DOUBLE(operand)}, VALUE_FLOAT};
        } else {
            instruction->operand = (Value){{.i = PyLong_AsLongLong(operand)}, VALUE_INT};
            if (PyErr_Occurred()) return -1;
        }
    }
    return 0;
}

int kernel_read_atoms(Kernel *kernel, PyObject *atoms) {
    Py_ssize_t count = PyTuple_GET_SIZE(atoms);
    kernel->atoms = must_alloc((size_t)(count + 1) * sizeof(Atom));
    for (Py_ssize_t i = 0; i < count; i++) {
        Atom *atom = &kernel->atoms[i];
        unsigned long long bit;
        PyObject *code;
        *atom = (Atom){0};
        kernel->atom_count = i + 1;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(atoms, i), "iKOO!", &atom->kind, &bit,
                              &atom->function, &PyTuple_Type, &code)) {
            atom->function = NULL;
            return -1;
        }
        atom->bit = bit;
        Py_INCREF(atom->function);
        if (read_program(&atom->program, code) < 0) return -1;
    }
    return 0;
}

int kernel_read_slots(Kernel *kernel, PyObject *slots) {
    Py_ssize_t count = PyTuple_GET_SIZE(slots);
    kernel->values.slots = must_alloc((size_t)(count + 1) * sizeof(Slot));
    kernel->values.slot_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        Slot *slot = &kernel->values.slots[i];
        int is_float;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(slots, i), "iiiip", &slot->function, &slot->stage,
                              &slot->field, &slot->count, &is_float))
            return -1;
        slot->is_float = is_float;
    }
    return 0;
}

/* --- decisions */

static int read_move(Move *move, PyObject *spec) {
    int takes, stays, continues, completes, adds_stage;
    if (!PyArg_ParseTuple(spec, "iiLppppp", &move->target, &move->stage, &move->increase, &takes,
                          &stays, &continues, &completes, &adds_stage))
        return -1;
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

/* Show the cycle collector what the tables refer to. */
int kernel_visit_tables(Kernel *kernel, visitproc visit, void *arg) {
    int status = 0;
    for (Py_ssize_t i = 0; i < kernel->atom_count; i++) Py_VISIT(kernel->atoms[i].function);
    for (Py_ssize_t i = 0; i < kernel->state_count && status == 0; i++)
        status = decision_visit(kernel->states[i].first, visit, arg);
    return status;
}

/* Forget what may refer to the kernel itself: users' functions. */
void kernel_clear_functions(Kernel *kernel) {
    for (Py_ssize_t i = 0; i < kernel->atom_count; i++) Py_CLEAR(kernel->atoms[i].function);
    for (Py_ssize_t i = 0; i < kernel->state_count; i++) {
        decision_free(kernel->states[i].first);
        kernel->states[i].first = NULL;
    }
}

static int read_step(Decision *step, PyObject *moves) {
    step->is_step = true;
    step->size = PyTuple_GET_SIZE(moves);
    step->moves = must_alloc((size_t)(step->size + 1) * sizeof(Move));
    for (Py_ssize_t i = 0; i < step->size; i++) {
        Move *move = &step->moves[i];
        if (read_move(move, PyTuple_GET_ITEM(moves, i)) < 0) return -1;
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

/* Make a decision of (atom, Ask, None) or (-1, None, moves); takes the reference to `spec`. */
static Decision *decision_read(PyObject *spec) {
    if (spec == NULL) return NULL;
    Decision *decision = must_alloc(sizeof(Decision));
    *decision = (Decision){0};
    PyObject *ask, *moves;
    bool good = PyArg_ParseTuple(spec, "iOO", &decision->atom, &ask, &moves);
    if (good && decision->atom >= 0) {
        decision->ask = Py_NewRef(ask);
    } else if (good) {
        good = read_step(decision, moves) == 0;
    }
    Py_DECREF(spec);
    if (good) return decision;
    decision_free(decision);
    return NULL;
}

Decision *decision_first(Kernel *kernel, int32_t number) {
    State *state = &kernel->states[number];
    if (state->first == NULL)
        state->first = decision_read(PyObject_CallMethod(kernel->helper, "first", "i", number));
    return state->first;
}

Decision *decision_following(Kernel *kernel, Decision *decision, bool holds) {
    Decision **next = holds ? &decision->yes : &decision->no;
    if (*next == NULL)
        *next = decision_read(PyObject_CallMethod(
            kernel->helper, "following", "OO", decision->ask, holds ? Py_True : Py_False));
    return *next;
}

void kernel_free_tables(Kernel *kernel) {
    for (Py_ssize_t i = 0; i < kernel->state_count; i++) decision_free(kernel->states[i].first);
    for (Py_ssize_t i = 0; i < kernel->atom_count; i++) {
        Py_XDECREF(kernel->atoms[i].function);
        release_memory(kernel->atoms[i].program.code);
        release_memory(kernel->atoms[i].program.stack);
    }
    release_memory(kernel->states);
    release_memory(kernel->atoms);
    release_memory(kernel->values.slots);
    release_memory(kernel->by_state);
    release_memory(kernel->stamps);
    release_memory(kernel->stage_stamps);
}
