/* SPDX-License-Identifier: Apache-2.0 */
/* A counter as Python sees it; kernel/counting.py makes and uses it. */
#include "counter.h"
#include "kernel.h"
#include "tables.h"

static void component_free(Component *component) {
    program_free(&component->begin_alone);
    program_free(&component->begin_joint);
    program_free(&component->take_alone);
    program_free(&component->take_joint);
    program_free(&component->leave);
    for (int mode = 0; mode < 4; mode++) release_memory(component->live[mode].slots);
    array_close(&component->ranks);
}

static void counter_dealloc(Counter *counter) {
    PyTypeObject *type = Py_TYPE((PyObject *)counter);
    counter_end(counter);
    for (Py_ssize_t i = 0; i < counter->component_count; i++)
        component_free(&counter->components[i]);
    for (Py_ssize_t i = 0; i < counter->negative_count; i++)
        program_free(&counter->negatives[i].alone);
    program_free(&counter->partition_alone);
    program_free(&counter->partition_joint);
    fields_close(&counter->values, &counter->fields);
    release_memory(counter->components);
    release_memory(counter->negatives);
    release_memory(counter->alive);
    release_memory(counter->known);
    release_memory(counter->values.slots);
    PyObject_Free(counter);
    Py_DECREF((PyObject *)type);
}

/* --- reading what Python gives */

static int read_live(Live *live, PyObject *slots) {
    Py_ssize_t count = PyTuple_Size(slots);
    if (count < 0) return -1;
    live->slots = allocate_zeros(count, sizeof(int32_t));
    if (live->slots == NULL) return -1;
    live->size = count;
    for (Py_ssize_t i = 0; i < count; i++)
        live->slots[i] = (int32_t)PyLong_AsLong(PyTuple_GetItem(slots, i));
    return PyErr_Occurred() ? -1 : 0;
}

static int read_component(Component *component, PyObject *spec) {
    PyObject *live[4], *asked[5];
    Program *programs[5] = {&component->begin_alone, &component->begin_joint,
        &component->take_alone, &component->take_joint, &component->leave};
    int loops;
    if (!PyArg_ParseTuple(
            spec, "pi(OOOO)(OOOOO)", &loops, &component->strategy, &live[0], &live[1], &live[2],
            &live[3], &asked[0], &asked[1], &asked[2], &asked[3], &asked[4]))
        return -1;
    component->loops = loops;
    for (int mode = 0; mode < 4; mode++)
        if (read_live(&component->live[mode], live[mode]) < 0) return -1;
    for (int i = 0; i < 5; i++)
        if (program_read(programs[i], asked[i]) < 0) return -1;
    return 0;
}

static int read_components(Counter *counter, PyObject *components) {
    Py_ssize_t count = PyTuple_Size(components);
    counter->components = allocate_zeros(count, sizeof(Component));
    counter->alive = allocate_zeros(count, sizeof(RunList));
    if (counter->components == NULL || counter->alive == NULL) return -1;
    counter->component_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_component(&counter->components[i], PyTuple_GetItem(components, i)) < 0) return -1;
    return 0;
}

static int read_negatives(Counter *counter, PyObject *negatives) {
    Py_ssize_t count = PyTuple_Size(negatives);
    counter->negatives = allocate_zeros(count, sizeof(Negative));
    if (counter->negatives == NULL) return -1;
    counter->negative_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        Negative *negative = &counter->negatives[i];
        PyObject *code;
        if (!PyArg_ParseTuple(PyTuple_GetItem(negatives, i), "iO", &negative->gap, &code) ||
            program_read(&negative->alone, code) < 0)
            return -1;
        bool is_last = negative->gap == counter->component_count;
        counter->waits_for_end |= is_last;
        counter->minds_position |= is_last || negative->gap == 0;
    }
    return 0;
}

/* Counter(components, negatives, partition, slots, window) */
static int counter_init(Counter *counter, PyObject *args, PyObject *keywords) {
    PyObject *components, *negatives, *alone, *joint, *slots;
    long long window;
    (void)keywords;
    if (counter->components != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a counter is made once");
        return -1;
    }
    if (!PyArg_ParseTuple(
            args, "O!O!(OO)O!L", &PyTuple_Type, &components, &PyTuple_Type, &negatives, &alone,
            &joint, &PyTuple_Type, &slots, &window))
        return -1;
    counter->window = window;
    if (read_components(counter, components) < 0 || read_negatives(counter, negatives) < 0 ||
        program_read(&counter->partition_alone, alone) < 0 ||
        program_read(&counter->partition_joint, joint) < 0 ||
        values_read_slots(&counter->values, slots) < 0)
        return -1;
    counter->known = allocate_zeros(counter->values.slot_count, sizeof(Value));
    return counter->known == NULL ? -1 : 0;
}

/* set_events(rows, fields): the events that handles are numbers of. */
static PyObject *counter_set_events(Counter *counter, PyObject *args) {
    PyObject *fields;
    long long rows;
    if (!PyArg_ParseTuple(args, "LO!", &rows, &PyTuple_Type, &fields)) return NULL;
    fields_close(&counter->values, &counter->fields);
    counter->values.rows = rows;
    if (fields_read(&counter->values, &counter->fields, fields) < 0) {
        fields_close(&counter->values, &counter->fields);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* set_rising(component, or_equal, ranks): the loop's events rise by their ranks, by handle. */
static PyObject *counter_set_rising(Counter *counter, PyObject *args) {
    PyObject *ranks;
    int component, or_equal;
    if (!PyArg_ParseTuple(args, "ipO", &component, &or_equal, &ranks)) return NULL;
    if (component < 0 || component >= counter->component_count) {
        PyErr_SetString(PyExc_IndexError, "expected a component");
        return NULL;
    }
    Component *own = &counter->components[component];
    array_close(&own->ranks);
    own->rises = false;
    if (array_of(ranks, 4, &own->ranks) < 0) return NULL;
    if (own->ranks.size != counter->values.rows) {
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
    for (Py_ssize_t at = 0; at < counter->stream.size; at++) {
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

enum { TIMES, HANDLES, CODES, STARTS, BEGINS, TAKES, ABSENTS, WEIGHTS, ARRAYS };

static bool fits(const Counter *counter, const Array *arrays) {
    Py_ssize_t size = arrays[TIMES].size, kinds = arrays[BEGINS].size;
    if (counter->weighed >= 0 && arrays[WEIGHTS].size != counter->values.rows) return false;
    if (arrays[HANDLES].items == NULL && size > counter->values.rows) return false;
    for (Py_ssize_t i = 0; i < arrays[HANDLES].size; i++) {
        int64_t handle = ((const int64_t *)arrays[HANDLES].items)[i];
        if (handle < 0 || handle >= counter->values.rows) return false;
    }
    return arrays[CODES].size == size &&
           (arrays[HANDLES].items == NULL || arrays[HANDLES].size == size) &&
           (arrays[STARTS].items == NULL || arrays[STARTS].size == size) &&
           arrays[TAKES].size == kinds && arrays[ABSENTS].size == kinds;
}

/*
 * count(times, handles, codes, starts, begins, takes, absents, weights, by_event, component) -> the
 * number of matches; by event the positions of those that complete some, how many each, and the
 * sum of the weights (below 2^63, by handle) of the events that these have for the component.
 */
static PyObject *counter_count(Counter *counter, PyObject *args) {
    static const Py_ssize_t widths[ARRAYS] = {8, 8, 4, 1, 8, 8, 8, 8};
    PyObject *given[ARRAYS], *result = NULL;
    Array arrays[ARRAYS] = {0};
    int by_event, component, opened = 0;
    if (!PyArg_ParseTuple(
            args, "OOOOOOOOpi", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5],
            &given[6], &given[7], &by_event, &component))
        return NULL;
    counter->weighed = given[WEIGHTS] == Py_None ? -1 : component;
    while (opened < ARRAYS && array_of(given[opened], widths[opened], &arrays[opened]) == 0)
        opened++;
    if (opened == ARRAYS && !fits(counter, arrays))
        PyErr_SetString(PyExc_ValueError, "expected arrays as long as there are events");
    else if (opened == ARRAYS) {
        counter->stream = (Stream){.times = arrays[TIMES].items,
            .handles = arrays[HANDLES].items,
            .codes = arrays[CODES].items,
            .starts = arrays[STARTS].items,
            .begins = arrays[BEGINS].items,
            .takes = arrays[TAKES].items,
            .absents = arrays[ABSENTS].items,
            .size = arrays[TIMES].size,
            .kinds = arrays[BEGINS].size};
        counter->weights = arrays[WEIGHTS].items;
        result = count_stream(counter, by_event);
    }
    while (opened > 0) array_close(&arrays[--opened]);
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
