/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of matches by last event, for Python. No mirror in Python. */
#include "compressed/merged.h"

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

static int append_total(PyObject *list, const Total *total) {
    PyObject *number = total_as_int(total);
    int status = number == NULL ? -1 : PyList_Append(list, number);
    Py_XDECREF(number);
    return status;
}

int counted_open(Counted *counted, bool by_event, bool weighs) {
    *counted = (Counted){0};
    if (by_event && (counted->counts = PyList_New(0)) == NULL) return -1;
    if (weighs && (counted->weights = PyList_New(0)) == NULL) return -1;
    return 0;
}

int counted_add(Counted *counted, int64_t place, const Ended *ended) {
    if (total_is_zero(&ended->count)) return 0;
    if (counted->counts == NULL) return total_add(&counted->sum, &ended->count);
    int64_t *places = reserve(counted->places, &counted->room, counted->size + 1, sizeof(int64_t));
    if (places == NULL) return -1;
    counted->places = places;
    places[counted->size++] = place;
    if (append_total(counted->counts, &ended->count) < 0) return -1;
    return counted->weights == NULL ? 0 : append_total(counted->weights, &ended->weight);
}

PyObject *counted_result(const Counted *counted) {
    if (PyErr_Occurred()) return NULL; /* in a condition */
    if (counted->counts == NULL) return total_as_int(&counted->sum);
    Py_ssize_t size = counted->size * (Py_ssize_t)sizeof(int64_t);
    const char *places = size ? (const char *)counted->places : "";
    return Py_BuildValue(
        "y#OO", places, size, counted->counts,
        counted->weights == NULL ? Py_None : counted->weights);
}

void counted_close(Counted *counted) {
    Py_CLEAR(counted->counts);
    Py_CLEAR(counted->weights);
    release_memory(counted->places);
    total_free(&counted->sum);
}
