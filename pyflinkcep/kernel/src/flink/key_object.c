/* SPDX-License-Identifier: Apache-2.0 */
/* A key as Python holds it. Mirror: KeyState in engines/flink/operator.py. */
#include "flink/kernel.h"

KeyObject *key_object_new(const Kernel *kernel) {
    KeyObject *object = PyObject_New(KeyObject, kernel->key_type);
    if (object != NULL) object->key = (Key){0};
    return object;
}

static void key_object_dealloc(KeyObject *object) {
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    key_clear(&object->key);
    PyObject_Free(object);
    Py_DECREF((PyObject *)type);
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
    {"partial_count", (getter)key_partial_count, NULL, "partial matches, including the start",
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

static PyType_Slot key_slots[] = {
    {Py_tp_doc, "The state of one key."},
    {Py_tp_dealloc, AS_SLOT(key_object_dealloc)},
    {Py_tp_getset, key_properties},
    {Py_tp_methods, key_methods},
    {0, NULL},
};

PyType_Spec key_spec = {
    .name = "pyflinkcep.kernel._kernel.Key",
    .basicsize = sizeof(KeyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = key_slots,
};
