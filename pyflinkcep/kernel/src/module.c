/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel as Python sees it; spark/kernel_matcher.py is its user. */
#include "kernel.h"

#include <stddef.h>
#include <structmember.h>

/* --- Key */

KeyObject *key_object_new(void) {
    KeyObject *object = PyObject_New(KeyObject, &KeyType);
    if (object != NULL) object->key = (Key){0};
    return object;
}

static void key_object_dealloc(KeyObject *object) {
    key_clear(&object->key);
    PyObject_Free(object);
}

static PyObject *key_partial_count(KeyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromSsize_t(object->key.partials.size);
}

static PyObject *key_live_handles(KeyObject *object, PyObject *unused) {
    (void)unused;
    PyObject *list = PyList_New(0);
    for (Entry *entry = object->key.buffer.first; entry != NULL && list != NULL;
         entry = entry->after) {
        PyObject *handle = PyLong_FromLongLong(entry->handle);
        if (handle == NULL || PyList_Append(list, handle) < 0) Py_CLEAR(list);
        Py_XDECREF(handle);
    }
    return list;
}

static PyObject *key_node_count(KeyObject *object, void *unused) {
    (void)unused;
    Py_ssize_t count = 0;
    for (Entry *entry = object->key.buffer.first; entry != NULL; entry = entry->after)
        for (Node *node = entry->first_node; node != NULL; node = node->next_of_entry)
            count += node->alive;
    return PyLong_FromSsize_t(count);
}

static PyObject *key_get_is_new(KeyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(object->key.is_new_start);
}

static int key_set_is_new(KeyObject *object, PyObject *value, void *unused) {
    (void)unused;
    object->key.is_new_start = value == Py_True;
    return 0;
}

static PyGetSetDef key_properties[] = {
    {"partial_count", (getter)key_partial_count, NULL, "partial matches, the start among them",
     NULL},
    {"is_new_start", (getter)key_get_is_new, (setter)key_set_is_new,
     "whether a partial match began since time last passed", NULL},
    {"node_count", (getter)key_node_count, NULL, "nodes of the buffer", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef key_methods[] = {
    {"live_handles", (PyCFunction)key_live_handles, METH_NOARGS, "the events held"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject KeyType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyflinkcep.kernel._kernel.Key",
    .tp_basicsize = sizeof(KeyObject),
    .tp_dealloc = (destructor)key_object_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What is kept of one key.",
    .tp_getset = key_properties,
    .tp_methods = key_methods,
};

/* --- Kernel */

static PyMemberDef kernel_members[] = {
    {"helper", T_OBJECT_EX, offsetof(Kernel, helper), READONLY, "kernel/helper.py's"},
    {NULL, 0, 0, 0, NULL},
};

static int kernel_traverse(Kernel *kernel, visitproc visit, void *arg) {
    Py_VISIT(kernel->helper);
    Py_VISIT(kernel->view);
    Py_VISIT(kernel->row);
    Py_VISIT(kernel->paths);
    Py_VISIT(kernel->context);
    return kernel_visit_tables(kernel, visit, arg);
}

static int kernel_clear(Kernel *kernel) {
    Py_CLEAR(kernel->helper);
    Py_CLEAR(kernel->view);
    Py_CLEAR(kernel->row);
    Py_CLEAR(kernel->paths);
    Py_CLEAR(kernel->stage_names);
    Py_CLEAR(kernel->context);
    kernel_clear_functions(kernel);
    return 0;
}

static void found_free(Found *found) {
    release_memory(found->kinds);
    release_memory(found->times);
    release_memory(found->ends);
    release_memory(found->stages);
    release_memory(found->handles);
}

static void fields_close(Kernel *kernel) {
    for (Py_ssize_t i = 0; i < kernel->values.fields; i++) {
        array_close(&kernel->field_data[i]);
        array_close(&kernel->field_valid[i]);
    }
    release_memory(kernel->field_data);
    release_memory(kernel->field_valid);
    release_memory(kernel->values.columns);
    kernel->field_data = kernel->field_valid = NULL;
    kernel->values.columns = NULL;
    kernel->values.fields = 0;
}

static void kernel_dealloc(Kernel *kernel) {
    PyObject_GC_UnTrack(kernel);
    kernel_clear(kernel);
    fields_close(kernel);
    kernel_free_tables(kernel);
    found_free(&kernel->found);
    found_free(&kernel->late);
    release_memory(kernel->matches.items);
    found_free(&kernel->matches.found);
    release_memory(kernel->steps);
    release_memory(kernel->following.items);
    release_memory(kernel->done.items);
    release_memory(kernel->path.steps);
    Py_TYPE(kernel)->tp_free((PyObject *)kernel);
}

static int kernel_init(Kernel *kernel, PyObject *args, PyObject *keywords) {
    static char *names[] = {"helper",          "states",      "atoms",       "slots",
                            "stage_names",     "start",       "final",       "window_time",
                            "handle_timeout",  "processing_time", "skip",    "known",
                            "limit",           "drop_oldest", "sets_timers", "ansi",
                            NULL};
    PyObject *helper, *states, *atoms, *slots, *stages;
    unsigned long long known;
    long long window_time, limit;
    int handle_timeout, processing_time, skip_throws, drop_oldest, sets_timers, ansi;
    if (kernel->helper != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a kernel is made once");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "OO!O!O!O!iiLpp(iip)KLppp", names, &helper, &PyTuple_Type, &states,
            &PyTuple_Type, &atoms, &PyTuple_Type, &slots, &PyTuple_Type, &stages, &kernel->start,
            &kernel->final, &window_time, &handle_timeout, &processing_time, &kernel->skip_kind,
            &kernel->skip_stage, &skip_throws, &known, &limit, &drop_oldest, &sets_timers, &ansi))
        return -1;
    kernel->helper = Py_NewRef(helper);
    kernel->stage_names = Py_NewRef(stages);
    kernel->paths = PyDict_New();
    kernel->context = context_new(kernel);
    if (kernel->paths == NULL || kernel->context == NULL) return -1;
    kernel->window_time = window_time;
    kernel->handle_timeout = handle_timeout;
    kernel->processing_time = processing_time;
    kernel->skip_throws = skip_throws;
    kernel->always_known = known;
    kernel->limit = limit;
    kernel->drop_oldest = drop_oldest;
    kernel->sets_timers = sets_timers;
    kernel->values.ansi = ansi;
    if (kernel_read_states(kernel, states) < 0 || kernel_read_atoms(kernel, atoms) < 0 ||
        kernel_read_slots(kernel, slots) < 0)
        return -1;
    return 0;
}

/* set_events(view, base, rows, fields): what handles mean from now on. */
static PyObject *kernel_set_events(Kernel *kernel, PyObject *args) {
    PyObject *view, *fields;
    long long base, rows;
    if (!PyArg_ParseTuple(args, "OLLO!", &view, &base, &rows, &PyTuple_Type, &fields)) return NULL;
    Py_XSETREF(kernel->view, Py_NewRef(view));
    Py_CLEAR(kernel->row);
    context_forget(kernel);
    fields_close(kernel);
    Py_ssize_t count = PyTuple_GET_SIZE(fields);
    kernel->values.columns = must_alloc((size_t)(count + 1) * sizeof(Field));
    kernel->field_data = must_alloc((size_t)(count + 1) * sizeof(Array));
    kernel->field_valid = must_alloc((size_t)(count + 1) * sizeof(Array));
    kernel->values.base = base;
    kernel->values.rows = rows;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *data, *valid;
        int is_float;
        Array *items = &kernel->field_data[i], *mask = &kernel->field_valid[i];
        *items = *mask = (Array){0};
        kernel->values.fields = i + 1;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fields, i), "OOp", &data, &valid, &is_float) ||
            array_of(data, 8, items) < 0 || array_of(valid, 1, mask) < 0)
            return NULL;
        if (items->size != rows || (mask->items != NULL && mask->size != rows)) {
            PyErr_SetString(PyExc_ValueError, "a field of another length than the events");
            return NULL;
        }
        kernel->values.columns[i] = (Field){items->items, mask->items, is_float};
    }
    Py_RETURN_NONE;
}

static PyObject *kernel_new_key(Kernel *kernel, PyObject *unused) {
    (void)unused;
    KeyObject *object = key_object_new();
    if (object != NULL) key_begin(kernel, &object->key);
    return (PyObject *)object;
}

static PyObject *kernel_advance(Kernel *kernel, PyObject *args) {
    KeyObject *object;
    long long timestamp;
    if (!PyArg_ParseTuple(args, "O!L", &KeyType, &object, &timestamp)) return NULL;
    int status = key_advance_watermark(kernel, &object->key, timestamp);
    context_forget(kernel);
    if (status < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *kernel_write(Kernel *kernel, PyObject *args) {
    (void)kernel;
    KeyObject *object;
    Numbers numbers = {0}, handles = {0};
    if (!PyArg_ParseTuple(args, "O!", &KeyType, &object)) return NULL;
    key_write(&object->key, &numbers, &handles);
    PyObject *result =
        Py_BuildValue("NN", bytes_of(numbers.items, numbers.size, sizeof(int64_t)),
                      bytes_of(handles.items, handles.size, sizeof(int64_t)));
    release_memory(numbers.items);
    release_memory(handles.items);
    return result;
}

/* take_found() -> (kinds, times, ends, stages, handles, dropped): the results so far, as bytes. */
static PyObject *kernel_take_found(Kernel *kernel, PyObject *unused) {
    (void)unused;
    Found *found = &kernel->found;
    PyObject *result = Py_BuildValue(
        "NNNNNL", bytes_of(found->kinds, found->size, 1), bytes_of(found->times, found->size, 8),
        bytes_of(found->ends, found->size, 8), bytes_of(found->stages, found->events, 4),
        bytes_of(found->handles, found->events, 8), (long long)found->dropped);
    found->size = found->events = 0;
    found->dropped = 0;
    return result;
}

static PyObject *kernel_failed(Kernel *kernel, void *unused) {
    (void)unused;
    return PyLong_FromSsize_t(kernel->failed);
}

/* read(numbers, first_handle, handle_count) -> Key */
static PyObject *kernel_read(Kernel *kernel, PyObject *args) {
    PyObject *object;
    long long first_handle, handle_count;
    Array numbers;
    if (!PyArg_ParseTuple(args, "OLL", &object, &first_handle, &handle_count)) return NULL;
    if (array_of(object, 8, &numbers) < 0) return NULL;
    KeyObject *key = key_object_new();
    if (key != NULL && key_read(kernel, &key->key, numbers.items, numbers.size, first_handle,
                                handle_count) < 0) {
        PyErr_SetString(PyExc_ValueError, "numbers that are no state");
        Py_CLEAR(key);
    }
    array_close(&numbers);
    return (PyObject *)key;
}

static PyGetSetDef kernel_properties[] = {
    {"failed", (getter)kernel_failed, NULL, "the stretch or item that an error came from", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef kernel_methods[] = {
    {"set_events", (PyCFunction)kernel_set_events, METH_VARARGS, "set what handles mean"},
    {"new_key", (PyCFunction)kernel_new_key, METH_NOARGS, "make a key that has seen nothing"},
    {"run", (PyCFunction)kernel_run, METH_VARARGS, "match stretches of events"},
    {"run_page", (PyCFunction)kernel_run_page, METH_VARARGS, "match the keys of a page"},
    {"advance", (PyCFunction)kernel_advance, METH_VARARGS, "let time pass for a key"},
    {"write", (PyCFunction)kernel_write, METH_VARARGS, "give a key's state"},
    {"read", (PyCFunction)kernel_read, METH_VARARGS, "make a key of its state"},
    {"take_found", (PyCFunction)kernel_take_found, METH_NOARGS, "take the results so far"},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject KernelType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyflinkcep.kernel._kernel.Kernel",
    .tp_basicsize = sizeof(Kernel),
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)kernel_init,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_clear = (inquiry)kernel_clear,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A pattern, ready to run.",
    .tp_getset = kernel_properties,
    .tp_members = kernel_members,
    .tp_methods = kernel_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernel", .m_doc = "The compiled matching core.",
    .m_size = -1};

PyMODINIT_FUNC PyInit__kernel(void) {
    if (PyType_Ready(&KernelType) < 0 || PyType_Ready(&KeyType) < 0 ||
        PyType_Ready(&ContextType) < 0)
        return NULL;
    PyObject *object = PyModule_Create(&module);
    if (object == NULL) return NULL;
    if (PyModule_AddObjectRef(object, "Kernel", (PyObject *)&KernelType) < 0 ||
        PyModule_AddObjectRef(object, "Key", (PyObject *)&KeyType) < 0)
        Py_CLEAR(object);
    return object;
}
