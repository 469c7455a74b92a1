/* SPDX-License-Identifier: Apache-2.0 */
/* A lister as Python sees it; engines/sequences/evaluation.py makes and uses it. */
#include "base/lock.h"
#include "base/objects.h"
#include "compressed/listed.h"
#include "sequences/lister.h"

static void lister_dealloc(Lister *lister) {
    PyTypeObject *type = Py_TYPE((PyObject *)lister);
    lister_end(lister);
    sequence_free(&lister->sequence);
    Py_XDECREF(lister->too_many);
    PyObject_Free(lister);
    Py_DECREF((PyObject *)type);
}

/* Lister(components, negatives, partition, slots, window) */
static int lister_init(Lister *lister, PyObject *args, PyObject *keywords) {
    (void)keywords;
    return sequence_read(&lister->sequence, args, &lister_payloads, lister);
}

/* set_events(rows, fields): the events that handles refer to. */
static PyObject *lister_set_events(Lister *lister, PyObject *args) {
    lister_end(lister);
    if (automaton_set_events(&lister->sequence.automaton, args) < 0) return NULL;
    Py_RETURN_NONE;
}

/* set_limit(most, too_many): bound the runs; too_many(runs, time) raises the error for more. */
static PyObject *lister_set_limit(Lister *lister, PyObject *args) {
    PyObject *too_many, *before = lister->too_many;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "nO", &most, &too_many)) return NULL;
    Py_INCREF(too_many);
    lister->most = most;
    lister->too_many = too_many;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static bool fits(const Lister *lister) {
    const int64_t *bounds = lister->bounds.items;
    Py_ssize_t size = lister->sequence.automaton.stream.size, count = lister->bounds.size;
    if (count == 0 || bounds[0] != 0 || bounds[count - 1] != size) return false;
    for (Py_ssize_t i = 1; i < count; i++)
        if (bounds[i] < bounds[i - 1]) return false;
    return lister->ends.items == NULL || lister->ends.size == size;
}

static int open_streams(Lister *lister, PyObject *bounds, PyObject *ends, PyObject **given) {
    if (automaton_open(&lister->sequence.automaton, given) < 0 ||
        array_of(bounds, sizeof(int64_t), &lister->bounds) < 0 ||
        array_of(ends, sizeof(uint8_t), &lister->ends) < 0)
        return -1;
    if (fits(lister)) {
        if (!automaton_needs_python(&lister->sequence.automaton)) lock_leave();
        int status = lister_begin(lister);
        lock_take();
        return status;
    }
    PyErr_SetString(PyExc_ValueError, "expected arrays as long as there are events");
    return -1;
}

/*
 * open(wants_begun, bounds, ends, times, handles, codes, starts, begins, takes, absents): open the
 * events of concatenated partitions. `bounds` says where each begins and the last one ends; `ends`
 * which events may end a match, None for all.
 */
static PyObject *lister_open(Lister *lister, PyObject *args) {
    PyObject *given[STREAM_ARRAYS], *bounds, *ends;
    int wants_begun;
    if (!PyArg_ParseTuple(
            args, "pOOOOOOOOO", &wants_begun, &bounds, &ends, &given[0], &given[1], &given[2],
            &given[3], &given[4], &given[5], &given[6]))
        return NULL;
    lister_end(lister);
    lister->wants_begun = wants_begun;
    if (open_streams(lister, bounds, ends, given) == 0) Py_RETURN_NONE;
    lister_end(lister);
    return NULL;
}

/* --- matches */

/* Add the current match, its first event first. */
static int add_match(Listed *listed, const Lister *lister, Py_ssize_t length) {
    if (listed_reserve(listed, length) < 0) return -1;
    for (Py_ssize_t i = length - 1; i >= 0; i--) {
        WayEvent event = lister->walk.events[i];
        listed_put(
            listed, automaton_handle(&lister->sequence.automaton, (Py_ssize_t)event.at),
            event.component);
    }
    listed_end(listed);
    return 0;
}

static int list_matches(Lister *lister, Listed *listed, Py_ssize_t most) {
    while (listed->events < most) {
        Py_ssize_t length;
        int status = lister_next(lister, &length);
        if (status <= 0) return status;
        if (add_match(listed, lister, length) < 0) return -1;
    }
    return 0;
}

/* next(most) -> listed_result() of just enough matches for so many events; empty at the end. */
static PyObject *lister_next_matches(Lister *lister, PyObject *args) {
    Py_ssize_t most;
    Listed listed = {0};
    if (!PyArg_ParseTuple(args, "n", &most)) return NULL;
    if (!automaton_needs_python(&lister->sequence.automaton)) lock_leave();
    int status = list_matches(lister, &listed, most);
    lock_take();
    PyObject *result = status < 0 ? NULL : listed_result(&listed);
    if (result == NULL) lister_end(lister);
    listed_free(&listed);
    return result;
}

/* begun() -> the handles of the events that the first live runs began with, by partition */
static PyObject *lister_get_begun(Lister *lister, PyObject *unused) {
    (void)unused;
    return bytes_of(lister->begun, lister->begun_size, sizeof(int64_t));
}

/* watch(): count what becomes of runs. */
static PyObject *lister_watch(Lister *lister, PyObject *unused) {
    (void)unused;
    if (sequence_watch(&lister->sequence) < 0) return NULL;
    Py_RETURN_NONE;
}

/* watched() -> of each component how often events met runs, merges, most alive, their sum, events */
static PyObject *lister_watched(Lister *lister, PyObject *unused) {
    (void)unused;
    const Sequence *sequence = &lister->sequence;
    Py_ssize_t count = sequence->watched == NULL ? 0 : sequence->automaton.component_count;
    return bytes_of(sequence->watched, count, sizeof(Watched));
}

/* size() -> the number of nodes held */
static PyObject *lister_size(Lister *lister, PyObject *unused) {
    (void)unused;
    return PyLong_FromSsize_t(lister->ways.size);
}

static PyMethodDef lister_methods[] = {
    {"set_events", (PyCFunction)lister_set_events, METH_VARARGS, "set the events of handles"},
    {"set_limit", (PyCFunction)lister_set_limit, METH_VARARGS, "bound the runs"},
    {"open", (PyCFunction)lister_open, METH_VARARGS, "open partitions"},
    {"next", (PyCFunction)lister_next_matches, METH_VARARGS, "list some more matches"},
    {"begun", (PyCFunction)lister_get_begun, METH_NOARGS, "what runs alive began with"},
    {"watch", (PyCFunction)lister_watch, METH_NOARGS, "count what becomes of runs"},
    {"watched", (PyCFunction)lister_watched, METH_NOARGS, "what became of runs"},
    {"size", (PyCFunction)lister_size, METH_NOARGS, "how many nodes are held"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot lister_slots[] = {
    {Py_tp_doc, "A SEQ query, ready to list its matches."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(lister_init)},
    {Py_tp_dealloc, AS_SLOT(lister_dealloc)},
    {Py_tp_methods, lister_methods},
    {0, NULL},
};

PyType_Spec lister_spec = {
    .name = "pyflinkcep.kernel._kernel.Lister",
    .basicsize = sizeof(Lister),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = lister_slots,
};
