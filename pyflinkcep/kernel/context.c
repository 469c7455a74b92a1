/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel as the context of iterative conditions: what a partial match has taken, and times. */
#include "kernel.h"

static const Py_ssize_t MOST_KEPT_EVENTS = 1000000;

/* Give a copy of a way: stage to list of events. */
static PyObject *copied(PyObject *path) {
    PyObject *copy = PyDict_New(), *stage, *events;
    Py_ssize_t at = 0;
    while (copy != NULL && PyDict_Next(path, &at, &stage, &events)) {
        PyObject *list = PyList_GetSlice(events, 0, PyList_GET_SIZE(events));
        if (list == NULL || PyDict_SetItem(copy, stage, list) < 0) Py_CLEAR(copy);
        Py_XDECREF(list);
    }
    return copy;
}

static int add_event(Kernel *kernel, PyObject *path, const PathStep *step) {
    PyObject *stage = PyTuple_GET_ITEM(kernel->stage_names, step->stage);
    PyObject *handle = PyLong_FromLongLong(step->entry->handle);
    PyObject *event = handle == NULL ? NULL : PyObject_CallOneArg(kernel->view, handle);
    Py_XDECREF(handle);
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

/* Give the edge that a run came by; raise where there is not just one. */
static Edge *only_edge(Node *node, const Version *version) {
    Py_ssize_t ways;
    Edge *edge = node_edge(node, version, &ways);
    if (ways == 1) return edge;
    PyErr_Format(PyExc_LookupError, "a partial match has %zd ways to an event", ways);
    return NULL;
}

/*
 * Give the way to an edge, as far as possible from the way to one before it: partial matches ask
 * again with every event, and most have moved by one event at most since they last asked.
 */
static PyObject *walked(Kernel *kernel, Node *node, Edge *edge) {
    Path missing = {0};
    PyObject *known = NULL, *path = NULL;
    while (edge != NULL && known == NULL) {
        PyObject *serial = PyLong_FromUnsignedLongLong(edge->serial);
        if (serial == NULL) goto end;
        known = PyDict_GetItemWithError(kernel->paths, serial);
        Py_DECREF(serial);
        if (known != NULL || PyErr_Occurred()) break;
        path_push(&missing, node->stage, node->entry);
        if (edge->target == NULL) break;
        node = edge->target;
        edge = only_edge(node, edge->version);
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
    while (PyDict_Next(path, &at, &stage, &events)) size += PyList_GET_SIZE(events);
    return size;
}

/* Give the way to an edge, with a reference of the caller's own. */
static PyObject *path_to(Kernel *kernel, Node *node, Edge *edge) {
    PyObject *serial = PyLong_FromUnsignedLongLong(edge->serial);
    if (serial == NULL) return NULL;
    PyObject *path = PyDict_GetItemWithError(kernel->paths, serial);
    if (path != NULL) {
        Py_INCREF(path);
    } else if (!PyErr_Occurred()) {
        if (kernel->paths_size > MOST_KEPT_EVENTS) {
            PyDict_Clear(kernel->paths);
            kernel->paths_size = 0;
        }
        path = walked(kernel, node, edge);
        if (path != NULL) {
            kernel->paths_size += events_of(path);
            if (PyDict_SetItem(kernel->paths, serial, path) < 0) Py_CLEAR(path);
        }
    }
    Py_DECREF(serial);
    return path;
}

/* getEventsForPattern(stage): the events that the partial match took for a stage, oldest first. */
PyObject *context_events(Kernel *kernel, PyObject *stage) {
    if (stage == Py_None) return PyObject_CallMethod(kernel->helper, "no_stage", NULL);
    if (kernel->asked_node == NULL) return PyList_New(0);
    Edge *edge = only_edge(kernel->asked_node, kernel->asked_version);
    PyObject *path = edge == NULL ? NULL : path_to(kernel, kernel->asked_node, edge);
    if (path == NULL) return NULL;
    PyObject *events = PyDict_GetItemWithError(path, stage), *result = NULL;
    if (events != NULL)
        result = PyList_GetSlice(events, 0, PyList_GET_SIZE(events));
    else if (!PyErr_Occurred())
        result = PyList_New(0);
    Py_DECREF(path);
    return result;
}

PyObject *context_timestamp(Kernel *kernel, PyObject *unused) {
    (void)unused;
    return PyLong_FromLongLong(kernel->timestamp);
}

PyObject *context_now(Kernel *kernel, PyObject *unused) {
    (void)unused;
    return PyObject_CallMethod(kernel->helper, "now", NULL);
}
