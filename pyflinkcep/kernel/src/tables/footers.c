/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the footer of a file tells of its row groups. No mirror: without the kernel Arrow reads files.
 *
 * Arrow's own view of damaged footers ends the process: its errors are not told to Python.
 */
#include "tables/footers.h"

#include "tables/thrift.h"

enum { INT32_TYPE = 1, INT64_TYPE = 2 };
enum { ENDS = 6 };

/* The least or the greatest value, if it is a number: how many bytes it has, otherwise 0. */
typedef struct {
    int64_t value;
    uint64_t width;
} End;

/* What is told of a column of a row group. */
typedef struct {
    int64_t type, codec, values, size, data, dictionary, nulls;
    uint64_t encodings; /* each as a bit */
    End ends[ENDS]; /* by field: the greatest and the least, as was told of old, and as it is */
    bool is_there, is_elsewhere; /* the latter in another file, or encrypted */
} Column;

static int64_t number(Source *in, int type) {
    in->failed = in->failed || type < INT_16 || type > INT_64;
    return in->failed ? 0 : whole(in);
}

static void read_end(Source *in, End *own) {
    uint64_t found = 0;
    own->width = varint(in);
    if (in->failed || own->width > (uint64_t)(in->end - in->at)) {
        in->failed = true;
        return;
    }
    for (uint64_t i = 0; i < own->width && i < 8; i++) found |= (uint64_t)in->at[i] << 8 * i;
    own->value = own->width == 4 ? (int32_t)(uint32_t)found : (int64_t)found;
    in->at += own->width;
}

static void read_statistics(Source *in, Column *own) {
    int64_t id = 0;
    int type;
    while ((type = next_field(in, &id)) != STOP)
        if (id == 3)
            own->nulls = number(in, type);
        else if (type == BINARY && (id == 1 || id == 2 || id == 5 || id == 6))
            read_end(in, &own->ends[id - 1]);
        else
            skip(in, type);
}

static void read_encodings(Source *in, Column *own) {
    int type = STOP;
    for (uint64_t count = list_of(in, &type); count > 0 && !in->failed; count--) {
        int64_t encoding = number(in, type);
        own->encodings |= (uint64_t)1 << (encoding < 0 || encoding > 63 ? 63 : encoding);
    }
}

static void read_column(Source *in, Column *own) {
    int64_t id = 0;
    int type;
    while ((type = next_field(in, &id)) != STOP) {
        int64_t *const numbers[] = {&own->type, NULL, NULL, &own->codec, &own->values, NULL,
            &own->size, NULL, &own->data, NULL, &own->dictionary};
        bool is_number = id >= 1 && id <= 11 && numbers[id - 1] != NULL;
        if (is_number)
            *numbers[id - 1] = number(in, type);
        else if (id == 2 && type == LIST)
            read_encodings(in, own);
        else if (id == 12 && type == STRUCT)
            read_statistics(in, own);
        else
            skip(in, type);
    }
}

static void read_chunk(Source *in, Column *own) {
    int64_t id = 0;
    int type;
    *own = (Column){.type = -1, .codec = -1, .nulls = -1, .is_there = true};
    while ((type = next_field(in, &id)) != STOP) {
        own->is_elsewhere = own->is_elsewhere || id == 1 || id == 8;
        if (id == 3 && type == STRUCT)
            read_column(in, own);
        else
            skip(in, type);
    }
}

/* --- as objects of Python */

static bool are_told(const End *most, const End *least, uint64_t width) {
    return most->width == width && least->width == width && least->value <= most->value;
}

/* Return what is told of a column; None if it is not here. */
static PyObject *told(const Column *own) {
    if (own->is_elsewhere) return Py_NewRef(Py_None);
    uint64_t width = own->type == INT32_TYPE ? 4 : 8;
    const End *ends = own->ends[4].width && own->ends[5].width ? own->ends + 4 : own->ends;
    PyObject *whole_ends;
    bool is_whole = own->type == INT32_TYPE || own->type == INT64_TYPE;
    if (is_whole && are_told(&ends[0], &ends[1], width))
        whole_ends = Py_BuildValue("(LL)", (long long)ends[1].value, (long long)ends[0].value);
    else
        whole_ends = Py_NewRef(Py_None);
    if (whole_ends == NULL) return NULL;
    return Py_BuildValue(
        "(LKLLLLLN)", (long long)own->codec, (unsigned long long)own->encodings,
        (long long)own->values, (long long)own->size, (long long)own->data,
        (long long)own->dictionary, (long long)own->nulls, whole_ends);
}

/* The columns that are asked for, by their places. */
typedef struct {
    PyObject *places;
    Column *columns;
    Py_ssize_t count;
} Chosen;

/* Return the column of a place if it is asked for; else NULL. */
static Column *chosen_at(const Chosen *chosen, uint64_t place) {
    for (Py_ssize_t i = 0; i < chosen->count; i++)
        if (PyLong_AsUnsignedLongLong(PyTuple_GetItem(chosen->places, i)) == place)
            return &chosen->columns[i];
    return NULL;
}

static void read_chunks(Source *in, const Chosen *chosen) {
    int type = STOP;
    uint64_t count = list_of(in, &type);
    in->failed = in->failed || type != STRUCT;
    for (uint64_t place = 0; place < count && !in->failed; place++) {
        Column *own = chosen_at(chosen, place);
        if (own == NULL)
            skip(in, type);
        else
            read_chunk(in, own);
    }
}

/* Read a row group; return it, NULL without an error if it is damaged. */
static PyObject *read_group(Source *in, const Chosen *chosen) {
    int64_t id = 0, rows = 0;
    int type;
    for (Py_ssize_t i = 0; i < chosen->count; i++) chosen->columns[i] = (Column){0};
    while ((type = next_field(in, &id)) != STOP)
        if (id == 1 && type == LIST)
            read_chunks(in, chosen);
        else if (id == 3)
            rows = number(in, type);
        else
            skip(in, type);
    for (Py_ssize_t i = 0; i < chosen->count; i++)
        in->failed = in->failed || !chosen->columns[i].is_there;
    if (in->failed) return NULL;
    PyObject *columns = PyTuple_New(chosen->count);
    for (Py_ssize_t i = 0; i < chosen->count && columns != NULL; i++) {
        PyObject *one = told(&chosen->columns[i]);
        if (one == NULL || PyTuple_SetItem(columns, i, one) < 0) Py_CLEAR(columns);
    }
    return columns == NULL ? NULL : Py_BuildValue("(LN)", (long long)rows, columns);
}

static int add_groups(Source *in, const Chosen *chosen, PyObject *groups) {
    int type = STOP;
    uint64_t count = list_of(in, &type);
    in->failed = in->failed || type != STRUCT;
    while (count-- > 0 && !in->failed) {
        PyObject *group = read_group(in, chosen);
        if (group == NULL) return PyErr_Occurred() ? -1 : 0;
        int status = PyList_Append(groups, group);
        Py_DECREF(group);
        if (status < 0) return -1;
    }
    return 0;
}

/* Return the row groups; None if the footer is damaged, or of another form. */
static PyObject *groups_of(Source *in, const Chosen *chosen) {
    PyObject *groups = PyList_New(0);
    int64_t id = 0;
    int type;
    while (groups != NULL && (type = next_field(in, &id)) != STOP)
        if (id == 4 && type == LIST) {
            if (add_groups(in, chosen, groups) < 0) Py_CLEAR(groups);
        } else {
            skip(in, type);
        }
    if (groups == NULL || !in->failed) return groups;
    Py_DECREF(groups);
    return Py_NewRef(Py_None);
}

PyObject *module_row_groups(PyObject *module, PyObject *args) {
    Py_buffer data = {0};
    Chosen chosen = {0};
    PyObject *result = NULL, *footer;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &footer, &PyTuple_Type, &chosen.places)) return NULL;
    if (PyObject_GetBuffer(footer, &data, PyBUF_SIMPLE) < 0) return NULL;
    chosen.count = PyTuple_Size(chosen.places);
    for (Py_ssize_t i = 0; i < chosen.count && !PyErr_Occurred(); i++)
        PyLong_AsUnsignedLongLong(PyTuple_GetItem(chosen.places, i));
    if (!PyErr_Occurred()) chosen.columns = allocate_zeros(chosen.count, sizeof *chosen.columns);
    if (chosen.columns != NULL) {
        const uint8_t *at = data.buf;
        Source in = {at, at + data.len, false};
        result = groups_of(&in, &chosen);
    }
    release_memory(chosen.columns);
    PyBuffer_Release(&data);
    return result;
}
