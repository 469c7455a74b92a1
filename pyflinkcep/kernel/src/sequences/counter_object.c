/* SPDX-License-Identifier: Apache-2.0 */
/* A counter as Python sees it; engines/sequences/evaluation.py makes and uses it. */
#include "base/objects.h"
#include "base/signals.h"
#include "sequences/counter.h"

static void counter_dealloc(Counter *counter) {
    PyTypeObject *type = Py_TYPE((PyObject *)counter);
    counter_end(counter);
    for (Py_ssize_t c = 0;
        counter->rising != NULL && c < counter->sequence.automaton.component_count; c++)
        array_close(&counter->rising[c].ranks);
    sequence_free(&counter->sequence);
    release_memory(counter->rising);
    PyObject_Free(counter);
    Py_DECREF((PyObject *)type);
}

/* Counter(components, negatives, partition, slots, window) */
static int counter_init(Counter *counter, PyObject *args, PyObject *keywords) {
    (void)keywords;
    if (sequence_read(&counter->sequence, args, &counter_payloads, counter) < 0) return -1;
    counter->rising = allocate_zeros(counter->sequence.automaton.component_count, sizeof(Rising));
    return counter->rising != NULL ? 0 : -1;
}

/* set_events(rows, fields): the events that handles refer to. */
static PyObject *counter_set_events(Counter *counter, PyObject *args) {
    if (automaton_set_events(&counter->sequence.automaton, args) < 0) return NULL;
    Py_RETURN_NONE;
}

/* set_rising(component, or_equal, ranks): the loop's events rise by their ranks, by handle. */
static PyObject *counter_set_rising(Counter *counter, PyObject *args) {
    PyObject *ranks;
    int component, or_equal;
    if (!PyArg_ParseTuple(args, "ipO", &component, &or_equal, &ranks)) return NULL;
    if (component < 0 || component >= counter->sequence.automaton.component_count) {
        PyErr_SetString(PyExc_IndexError, "expected a component");
        return NULL;
    }
    Rising *own = &counter->rising[component];
    array_close(&own->ranks);
    own->rises = false;
    if (array_of(ranks, 4, &own->ranks) < 0) return NULL;
    if (own->ranks.size != counter->sequence.automaton.values.rows) {
        PyErr_SetString(PyExc_ValueError, "expected as many ranks as events");
        return NULL;
    }
    own->rises = true;
    own->or_equal = or_equal;
    Py_RETURN_NONE;
}

/* --- counting */

static int count_events(Counter *counter, Counted *counted) {
    if (counter_begin(counter) < 0) return -1;
    for (Py_ssize_t at = 0; at < counter->sequence.automaton.stream.size; at++) {
        if (check_signals() < 0) return -1;
        if (counter_event(counter, at) < 0 || counted_add(counted, at, &counter->now) < 0)
            return -1;
    }
    return 0;
}

static PyObject *count_stream(Counter *counter, bool by_event) {
    Counted counted;
    PyObject *result = NULL;
    if (counted_open(&counted, by_event, counter->weighing.weights != NULL) == 0 &&
        count_events(counter, &counted) == 0)
        result = counted_result(&counted);
    counter_end(counter);
    counted_close(&counted);
    return result;
}

/*
 * count(times, handles, codes, starts, begins, takes, absents, by_event, weights, component,
 * seeks_greatest) -> the number of matches; with by_event the positions of the events that complete
 * some, the numbers of these, and the sum, or the greatest, of the weights (below 2^63, by handle)
 * of their events for the component.
 */
static PyObject *counter_count(Counter *counter, PyObject *args) {
    PyObject *given[STREAM_ARRAYS], *weighed, *result = NULL;
    Array weights;
    int by_event, component, seeks_greatest;
    if (!PyArg_ParseTuple(
            args, "OOOOOOOpOip", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5],
            &given[6], &by_event, &weighed, &component, &seeks_greatest) ||
        array_of(weighed, sizeof(uint64_t), &weights) < 0)
        return NULL;
    counter->weighing = (Weighing){weights.items, component, seeks_greatest};
    if (weights.items != NULL && weights.size != counter->sequence.automaton.values.rows)
        PyErr_SetString(PyExc_ValueError, "expected arrays as long as there are events");
    else if (automaton_open(&counter->sequence.automaton, given) == 0)
        result = count_stream(counter, by_event);
    automaton_close(&counter->sequence.automaton);
    array_close(&weights);
    return result;
}

static PyMethodDef counter_methods[] = {
    {"set_events", (PyCFunction)counter_set_events, METH_VARARGS, "set the events of handles"},
    {"set_rising", (PyCFunction)counter_set_rising, METH_VARARGS, "set by what a loop rises"},
    {"count", (PyCFunction)counter_count, METH_VARARGS, "count the matches of a partition"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot counter_slots[] = {
    {Py_tp_doc, "A SEQ query, ready to count."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(counter_init)},
    {Py_tp_dealloc, AS_SLOT(counter_dealloc)},
    {Py_tp_methods, counter_methods},
    {0, NULL},
};

PyType_Spec counter_spec = {
    .name = "pyflinkcep.kernel._kernel.Counter",
    .basicsize = sizeof(Counter),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = counter_slots,
};
