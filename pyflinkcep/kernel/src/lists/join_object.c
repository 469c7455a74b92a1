/* SPDX-License-Identifier: Apache-2.0 */
/* A join as Python sees it; engines/lists/matching.py makes and uses it. */
#include "base/lock.h"
#include "base/objects.h"
#include "lists/join.h"

static void join_dealloc(Join *join) {
    PyTypeObject *type = Py_TYPE((PyObject *)join);
    for (Py_ssize_t i = 0; i < join->list_count && join->lists != NULL; i++) {
        array_close(&join->lists[i].positions);
        array_close(&join->lists[i].times);
        array_close(&join->lists[i].keys);
    }
    for (Py_ssize_t i = 0; i < 2 * join->column_count && join->column_data != NULL; i++)
        array_close(&join->column_data[i]);
    for (Py_ssize_t i = 0; i < join->step_count && join->steps != NULL; i++) {
        Step *step = &join->steps[i];
        release_memory(step->links);
        array_close(&step->barriers);
        for (Py_ssize_t k = 0; k < step->clause_count; k++) program_free(&step->clauses[k]);
        release_memory(step->clauses);
        release_memory(step->bounds);
    }
    release_memory(join->lists);
    release_memory(join->columns);
    release_memory(join->column_data);
    release_memory(join->steps);
    release_memory(join->levels);
    release_memory(join->bound);
    release_memory(join->row);
    release_memory(join->stack);
    PyObject_Free(join);
    Py_DECREF((PyObject *)type);
}

/* --- reading the arguments */

static int wrong_element(void) {
    PyErr_SetString(PyExc_IndexError, "expected an element");
    return -1;
}

static bool is_element(const Join *join, int32_t element) {
    return element >= 0 && element < join->list_count;
}

static int wrong_sizes(void) {
    PyErr_SetString(PyExc_ValueError, "expected arrays as long as their list");
    return -1;
}

static int read_list(
    List *list, PyObject *positions, PyObject *times, PyObject *keys, int by_time) {
    if (array_of(positions, 8, &list->positions) < 0 || array_of(times, 8, &list->times) < 0 ||
        array_of(keys, 8, &list->keys) < 0)
        return -1;
    list->size = list->positions.size;
    if (list->times.size != list->size ||
        (list->keys.items != NULL && list->keys.size != list->size))
        return wrong_sizes();
    list->order = by_time ? list->times.items : list->positions.items;
    return 0;
}

static int read_lists(Join *join, PyObject *lists, int by_time) {
    Py_ssize_t count = PyTuple_Size(lists);
    join->lists = allocate_zeros(count, sizeof(List));
    join->bound = allocate_zeros(count, sizeof(Py_ssize_t));
    join->row = allocate_zeros(count, sizeof(int64_t));
    if (join->lists == NULL || join->bound == NULL || join->row == NULL) return -1;
    join->list_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *positions, *times, *keys;
        if (!PyArg_ParseTuple(PyTuple_GetItem(lists, i), "OOO", &positions, &times, &keys) ||
            read_list(&join->lists[i], positions, times, keys, by_time) < 0)
            return -1;
    }
    return 0;
}

static int read_columns(Join *join, PyObject *columns) {
    Py_ssize_t count = PyTuple_Size(columns);
    join->columns = allocate_zeros(count, sizeof(Column));
    join->column_data = allocate_zeros(2 * count, sizeof(Array));
    if (join->columns == NULL || join->column_data == NULL) return -1;
    join->column_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *data, *valid;
        Array *items = &join->column_data[2 * i], *mask = items + 1;
        Column *column = &join->columns[i];
        if (!PyArg_ParseTuple(
                PyTuple_GetItem(columns, i), "iOO", &column->element, &data, &valid) ||
            (holds_floats(data) ? floats_of(data, items) : array_of(data, 8, items)) < 0 ||
            array_of(valid, 1, mask) < 0)
            return -1;
        if (!is_element(join, column->element)) return wrong_element();
        Py_ssize_t size = join->lists[column->element].size;
        if (items->size != size || (mask->items != NULL && mask->size != size))
            return wrong_sizes();
        column->items = items->items;
        column->valid = mask->items;
    }
    return 0;
}

/* Refuse a program without a result, or with an operation that many events at once do not have. */
static int check_operations(const Program *program) {
    if (program->size == 0) {
        PyErr_SetString(PyExc_ValueError, "expected a condition in a program");
        return -1;
    }
    for (Py_ssize_t i = 0; i < program->size; i++)
        if (!batch_knows(program->code[i].opcode)) {
            PyErr_SetString(PyExc_ValueError, "expected operations on columns in a program");
            return -1;
        }
    return 0;
}

static int read_clauses(Join *join, Step *step, PyObject *clauses, Py_ssize_t *most) {
    Py_ssize_t count = PyTuple_Size(clauses);
    step->clauses = allocate_zeros(count, sizeof(Program));
    step->bounds = allocate_zeros(count, sizeof(Bound));
    if (step->clauses == NULL || step->bounds == NULL) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Program *program = &step->clauses[step->clause_count++];
        Values read = {0};
        if (program_read(program, PyTuple_GetItem(clauses, i)) < 0 ||
            program_check(program, &read) < 0 || check_operations(program) < 0)
            return -1;
        if (read.fields_read > join->column_count) {
            PyErr_SetString(PyExc_IndexError, "expected a column");
            return -1;
        }
        if (program->size > *most) *most = program->size;
        Bound *bound = &step->bounds[step->bound_count];
        if (!bound_of(
                program, join->columns, step->element, join->lists[step->element].size, bound))
            continue;
        step->bound_count++;
        step->clause_count--;
        program_free(program);
        *program = (Program){0};
    }
    return 0;
}

static int read_step(Join *join, Step *step, PyObject *spec, Py_ssize_t *most) {
    PyObject *barriers, *clauses;
    int is_forward;
    if (!PyArg_ParseTuple(
            spec, "iiipOO!", &step->element, &step->neighbour, &step->far, &is_forward, &barriers,
            &PyTuple_Type, &clauses))
        return -1;
    bool is_first = step == join->steps;
    if (!is_element(join, step->element) || (is_first ? -1 : 0) > step->neighbour ||
        (step->neighbour >= 0 &&
            !(is_element(join, step->neighbour) && is_element(join, step->far))))
        return wrong_element();
    if (array_of(barriers, 8, &step->barriers) < 0 || read_clauses(join, step, clauses, most) < 0)
        return -1;
    step->is_forward = is_forward;
    if (step->neighbour < 0) return 0;
    const List *near = &join->lists[step->neighbour];
    if (step->barriers.items != NULL && step->barriers.size != near->size) return wrong_sizes();
    step->links = allocate_zeros(near->size, sizeof(int64_t));
    if (step->links == NULL) return -1;
    list_link(near, &join->lists[step->element], is_forward, step->links);
    return 0;
}

static int read_steps(Join *join, PyObject *steps) {
    Py_ssize_t count = PyTuple_Size(steps), most = 0;
    join->steps = allocate_zeros(count, sizeof(Step));
    join->levels = allocate_zeros(count, sizeof(Level));
    if (join->steps == NULL || join->levels == NULL) return -1;
    join->step_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_step(join, &join->steps[i], PyTuple_GetItem(steps, i), &most) < 0) return -1;
    join->stack = allocate_zeros(most + 1, sizeof(Operand));
    return join->stack == NULL ? -1 : 0;
}

/* Join(lists, by_time, columns, steps, window) */
static int join_init(Join *join, PyObject *args, PyObject *keywords) {
    PyObject *lists, *columns, *steps;
    long long window;
    int by_time;
    (void)keywords;
    if (join->lists != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a join is made once");
        return -1;
    }
    if (!PyArg_ParseTuple(
            args, "O!pO!O!L", &PyTuple_Type, &lists, &by_time, &PyTuple_Type, &columns,
            &PyTuple_Type, &steps, &window))
        return -1;
    join->window = window;
    if (read_lists(join, lists, by_time) < 0 || read_columns(join, columns) < 0 ||
        read_steps(join, steps) < 0)
        return -1;
    join_begin(join);
    return 0;
}

/* met() -> how many candidates each step has tested */
static PyObject *join_met(Join *join, PyObject *unused) {
    (void)unused;
    int64_t *met = allocate_zeros(join->step_count, sizeof(int64_t));
    if (met == NULL) return NULL;
    for (Py_ssize_t i = 0; i < join->step_count; i++) met[i] = join->levels[i].met;
    PyObject *result = bytes_of(met, join->step_count, sizeof(int64_t));
    release_memory(met);
    return result;
}

/* rows(room): write the next matches, an int64 position for each list, and return how many. */
static PyObject *join_take_rows(Join *join, PyObject *room) {
    Py_buffer rows;
    if (PyObject_GetBuffer(room, &rows, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) return NULL;
    Py_ssize_t width = join->list_count * (Py_ssize_t)sizeof(int64_t);
    lock_leave();
    Py_ssize_t size = width == 0 ? 0 : join_rows(join, rows.buf, rows.len / width);
    lock_take();
    PyBuffer_Release(&rows);
    return size < 0 ? NULL : PyLong_FromSsize_t(size);
}

static PyMethodDef join_methods[] = {
    {"met", (PyCFunction)join_met, METH_NOARGS, "how many candidates were tested"},
    {"rows", (PyCFunction)join_take_rows, METH_O, "write the next matches"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot join_slots[] = {
    {Py_tp_doc, "A join of ordered lists."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(join_init)},
    {Py_tp_dealloc, AS_SLOT(join_dealloc)},
    {Py_tp_methods, join_methods},
    {0, NULL},
};

PyType_Spec join_spec = {
    .name = "pyflinkcep.kernel._kernel.Join",
    .basicsize = sizeof(Join),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = join_slots,
};

PyObject *module_links(PyObject *module, PyObject *args) {
    PyObject *from[3], *to[3], *result = NULL;
    List near = {0}, far = {0};
    int is_forward, by_time;
    (void)module;
    if (!PyArg_ParseTuple(
            args, "(OOO)(OOO)pp", &from[0], &from[1], &from[2], &to[0], &to[1], &to[2], &is_forward,
            &by_time))
        return NULL;
    if (read_list(&near, from[0], from[1], from[2], by_time) == 0 &&
        read_list(&far, to[0], to[1], to[2], by_time) == 0) {
        int64_t *links = allocate_zeros(near.size, sizeof(int64_t));
        if (links != NULL) {
            list_link(&near, &far, is_forward, links);
            result = bytes_of(links, near.size, sizeof(int64_t));
        }
        release_memory(links);
    }
    for (List *list = &near; list != NULL; list = list == &near ? &far : NULL) {
        array_close(&list->positions);
        array_close(&list->times);
        array_close(&list->keys);
    }
    return result;
}
