/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates conditions, each at most once per event. Mirror: engines/flink/nfa/evaluation.py. */
#include "flink/kernel.h"

int evaluation_make(Evaluation *asked, PyObject *known) {
    asked->words = PyTuple_Size(known);
    asked->more = allocate_zeros(asked->words, sizeof(Answers));
    if (asked->more == NULL) return -1;
    for (Py_ssize_t i = 0; i < asked->words; i++) {
        Answers *answers = i == 0 ? &asked->first : &asked->more[i - 1];
        answers->always_known = PyLong_AsUnsignedLongLong(PyTuple_GetItem(known, i));
    }
    return PyErr_Occurred() ? -1 : 0;
}

void evaluation_free(Evaluation *asked) { release_memory(asked->more); }

void evaluation_begin_more(Evaluation *asked, const int64_t *bits, Py_ssize_t words) {
    for (Py_ssize_t i = 1; i < asked->words; i++) {
        asked->more[i - 1].known = asked->more[i - 1].always_known;
        asked->more[i - 1].holds = i < words ? (uint64_t)bits[i] : 0;
    }
}

#if PY_VERSION_HEX >= 0x030C0000 && (!defined(Py_LIMITED_API) || Py_LIMITED_API >= 0x030C0000)
static PyObject *take_exception(void) { return PyErr_GetRaisedException(); }
#else
static PyObject *take_exception(void) {
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL) PyException_SetTraceback(error, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return error;
}
#endif

/* Return whether a user's function answered true; takes the reference to the answer. */
static int truth(Kernel *kernel, int32_t atom, PyObject *answer) {
    if (answer == Py_True || answer == Py_False) {
        Py_DECREF(answer);
        return answer == Py_True;
    }
    PyObject *checked;
    if (answer == NULL && !PyErr_ExceptionMatches(PyExc_Exception) &&
        !PyErr_ExceptionMatches(PyExc_SystemExit) &&
        !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        return -1; /* a generator that is closed */
    if (answer != NULL) {
        checked = PyObject_CallMethod(
            kernel->helper, "as_bool", "iLO", atom, (long long)kernel->asked.timestamp, answer);
        Py_DECREF(answer);
    } else {
        PyObject *error = take_exception();
        checked = PyObject_CallMethod(
            kernel->helper, "failed", "iLO", atom, (long long)kernel->asked.timestamp, error);
        Py_XDECREF(error);
    }
    if (checked == NULL) return -1;
    Py_DECREF(checked);
    return checked == Py_True;
}

static int ask(Kernel *kernel, int32_t number) {
    Evaluation *asked = &kernel->asked;
    const Atom *atom = &kernel->pattern.atoms[number];
    if (asked->row == NULL) {
        asked->row = view_of(kernel, asked->handle);
        if (asked->row == NULL) return -1;
    }
    PyObject *answer =
        atom->kind == ATOM_OF_EVENT
            ? call_with(atom->function, asked->row)
            : PyObject_CallFunctionObjArgs(atom->function, asked->row, kernel->context, NULL);
    return truth(kernel, number, answer);
}

static int holds_of_event(Kernel *kernel, int32_t number) {
    Evaluation *asked = &kernel->asked;
    const Atom *atom = &kernel->pattern.atoms[number];
    Answers *answers = atom->word == 0 ? &asked->first : &asked->more[atom->word - 1];
    if (answers->known & atom->bit) return (answers->holds & atom->bit) != 0;
    int holds = ask(kernel, number);
    if (holds < 0) return -1;
    answers->known |= atom->bit;
    if (holds) answers->holds |= atom->bit;
    return holds;
}

static int program_failed(Kernel *kernel, ProgramAnswer answer, int32_t atom) {
    lock_take();
    if (answer != PROGRAM_RAISED)
        Py_XDECREF(PyObject_CallMethod(
            kernel->helper, "expression_failed", "iLi", atom, (long long)kernel->asked.timestamp,
            answer == PROGRAM_OVERFLOW));
    return -1;
}

static int holds_with(Kernel *kernel, int32_t number, const Tally *tally) {
    ProgramAnswer answer = program_run(
        &kernel->values, &kernel->pattern.atoms[number].program, tally, kernel->asked.handle);
    if (answer == PROGRAM_TRUE || answer == PROGRAM_FALSE) return answer == PROGRAM_TRUE;
    return program_failed(kernel, answer, number);
}

static int holds_of_expression(Kernel *kernel, int32_t number) {
    const Evaluation *asked = &kernel->asked;
    Edge *edge = NULL;
    if (asked->node != NULL) {
        Py_ssize_t ways;
        edge = node_edge(asked->node, asked->version, &ways);
        if (ways != 1) return context_ambiguous(kernel, asked->node, ways);
    }
    return holds_with(kernel, number, edge == NULL ? NULL : edge->tally);
}

/* Follow an answer, through Python the first time. */
static Decision *following(Kernel *kernel, Decision *decision, bool holds) {
    Decision *next = holds ? decision->yes : decision->no;
    return next != NULL ? next : decision_following(kernel->helper, decision, holds);
}

/* Decide for all partial matches in a state: a Step, or the first condition that depends on the
   partial match. */
static inline Decision *decide(Kernel *kernel, int32_t state) {
    const Pattern *pattern = &kernel->pattern;
    Decision *decision = pattern->states[state].first;
    if (decision == NULL) decision = decision_first(&kernel->pattern, kernel->helper, state);
    while (decision != NULL && !decision->is_step &&
           pattern->atoms[decision->atom].kind == ATOM_OF_EVENT) {
        int holds = holds_of_event(kernel, decision->atom);
        if (holds < 0) return NULL;
        decision = following(kernel, decision, holds);
    }
    return decision;
}

Decision *evaluation_of_event(Kernel *kernel, int32_t state) { return decide(kernel, state); }

Decision *evaluation_of_runs(Kernel *kernel, int32_t state) { return decide(kernel, state); }

static int holds_of_match(Kernel *kernel, int32_t atom) {
    switch (kernel->pattern.atoms[atom].kind) {
    case ATOM_OF_EVENT: return holds_of_event(kernel, atom);
    case ATOM_EXPRESSION: return holds_of_expression(kernel, atom);
    default: return ask(kernel, atom);
    }
}

Decision *evaluation_of_match(Kernel *kernel, Partial *partial, Decision *decision) {
    kernel->asked.node = partial->node;
    kernel->asked.version = partial->version;
    while (decision != NULL && !decision->is_step) {
        int holds = holds_of_match(kernel, decision->atom);
        decision = holds < 0 ? NULL : following(kernel, decision, holds);
    }
    kernel->asked.node = NULL;
    kernel->asked.version = NULL;
    return decision;
}

Decision *evaluation_with(Kernel *kernel, const Tally *tally, Decision *decision) {
    while (decision != NULL && !decision->is_step) {
        bool is_of_event = kernel->pattern.atoms[decision->atom].kind == ATOM_OF_EVENT;
        int holds = is_of_event ? holds_of_event(kernel, decision->atom)
                                : holds_with(kernel, decision->atom, tally);
        decision = holds < 0 ? NULL : following(kernel, decision, holds);
    }
    return decision;
}
