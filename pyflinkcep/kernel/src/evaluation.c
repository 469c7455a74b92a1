/* SPDX-License-Identifier: Apache-2.0 */
/* Asking conditions, each of one event at most once; see nfa/evaluation.py. */
#include "kernel.h"

void evaluation_begin(Kernel *kernel, int64_t handle, int64_t timestamp, uint64_t bits) {
    kernel->handle = handle;
    kernel->timestamp = timestamp;
    kernel->known = kernel->always_known;
    kernel->holds = bits;
    Py_CLEAR(kernel->row);
}

void evaluation_end(Kernel *kernel) { Py_CLEAR(kernel->row); }

/* Give the truth of a user's function's answer, -1 with an exception; takes the reference. */
static int truth(Kernel *kernel, int32_t atom, PyObject *answer) {
    if (answer == Py_True || answer == Py_False) {
        Py_DECREF(answer);
        return answer == Py_True;
    }
    PyObject *checked;
    if (answer == NULL && !PyErr_ExceptionMatches(PyExc_Exception)) return -1; /* an interrupt */
    if (answer != NULL) {
        checked = PyObject_CallMethod(
            kernel->helper, "as_bool", "iLO", atom, kernel->timestamp, answer);
        Py_DECREF(answer);
    } else {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        PyErr_NormalizeException(&type, &error, &traceback);
        if (traceback != NULL) PyException_SetTraceback(error, traceback);
        checked = PyObject_CallMethod(
            kernel->helper, "failed", "iLO", atom, kernel->timestamp, error);
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
    if (checked == NULL) return -1;
    Py_DECREF(checked);
    return checked == Py_True;
}

static int ask(Kernel *kernel, int32_t number) {
    Atom *atom = &kernel->atoms[number];
    if (kernel->row == NULL) {
        PyObject *handle = PyLong_FromLongLong(kernel->handle);
        if (handle == NULL) return -1;
        kernel->row = PyObject_CallOneArg(kernel->view, handle);
        Py_DECREF(handle);
        if (kernel->row == NULL) return -1;
    }
    PyObject *answer =
        atom->kind == ATOM_OF_EVENT
            ? PyObject_CallOneArg(atom->function, kernel->row)
            : PyObject_CallFunctionObjArgs(atom->function, kernel->row, kernel->context, NULL);
    return truth(kernel, number, answer);
}

static int holds_of_event(Kernel *kernel, int32_t number) {
    uint64_t bit = kernel->atoms[number].bit;
    if (kernel->known & bit) return (kernel->holds & bit) != 0;
    int holds = ask(kernel, number);
    if (holds < 0) return -1;
    kernel->known |= bit;
    if (holds) kernel->holds |= bit;
    return holds;
}

static int values_failed(Kernel *kernel, ValuesError error, int32_t atom) {
    PyObject *none = PyObject_CallMethod(
        kernel->helper, "expression_failed", "iLi", atom, kernel->timestamp, (int)error);
    Py_XDECREF(none);
    return -1;
}

static int holds_of_expression(Kernel *kernel, int32_t number) {
    Edge *edge = NULL;
    if (kernel->asked_node != NULL) {
        Py_ssize_t ways;
        edge = node_edge(kernel->asked_node, kernel->asked_version, &ways);
        if (ways != 1) return context_ambiguous(kernel, kernel->asked_node, ways);
    }
    bool holds = false;
    ValuesError error = values_holds(
        &kernel->values, &kernel->atoms[number].program, edge == NULL ? NULL : edge->values,
        kernel->handle, &holds);
    return error == VALUES_OK ? holds : values_failed(kernel, error, number);
}

/* Decide for all partial matches in a state: a Step, or where a partial match must be asked. */
Decision *evaluation_of_event(Kernel *kernel, int32_t state) {
    Decision *decision = decision_first(kernel, state);
    while (decision != NULL && !decision->is_step &&
           kernel->atoms[decision->atom].kind == ATOM_OF_EVENT) {
        int holds = holds_of_event(kernel, decision->atom);
        if (holds < 0) return NULL;
        Decision *next = holds ? decision->yes : decision->no;
        decision = next != NULL ? next : decision_following(kernel, decision, holds);
    }
    return decision;
}

/* Decide for one partial match, from where it depends on what that has taken. */
Decision *evaluation_of_match(Kernel *kernel, Partial *partial, Decision *decision) {
    kernel->asked_node = partial->node;
    kernel->asked_version = partial->version;
    while (decision != NULL && !decision->is_step) {
        int32_t atom = decision->atom;
        int holds;
        switch (kernel->atoms[atom].kind) {
        case ATOM_OF_EVENT: holds = holds_of_event(kernel, atom); break;
        case ATOM_EXPRESSION: holds = holds_of_expression(kernel, atom); break;
        default: holds = ask(kernel, atom);
        }
        if (holds < 0) {
            decision = NULL;
            break;
        }
        Decision *next = holds ? decision->yes : decision->no;
        decision = next != NULL ? next : decision_following(kernel, decision, holds);
    }
    kernel->asked_node = NULL;
    kernel->asked_version = NULL;
    return decision;
}
