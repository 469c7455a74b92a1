/* SPDX-License-Identifier: Apache-2.0 */
/* A counter as Python sees it; kernel/counting.py makes and uses it. */
#include "counter.h"
#include "kernel.h"

static void counter_dealloc(Counter *counter) {
    PyTypeObject *type = Py_TYPE((PyObject *)counter);
    counter_end(counter);
    for (Py_ssize_t c = 0; counter->rising != NULL && c < counter->automaton.component_count; c++)
        array_close(&counter->rising[c].ranks);
    automaton_free(&counter->automaton);
    release_memory(counter->alive);
    release_memory(counter->rising);
    release_memory(counter->known);
    PyObject_Free(counter);
    Py_DECREF((PyObject *)type);
}

/* Counter(components, negatives, partition, slots, window) */
static int counter_init(Counter *counter, PyObject *args, PyObject *keywords) {
    Automaton *automaton = &counter->automaton;
    (void)keywords;
    if (automaton_read(automaton, args) < 0) return -1;
    counter->alive = allocate_zeros(automaton->component_count, sizeof(RunList));
    counter->rising = allocate_zeros(automaton->component_count, sizeof(Rising));
    counter->known = allocate_zeros(automaton->values.slot_count, sizeof(Value));
    bool is_ready = counter->alive != NULL && counter->rising != NULL && counter->known != NULL;
    return is_ready ? 0 : -1;
}

/* set_events(rows, fields): the events that handles are numbers of. */
static PyObject *counter_set_events(Counter *counter, PyObject *args) {
    if (automaton_set_events(&counter->automaton, args) < 0) return NULL;
    Py_RETURN_NONE;
}

/* set_rising(component, or_equal, ranks): the loop's events rise by their ranks, by handle. */
static PyObject *counter_set_rising(Counter *counter, PyObject *args) {
    PyObject *ranks;
    int component, or_equal;
    if (!PyArg_ParseTuple(args, "ipO", &component, &or_equal, &ranks)) return NULL;
    if (component < 0 || component >= counter->automaton.component_count) {
        PyErr_SetString(PyExc_IndexError, "expected a component");
        return NULL;
    }
    Rising *own = &counter->rising[component];
    array_close(&own->ranks);
    own->rises = false;
    if (array_of(ranks, 4, &own->ranks) < 0) return NULL;
    if (own->ranks.size != counter->automaton.values.rows) {
        PyErr_SetString(PyExc_ValueError, "expected ranks as many as there are events");
        return NULL;
    }
    own->rises = true;
    own->or_equal = or_equal;
    Py_RETURN_NONE;
}

/* --- counting */

/* Return a total as a Python integer. */
static PyObject *total_as_int(const Total *total) {
    static const int WORD = 8;
    if (total->size <= 1) return PyLong_FromUnsignedLongLong(total->size ? total->words[0] : 0);
    unsigned char *bytes = allocate((size_t)(total->size * WORD));
    if (bytes == NULL) return NULL;
    for (Py_ssize_t i = 0; i < total->size * WORD; i++)
        bytes[i] = (unsigned char)(total->words[i / WORD] >> (i % WORD * 8));
    PyObject *result = PyObject_CallMethod(
        (PyObject *)&PyLong_Type, "from_bytes", "y#s", (const char *)bytes, total->size * WORD,
        "little");
    release_memory(bytes);
    return result;
}

typedef struct {
    PyObject *counts; /* of the events that complete matches; NULL if only their sum is wanted */
    PyObject *sums; /* what their matches weigh, NULL if nothing is weighed */
    int64_t *positions;
    Py_ssize_t size, room;
    Total sum;
} Counted;

static int append_total(PyObject *list, const Total *total) {
    PyObject *number = total_as_int(total);
    int status = number == NULL ? -1 : PyList_Append(list, number);
    Py_XDECREF(number);
    return status;
}

static int counted_add(Counted *counted, const Counter *counter, Py_ssize_t at) {
    if (total_is_zero(&counter->now)) return 0;
    if (counted->counts == NULL) return total_add(&counted->sum, &counter->now);
    int64_t *positions =
        reserve(counted->positions, &counted->room, counted->size + 1, sizeof(int64_t));
    if (positions == NULL) return -1;
    counted->positions = positions;
    positions[counted->size++] = at;
    if (append_total(counted->counts, &counter->now) < 0) return -1;
    return counted->sums == NULL ? 0 : append_total(counted->sums, &counter->now_sum);
}

static int count_events(Counter *counter, Counted *counted) {
    static const Py_ssize_t often = 1 << 12;
    if (counter_begin(counter) < 0) return -1;
    for (Py_ssize_t at = 0; at < counter->automaton.stream.size; at++) {
        if (at % often == 0 && PyErr_CheckSignals() < 0) return -1;
        if (counter_event(counter, at) < 0 || counted_add(counted, counter, at) < 0) return -1;
    }
    return 0;
}

static PyObject *count_stream(Counter *counter, bool by_event) {
    bool weighs = counter->weighed >= 0;
    Counted counted = {.counts = by_event ? PyList_New(0) : NULL};
    PyObject *result = NULL;
    if (weighs) counted.sums = PyList_New(0);
    bool is_ready = (!by_event || counted.counts != NULL) && (!weighs || counted.sums != NULL);
    if (is_ready && count_events(counter, &counted) == 0)
        result = by_event ? Py_BuildValue(
                                "NOO", bytes_of(counted.positions, counted.size, sizeof(int64_t)),
                                counted.counts, weighs ? counted.sums : Py_None)
                          : total_as_int(&counted.sum);
    counter_end(counter);
    Py_XDECREF(counted.counts);
    Py_XDECREF(counted.sums);
    release_memory(counted.positions);
    total_free(&counted.sum);
    return result;
}

/*
 * count(times, handles, codes, starts, begins, takes, absents, weights, by_event, component) -> the
 * number of matches; by event the positions of those that complete some, how many each, and the
 * sum of the weights (below 2^63, by handle) of the events that these have for the component.
 */
static PyObject *counter_count(Counter *counter, PyObject *args) {
    PyObject *given[STREAM_ARRAYS], *weighed, *result = NULL;
    Array weights;
    int by_event, component;
    if (!PyArg_ParseTuple(
            args, "OOOOOOOOpi", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5],
            &given[6], &weighed, &by_event, &component) ||
        array_of(weighed, sizeof(uint64_t), &weights) < 0)
        return NULL;
    counter->weighed = weights.items == NULL ? -1 : component;
    counter->weights = weights.items;
    if (weights.items != NULL && weights.size != counter->automaton.values.rows)
        PyErr_SetString(PyExc_ValueError, "expected arrays as long as there are events");
    else if (automaton_open(&counter->automaton, given) == 0)
        result = count_stream(counter, by_event);
    automaton_close(&counter->automaton);
    array_close(&weights);
    return result;
}

static PyMethodDef counter_methods[] = {
    {"set_events", (PyCFunction)counter_set_events, METH_VARARGS, "set what handles mean"},
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
