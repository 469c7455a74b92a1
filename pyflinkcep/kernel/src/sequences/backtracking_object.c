/* SPDX-License-Identifier: Apache-2.0 */
/* A search as Python sees it; engines/sequences/evaluation.py makes and uses it. */
#include "base/lock.h"
#include "base/objects.h"
#include "sequences/backtracking.h"

static void backtracker_dealloc(Backtracker *backtracker) {
    PyTypeObject *type = Py_TYPE((PyObject *)backtracker);
    backtracker_free(backtracker);
    PyObject_Free(backtracker);
    Py_DECREF((PyObject *)type);
}

/* Backtracker(components, negatives, partition, slots, window) */
static int backtracker_init(Backtracker *backtracker, PyObject *args, PyObject *keywords) {
    (void)keywords;
    if (automaton_read(&backtracker->automaton, args) < 0) return -1;
    if (backtracker->automaton.component_count == 0) {
        PyErr_SetString(PyExc_ValueError, "expected a component");
        return -1;
    }
    return backtracker_read(backtracker);
}

/* set_events(rows, fields): the events that handles refer to. */
static PyObject *backtracker_set_events(Backtracker *backtracker, PyObject *args) {
    backtracker_end(backtracker);
    if (automaton_set_events(&backtracker->automaton, args) < 0) return NULL;
    Py_RETURN_NONE;
}

/*
 * turn_to(output, watermark, bounds, may_end, times, handles, codes, starts, begins, takes,
 * absents): the events of concatenated partitions, where each begins and the last ends, and which
 * events may end a match.
 */
static PyObject *backtracker_turn_to(Backtracker *backtracker, PyObject *args) {
    PyObject *given[STREAM_ARRAYS], *watermark, *bounds, *may_end;
    if (!PyArg_ParseTuple(
            args, "iOOOOOOOOOO", &backtracker->output, &watermark, &bounds, &may_end, &given[0],
            &given[1], &given[2], &given[3], &given[4], &given[5], &given[6]))
        return NULL;
    backtracker_end(backtracker);
    backtracker->is_growing = watermark != Py_None;
    if (backtracker->is_growing) backtracker->watermark = PyLong_AsLongLong(watermark);
    if (PyErr_Occurred() || automaton_open(&backtracker->automaton, given) < 0 ||
        backtracker_turn(backtracker, bounds, may_end) < 0) {
        backtracker_end(backtracker);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* find(enough) -> listed_result() of matches with at least so many events; empty at the end. */
static PyObject *backtracker_find(Backtracker *backtracker, PyObject *enough) {
    Listed *found = &backtracker->found;
    Py_ssize_t most = PyLong_AsSsize_t(enough);
    if (most == -1 && PyErr_Occurred()) return NULL;
    bool is_open = backtracker->bounds.items != NULL;
    if (!automaton_needs_python(&backtracker->automaton)) lock_leave();
    int status = is_open ? backtracker_run(backtracker, most) : 0;
    lock_take();
    if (status < 0) {
        backtracker_end(backtracker);
        return NULL;
    }
    PyObject *result = listed_result(found);
    if (found->size == 0) backtracker_end(backtracker);
    listed_clear(found);
    return result;
}

/* undecided() -> the handles of the starts that later events decide, by partition */
static PyObject *backtracker_undecided(Backtracker *backtracker, PyObject *unused) {
    (void)unused;
    return bytes_of(backtracker->undecided, backtracker->undecided_count, sizeof(int64_t));
}

/* met() -> how often an event was tried on a run */
static PyObject *backtracker_met(Backtracker *backtracker, PyObject *unused) {
    (void)unused;
    return PyLong_FromLongLong(backtracker->met);
}

static PyMethodDef backtracker_methods[] = {
    {"set_events", (PyCFunction)backtracker_set_events, METH_VARARGS, "set the events of handles"},
    {"turn_to", (PyCFunction)backtracker_turn_to, METH_VARARGS, "open partitions"},
    {"find", (PyCFunction)backtracker_find, METH_O, "find more matches"},
    {"met", (PyCFunction)backtracker_met, METH_NOARGS, "how often events met runs"},
    {"undecided", (PyCFunction)backtracker_undecided, METH_NOARGS, "what later events decide"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot backtracker_slots[] = {
    {Py_tp_doc, "A SEQ query, ready to search."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(backtracker_init)},
    {Py_tp_dealloc, AS_SLOT(backtracker_dealloc)},
    {Py_tp_methods, backtracker_methods},
    {0, NULL},
};

PyType_Spec backtracker_spec = {
    .name = "pyflinkcep.kernel._kernel.Backtracker",
    .basicsize = sizeof(Backtracker),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = backtracker_slots,
};
