/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of events that programs read, as passed from Python. No mirror in Python. */
#include "base/fields.h"

void fields_close(Values *values, Fields *fields) {
    for (Py_ssize_t i = 0; i < values->fields; i++) {
        Py_CLEAR(values->columns[i].texts);
        array_close(&fields->data[i]);
        array_close(&fields->valid[i]);
    }
    release_memory(fields->data);
    release_memory(fields->valid);
    release_memory(values->columns);
    *fields = (Fields){0};
    values->columns = NULL;
    values->fields = 0;
}

static int read_field(Values *values, Fields *fields, Py_ssize_t number, PyObject *field) {
    PyObject *data, *valid;
    int is_float;
    Array *items = &fields->data[number], *mask = &fields->valid[number];
    if (!PyArg_ParseTuple(field, "OOp", &data, &valid, &is_float)) return -1;
    if (PyList_Check(data)) {
        values->columns[number].texts = Py_NewRef(data);
        return 0;
    }
    if ((is_float ? floats_of(data, items) : array_of(data, 8, items)) < 0 ||
        array_of(valid, 1, mask) < 0)
        return -1;
    if (items->size != values->rows || (mask->items != NULL && mask->size != items->size)) {
        PyErr_SetString(PyExc_ValueError, "expected fields as long as there are events");
        return -1;
    }
    values->columns[number] = (Field){items->items, mask->items, NULL, is_float};
    return 0;
}

int fields_read(Values *values, Fields *fields, PyObject *given) {
    Py_ssize_t count = PyTuple_Size(given);
    if (values->rows > 0 && count < values->fields_read) {
        PyErr_Format(PyExc_ValueError, "expected %zd fields, got %zd", values->fields_read, count);
        return -1;
    }
    values->columns = allocate_zeros(count, sizeof(Field));
    fields->data = allocate_zeros(count, sizeof(Array));
    fields->valid = allocate_zeros(count, sizeof(Array));
    if (values->columns == NULL || fields->data == NULL || fields->valid == NULL) return -1;
    values->fields = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_field(values, fields, i, PyTuple_GetItem(given, i)) < 0) return -1;
    return 0;
}
