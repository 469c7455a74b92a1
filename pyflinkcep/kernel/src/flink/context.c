/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of iterative conditions: what a partial match has taken, and times.
 * Mirror: the context of engines/flink/nfa/evaluation.py.
 */
#include "flink/kernel.h"

static const Py_ssize_t MOST_KEPT_EVENTS = 1000000;

PyObject *view_of(Kernel *kernel, int64_t handle) {
    PyObject *number = PyLong_FromLongLong(handle);
    if (number == NULL) return NULL;
    PyObject *event = call_with(kernel->view, number);
    Py_DECREF(number);
    return event;
}

/* Return a copy of a way: stage to list of events. */
static PyObject *copied(PyObject *path) {
    PyObject *copy = PyDict_New(), *stage, *events;
    Py_ssize_t at = 0;
    while (copy != NULL && PyDict_Next(path, &at, &stage, &events)) {
        PyObject *list = PyList_GetSlice(events, 0, PyList_Size(events));
        if (list == NULL || PyDict_SetItem(copy, stage, list) < 0) Py_CLEAR(copy);
        Py_XDECREF(list);
    }
    return copy;
}

static int add_event(Kernel *kernel, PyObject *path, const PathStep *step) {
    PyObject *stage = PyTuple_GetItem(kernel->pattern.stage_names, step->stage);
    PyObject *event = stage == NULL ? NULL : view_of(kernel, step->entry->handle);
    if (event == NULL) return -1;
    PyObject *list = PyDict_GetItemWithError(path, stage);
    int status = -1;
    if (list != NULL) {
        status = PyList_Append(list, event);
    } else if (!PyErr_Occurred() && (list = PyList_New(0)) != NULL) {
        status = PyList_Append(list, event) < 0 ? -1 : PyDict_SetItem(path, stage, list);
        Py_DECREF(list);
    }
    Py_DECREF(event);
    return status;
}

int context_ambiguous(Kernel *kernel, const Node *node, Py_ssize_t ways) {
    lock_take();
    Py_XDECREF(PyObject_CallMethod(
        kernel->helper, "ambiguous", "niLLL", ways, node->stage, (long long)node->entry->timestamp,
        (long long)node->entry->id, (long long)kernel->asked.timestamp));
    return -1;
}

int context_path(Kernel *kernel, Node *node, Version *version) {
    Path *path = &kernel->work.path;
    if (path_of_run(path, node, version) < 0) return -1;
    if (path->size > 0 || node == NULL) return 0;
    lock_take();
    Py_XDECREF(PyObject_CallMethod(kernel->helper, "lost_path", NULL));
    return -1;
}

/* Return a number that no other edge of this process has. */
static uint64_t serial_of(Edge *edge) {
    static uint64_t last = 0;
#ifdef Py_GIL_DISABLED
    if (edge->serial == 0) edge->serial = _Py_atomic_add_uint64(&last, 1) + 1;
#else /* Python's lock is held */
    if (edge->serial == 0) edge->serial = ++last;
#endif
    return edge->serial;
}

/* Return the edge that a run came by; raise unless there is exactly one. */
static Edge *only_edge(Kernel *kernel, Node *node, const Version *version) {
    Py_ssize_t ways;
    Edge *edge = node_edge(node, version, &ways);
    if (ways == 1) return edge;
    context_ambiguous(kernel, node, ways);
    return NULL;
}

/*
 * Return the way to an edge, built from that of an earlier edge if possible: partial matches need
 * it with every event, and most have moved by at most one event since.
 */
static PyObject *walked(Kernel *kernel, Node *node, Edge *edge) {
    Path missing = {0};
    PyObject *known = NULL, *path = NULL;
    while (edge != NULL && known == NULL) {
        PyObject *serial = PyLong_FromUnsignedLongLong(serial_of(edge));
        if (serial == NULL) goto end;
        known = PyDict_GetItemWithError(kernel->seen.paths, serial);
        Py_DECREF(serial);
        if (known != NULL || PyErr_Occurred()) break;
        if (path_push(&missing, node->stage, node->entry) < 0) goto end;
        if (edge->target == NULL) break;
        node = edge->target;
        edge = only_edge(kernel, node, edge->version);
    }
    if (PyErr_Occurred()) goto end;
    path = known == NULL ? PyDict_New() : copied(known);
    for (Py_ssize_t i = missing.size - 1; i >= 0 && path != NULL; i--)
        if (add_event(kernel, path, &missing.steps[i]) < 0) Py_CLEAR(path);
end:
    release_memory(missing.steps);
    return path;
}

static Py_ssize_t events_of(PyObject *path) {
    PyObject *stage, *events;
    Py_ssize_t at = 0, size = 0;
    while (PyDict_Next(path, &at, &stage, &events)) size += PyList_Size(events);
    return size;
}

/* Return the way to an edge, with a reference of the caller's own. */
static PyObject *path_to(Kernel *kernel, Node *node, Edge *edge) {
    PyObject *serial = PyLong_FromUnsignedLongLong(serial_of(edge));
    if (serial == NULL) return NULL;
    PyObject *path = PyDict_GetItemWithError(kernel->seen.paths, serial);
    if (path != NULL) {
        Py_INCREF(path);
    } else if (!PyErr_Occurred()) {
        if (kernel->seen.size > MOST_KEPT_EVENTS) {
            PyDict_Clear(kernel->seen.paths);
            kernel->seen.size = 0;
        }
        path = walked(kernel, node, edge);
        if (path != NULL) {
            kernel->seen.size += events_of(path);
            if (PyDict_SetItem(kernel->seen.paths, serial, path) < 0) Py_CLEAR(path);
        }
    }
    Py_DECREF(serial);
    return path;
}

void context_forget(Kernel *kernel) {
    if (kernel->seen.size > 0) PyDict_Clear(kernel->seen.paths);
    kernel->seen.size = 0;
}

/* --- the read-only object that conditions get */

typedef struct {
    PyObject_HEAD
    Kernel *kernel;
} Context;

static PyObject *events_for_stage(Kernel *kernel, PyObject *stage) {
    if (stage == Py_None) return PyObject_CallMethod(kernel->helper, "no_stage", NULL);
    if (kernel->asked.node == NULL) return PyList_New(0);
    Edge *edge = only_edge(kernel, kernel->asked.node, kernel->asked.version);
    PyObject *path = edge == NULL ? NULL : path_to(kernel, kernel->asked.node, edge);
    if (path == NULL) return NULL;
    PyObject *events = PyDict_GetItemWithError(path, stage), *result = NULL;
    if (events != NULL)
        result = PyList_GetSlice(events, 0, PyList_Size(events));
    else if (!PyErr_Occurred())
        result = PyList_New(0);
    Py_DECREF(path);
    return result;
}

/* getEventsForPattern(name): the events that the partial match took for a stage, oldest first. */
static PyObject *context_events(
    Context *context, PyObject *const *args, Py_ssize_t positional, PyObject *keywords) {
    Py_ssize_t named = keywords == NULL ? 0 : PyTuple_Size(keywords);
    bool good = positional + named == 1;
    if (good && named == 1)
        good = PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "name") == 0;
    if (!good) {
        PyErr_SetString(PyExc_TypeError, "getEventsForPattern() takes one argument, name");
        return NULL;
    }
    return events_for_stage(context->kernel, args[0]);
}

static PyObject *context_timestamp(Context *context, PyObject *unused) {
    (void)unused;
    return PyLong_FromLongLong(context->kernel->asked.timestamp);
}

static PyObject *context_now(Context *context, PyObject *unused) {
    (void)unused;
    return PyObject_CallMethod(context->kernel->helper, "now", NULL);
}

static int context_traverse(Context *context, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)Py_TYPE((PyObject *)context));
    Py_VISIT((PyObject *)context->kernel);
    return 0;
}

static void context_dealloc(Context *context) {
    PyTypeObject *type = Py_TYPE((PyObject *)context);
    PyObject_GC_UnTrack(context);
    Py_XDECREF((PyObject *)context->kernel);
    PyObject_GC_Del(context);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef context_methods[] = {
    {"getEventsForPattern", (PyCFunction)(void (*)(void))context_events,
        METH_FASTCALL | METH_KEYWORDS, "the events taken for a stage"},
    {"timestamp", (PyCFunction)context_timestamp, METH_NOARGS, "the time of the current event"},
    {"currentProcessingTime", (PyCFunction)context_now, METH_NOARGS, "the clock"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot context_slots[] = {
    {Py_tp_doc, "What an iterative condition may read besides the event."},
    {Py_tp_dealloc, AS_SLOT(context_dealloc)},
    {Py_tp_traverse, AS_SLOT(context_traverse)},
    {Py_tp_methods, context_methods},
    {0, NULL},
};

PyType_Spec context_spec = {
    .name = "pyflinkcep.kernel._kernel.Context",
    .basicsize = sizeof(Context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = context_slots,
};

PyObject *context_new(Kernel *kernel, PyTypeObject *type) {
    Context *context = PyObject_GC_New(Context, type);
    if (context == NULL) return NULL;
    context->kernel = (Kernel *)Py_NewRef((PyObject *)kernel);
    PyObject_GC_Track((PyObject *)context);
    return (PyObject *)context;
}
