/* SPDX-License-Identifier: Apache-2.0 */
/* Rules as Python sees them; engines/latest/columns.py makes and uses them. No mirror in Python. */
#include "base/objects.h"
#include "latest/latest.h"

static void latest_dealloc(Latest *latest) {
    PyTypeObject *type = Py_TYPE((PyObject *)latest);
    for (Py_ssize_t i = 0; i < latest->rule_count; i++) rule_free(&latest->rules[i]);
    release_memory(latest->rules);
    release_memory(latest->nodes);
    release_memory(latest->found.rules);
    release_memory(latest->found.keys);
    release_memory(latest->found.handles);
    release_memory(latest->found.ends);
    release_memory(latest->told);
    release_memory(latest->told_handles);
    PyObject_Free(latest);
    Py_DECREF((PyObject *)type);
}

/* Read (maxspan or -1, ((role, rank), ...)). */
static int read_rule(LatestRule *rule, PyObject *spec) {
    PyObject *steps;
    long long maxspan;
    if (!PyArg_ParseTuple(spec, "LO!", &maxspan, &PyTuple_Type, &steps)) return -1;
    rule->maxspan = maxspan < 0 ? UINT64_MAX : (uint64_t)maxspan;
    rule->free_waiting = NONE;
    rule->steps = allocate_zeros(PyTuple_Size(steps), sizeof(LatestStep));
    if (rule->steps == NULL) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(steps); i++) {
        int role, rank;
        if (!PyArg_ParseTuple(PyTuple_GetItem(steps, i), "ii", &role, &rank)) return -1;
        rule->steps[i] = (LatestStep){(Role)role, rank};
        rule->size += role == ROLE_TAKES;
        rule->leads |= role == ROLE_LEADING;
        rule->trails |= role == ROLE_TRAILING;
        rule->has_missing |= role != ROLE_TAKES && role != ROLE_UNTIL;
        rule->step_count++;
    }
    if (rule->size > 0) return 0;
    PyErr_SetString(PyExc_ValueError, "expected a step that takes an event");
    return -1;
}

/* Latest(((maxspan, ((role, rank), ...)), ...)) */
static int latest_init(Latest *latest, PyObject *args, PyObject *keywords) {
    PyObject *rules;
    (void)keywords;
    if (latest->rules != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "rules are made once");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &rules)) return -1;
    Py_ssize_t count = PyTuple_Size(rules);
    latest->free_node = NONE;
    latest->rules = allocate_zeros(count, sizeof(LatestRule));
    if (latest->rules == NULL) return -1;
    latest->rule_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        latest->rules[i].code = (int32_t)latest->code_count;
        if (read_rule(&latest->rules[i], PyTuple_GetItem(rules, i)) < 0) return -1;
        latest->code_count += latest->rules[i].step_count;
    }
    return 0;
}

static void clear_all(Latest *latest) {
    for (Py_ssize_t i = 0; i < latest->rule_count; i++) rule_clear(latest, &latest->rules[i]);
    latest->told_count = latest->told_handle_count = 0;
    latest->found.size = latest->found.handle_count = 0;
}

/* Take the matches: rules, keys, handles, ends; after an error what is kept is dropped. */
static PyObject *taken(Latest *latest, int status) {
    LatestFound *found = &latest->found;
    PyObject *result = NULL;
    if (status == 0)
        result = Py_BuildValue(
            "NNNN", bytes_of(found->rules, found->size, 4), bytes_of(found->keys, found->size, 8),
            bytes_of(found->handles, found->handle_count, 8),
            bytes_of(found->ends, found->size, 8));
    if (result == NULL) clear_all(latest);
    found->size = found->handle_count = 0;
    return result;
}

static int enter(Latest *latest) {
    if (latest->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread uses these rules");
        return -1;
    }
    latest->is_busy = true;
    return 0;
}

/* process(times, events, steps, keys, first, is_last) -> matches; None if a step's events are not in order */
static PyObject *latest_call_process(Latest *latest, PyObject *args) {
    PyObject *given[4], *result = NULL;
    static const Py_ssize_t widths[4] = {8, 4, 4, 8};
    Array arrays[4] = {0};
    long long first;
    int is_last, opened = 0;
    if (!PyArg_ParseTuple(
            args, "OOOOLp", &given[0], &given[1], &given[2], &given[3], &first, &is_last))
        return NULL;
    while (opened < 4 && array_of(given[opened], widths[opened], &arrays[opened]) == 0) opened++;
    if (opened == 4 && (arrays[1].size != arrays[2].size || arrays[1].size != arrays[3].size))
        PyErr_SetString(PyExc_ValueError, "expected an event, a step and a key for each offer");
    else if (opened == 4 && enter(latest) == 0) {
        int status =
            latest_process(latest, &arrays[0], &arrays[1], &arrays[2], &arrays[3], first, is_last);
        latest->is_busy = false;
        result = status > 0 ? Py_NewRef(Py_None) : taken(latest, status);
    }
    while (opened > 0) array_close(&arrays[--opened]);
    return result;
}

/* advance(time) -> the matches decided by that no event up to `time` will come */
static PyObject *latest_call_advance(Latest *latest, PyObject *args) {
    long long time;
    if (!PyArg_ParseTuple(args, "L", &time) || enter(latest) < 0) return NULL;
    int status = 0;
    for (int32_t i = 0; i < latest->rule_count && status == 0; i++) {
        LatestRule *rule = &latest->rules[i];
        if (rule->waiting_count == 0) continue;
        status = rule_advance(latest, rule, time, true);
        if (status == 0) status = rule_tell(latest, i);
    }
    latest->is_busy = false;
    return taken(latest, status);
}

/* prune(time): drop what is garbage if no event up to `time` will come. */
static PyObject *latest_call_prune(Latest *latest, PyObject *args) {
    long long time;
    if (!PyArg_ParseTuple(args, "L", &time) || enter(latest) < 0) return NULL;
    for (Py_ssize_t i = 0; i < latest->rule_count; i++) rule_prune(latest, &latest->rules[i], time);
    latest->is_busy = false;
    Py_RETURN_NONE;
}

/* clear(): drop the state of all keys. */
static PyObject *latest_call_clear(Latest *latest, PyObject *unused) {
    (void)unused;
    if (enter(latest) < 0) return NULL;
    clear_all(latest);
    latest->is_busy = false;
    Py_RETURN_NONE;
}

/* written() -> rules, keys, numbers, their ends, handles, their ends; all int64 */
static PyObject *latest_call_written(Latest *latest, PyObject *unused) {
    (void)unused;
    if (enter(latest) < 0) return NULL;
    PyObject *result = latest_written(latest);
    latest->is_busy = false;
    return result;
}

/* read(rules, keys, numbers, number_ends, handles, handle_ends, times) */
static PyObject *latest_call_read(Latest *latest, PyObject *args) {
    PyObject *given[7];
    Array arrays[7] = {0};
    int opened = 0, status = -1;
    if (!PyArg_ParseTuple(
            args, "OOOOOOO", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5],
            &given[6]))
        return NULL;
    while (opened < 7 && array_of(given[opened], 8, &arrays[opened]) == 0) opened++;
    if (opened == 7 && enter(latest) == 0) {
        status = latest_read(latest, arrays);
        if (status < 0) clear_all(latest);
        latest->is_busy = false;
    }
    while (opened > 0) array_close(&arrays[--opened]);
    if (status < 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef latest_methods[] = {
    {"process", (PyCFunction)latest_call_process, METH_VARARGS, "offer events to rules"},
    {"advance", (PyCFunction)latest_call_advance, METH_VARARGS, "advance time"},
    {"prune", (PyCFunction)latest_call_prune, METH_VARARGS, "drop what is garbage"},
    {"clear", (PyCFunction)latest_call_clear, METH_NOARGS, "drop all state"},
    {"written", (PyCFunction)latest_call_written, METH_NOARGS, "return the state of keys"},
    {"read", (PyCFunction)latest_call_read, METH_VARARGS, "go on from the state of keys"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot latest_slots[] = {
    {Py_tp_doc, "Rules of which the latest run at each step lives."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(latest_init)},
    {Py_tp_dealloc, AS_SLOT(latest_dealloc)},
    {Py_tp_methods, latest_methods},
    {0, NULL},
};

PyType_Spec latest_spec = {
    .name = "pyflinkcep.kernel._kernel.Latest",
    .basicsize = sizeof(Latest),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = latest_slots,
};
