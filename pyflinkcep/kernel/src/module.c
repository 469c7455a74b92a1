/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel as Python sees it; bridge.py makes it, matching/matcher.py uses it. */
#include "base/literals.h"
#include "compressed/pattern_runs.h"
#include "flink/kernel.h"
#include "latest/latest.h"
#include "lists/join.h"
#include "rows/search.h"
#include "sequences/backtracking.h"
#include "sequences/counter.h"
#include "sequences/lister.h"
#include "tables/grouping.h"
#include "tables/footers.h"
#include "tables/needs.h"
#include "tables/pages.h"

#include <stddef.h>
#include <structmember.h>

/* KERNEL_SOURCES comes from setup.py: a word, for quotes are not the same to all shells. */
#define QUOTED(word) #word
#define TEXT_OF(word) QUOTED(word)

typedef struct {
    PyTypeObject *kernel, *key, *context;
} Types;

/* --- Kernel */

static PyMemberDef kernel_members[] = {
    {"helper", T_OBJECT_EX, offsetof(Kernel, helper), READONLY, "the KernelHelper"},
    {NULL, 0, 0, 0, NULL},
};

static int kernel_traverse(Kernel *kernel, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)Py_TYPE((PyObject *)kernel));
    Py_VISIT(kernel->helper);
    Py_VISIT(kernel->view);
    Py_VISIT(kernel->asked.row);
    Py_VISIT(kernel->seen.paths);
    Py_VISIT(kernel->context);
    return pattern_visit(&kernel->pattern, visit, arg);
}

static int kernel_clear(Kernel *kernel) {
    Py_CLEAR(kernel->helper);
    Py_CLEAR(kernel->view);
    Py_CLEAR(kernel->asked.row);
    Py_CLEAR(kernel->seen.paths);
    Py_CLEAR(kernel->context);
    pattern_clear_functions(&kernel->pattern);
    return 0;
}

static void workspace_free(Workspace *work) {
    release_memory(work->by_state);
    release_memory(work->stamps);
    release_memory(work->stage_stamps);
    release_memory(work->steps);
    release_memory(work->following.items);
    release_memory(work->done.items);
    release_memory(work->path.steps);
}

static void kernel_dealloc(Kernel *kernel) {
    PyTypeObject *type = Py_TYPE((PyObject *)kernel);
    PyObject_GC_UnTrack(kernel);
    kernel_clear(kernel);
    fields_close(&kernel->values, &kernel->fields);
    pattern_free(&kernel->pattern);
    release_memory(kernel->values.slots);
    found_free(&kernel->found);
    found_free(&kernel->late);
    matches_free(&kernel->matches);
    workspace_free(&kernel->work);
    evaluation_free(&kernel->asked);
    unbranched_free(&kernel->unbranched);
    own_ways_free(&kernel->own_ways);
    PyObject_GC_Del(kernel);
    Py_DECREF((PyObject *)type);
}

static int workspace_make(Workspace *work, const Pattern *pattern) {
    work->by_state = allocate_zeros(pattern->state_count, sizeof(Decision *));
    if (work->by_state != NULL) work->stamps = allocate_zeros(pattern->state_count, sizeof(bool));
    if (work->stamps != NULL)
        work->stage_stamps = allocate_zeros(pattern->stage_count, sizeof(bool));
    return work->stage_stamps == NULL ? -1 : 0;
}

typedef struct {
    PyObject *helper, *states, *atoms, *slots, *stages, *known, *queues, *actions;
    long long window_time, limit;
    int handle_timeout, processing_time, skip_throws, drop_oldest, sets_timers, ansi, reached,
        by_windows, known_bits;
} Arguments;

static int kernel_read_arguments(Kernel *kernel, const Arguments *given) {
    Types *types = PyType_GetModuleState(Py_TYPE((PyObject *)kernel));
    if (types == NULL) return -1;
    kernel->key_type = types->key;
    kernel->helper = Py_NewRef(given->helper);
    kernel->pattern.stage_names = Py_NewRef(given->stages);
    kernel->seen.paths = PyDict_New();
    kernel->context = context_new(kernel, types->context);
    if (kernel->seen.paths == NULL || kernel->context == NULL) return -1;
    kernel->pattern.window_time = given->window_time;
    kernel->pattern.handle_timeout = given->handle_timeout;
    kernel->pattern.skip_throws = given->skip_throws;
    kernel->processing_time = given->processing_time;
    kernel->limit = given->limit;
    kernel->drop_oldest = given->drop_oldest;
    kernel->sets_timers = given->sets_timers;
    kernel->gives_reached = given->reached;
    kernel->by_windows = given->by_windows;
    kernel->values.ansi = given->ansi;
    if (evaluation_make(&kernel->asked, given->known) < 0 ||
        pattern_read_states(&kernel->pattern, given->states) < 0 ||
        pattern_read_atoms(&kernel->pattern, given->atoms) < 0 ||
        unbranched_read(&kernel->unbranched, given->queues, given->actions) < 0 ||
        own_ways_open(&kernel->own_ways, &kernel->pattern, given->known_bits) < 0 ||
        values_read_slots(&kernel->values, given->slots) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < kernel->pattern.atom_count; i++)
        if (program_check(&kernel->pattern.atoms[i].program, &kernel->values) < 0) return -1;
    return workspace_make(&kernel->work, &kernel->pattern);
}

static int kernel_init(Kernel *kernel, PyObject *args, PyObject *keywords) {
    static char *names[] = {"helper", "states", "atoms", "slots", "stage_names", "start", "final",
        "window_time", "handle_timeout", "processing_time", "skip", "known", "limit", "drop_oldest",
        "sets_timers", "ansi", "gives_reached", "by_windows", "unbranched", "own_ways",
        NULL};
    Pattern *pattern = &kernel->pattern;
    Arguments given;
    if (kernel->helper != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the kernel is already set up");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "OO!O!O!O!iiLpp(iip)O!Lppppp(O!S)i", names, &given.helper, &PyTuple_Type,
            &given.states, &PyTuple_Type, &given.atoms, &PyTuple_Type, &given.slots, &PyTuple_Type,
            &given.stages, &pattern->start, &pattern->final, &given.window_time,
            &given.handle_timeout, &given.processing_time, &pattern->skip_kind,
            &pattern->skip_stage, &given.skip_throws, &PyTuple_Type, &given.known, &given.limit,
            &given.drop_oldest, &given.sets_timers, &given.ansi, &given.reached, &given.by_windows,
            &PyTuple_Type, &given.queues, &given.actions, &given.known_bits))
        return -1;
    int status = kernel_read_arguments(kernel, &given);
    if (status < 0) name_memory_error(kernel, 0);
    return status;
}

/* set_events(view, base, rows, fields): the events that handles refer to from now on. */
static PyObject *kernel_set_events(Kernel *kernel, PyObject *args) {
    PyObject *view, *fields, *before = kernel->view;
    long long base, rows;
    if (!PyArg_ParseTuple(args, "OLLO!", &view, &base, &rows, &PyTuple_Type, &fields)) return NULL;
    kernel->view = Py_NewRef(view);
    Py_XDECREF(before);
    Py_CLEAR(kernel->asked.row);
    context_forget(kernel);
    fields_close(&kernel->values, &kernel->fields);
    kernel->values.base = base;
    kernel->values.rows = rows;
    if (fields_read(&kernel->values, &kernel->fields, fields) < 0) {
        name_memory_error(kernel, 0);
        fields_close(&kernel->values, &kernel->fields);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *kernel_new_key(Kernel *kernel, PyObject *unused) {
    (void)unused;
    KeyObject *object = key_object_new(kernel);
    if (object != NULL && key_begin(&object->key, kernel->pattern.start) < 0) Py_CLEAR(object);
    if (object == NULL) name_memory_error(kernel, 0);
    return (PyObject *)object;
}

static PyObject *kernel_advance(Kernel *kernel, PyObject *args) {
    KeyObject *object;
    long long timestamp;
    if (!PyArg_ParseTuple(args, "O!L", kernel->key_type, &object, &timestamp) ||
        key_check_usable(&object->key) < 0)
        return NULL;
    int status = key_advance_watermark(kernel, &object->key, timestamp);
    context_forget(kernel);
    if (status < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *kernel_write(Kernel *kernel, PyObject *args) {
    KeyObject *object;
    Numbers numbers = {0}, handles = {0};
    if (!PyArg_ParseTuple(args, "O!", kernel->key_type, &object) ||
        key_check_usable(&object->key) < 0)
        return NULL;
    PyObject *result = NULL;
    if (key_write(&object->key, &numbers, &handles) == 0)
        result = Py_BuildValue(
            "NN", bytes_of(numbers.items, numbers.size, sizeof(int64_t)),
            bytes_of(handles.items, handles.size, sizeof(int64_t)));
    if (result == NULL) name_memory_error(kernel, 0);
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
    found_empty(found);
    return result;
}

/* take_rows(rows, begin) -> the same, by kind and by rows: see found_kept. */
static PyObject *kernel_take_rows(Kernel *kernel, PyObject *args) {
    PyObject *rows, *result;
    long long begin;
    if (!PyArg_ParseTuple(args, "OL", &rows, &begin)) return NULL;
    result = found_kept(&kernel->found, rows, begin);
    if (result != NULL) found_empty(&kernel->found);
    return result;
}

/* take_ended() -> (window, skipped, contiguity, until, NOT stage): how many ended without a match so far. */
static PyObject *kernel_take_ended(Kernel *kernel, PyObject *unused) {
    (void)unused;
    EndCounts ended = kernel->ended;
    kernel->ended = (EndCounts){0};
    return Py_BuildValue(
        "LLLLL", (long long)ended.window, (long long)ended.skipped, (long long)ended.by_event[0],
        (long long)ended.by_event[1], (long long)ended.by_event[2]);
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
    KeyObject *key = key_object_new(kernel);
    if (key != NULL &&
        key_read(kernel, &key->key, numbers.items, numbers.size, first_handle, handle_count) < 0)
        Py_CLEAR(key);
    if (key == NULL) name_memory_error(kernel, 0);
    array_close(&numbers);
    return (PyObject *)key;
}

static PyObject *kernel_needs(Kernel *kernel, void *unused) {
    (void)unused;
    return PyBool_FromLong(kernel_needs_python(kernel));
}

static PyGetSetDef kernel_properties[] = {
    {"needs_python", (getter)kernel_needs, NULL, "whether runs keep Python's lock", NULL},
    {"failed", (getter)kernel_failed, NULL, "the stretch or item that an error came from", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef kernel_methods[] = {
    {"set_events", (PyCFunction)kernel_set_events, METH_VARARGS, "set the events of handles"},
    {"new_key", (PyCFunction)kernel_new_key, METH_NOARGS, "make a key that has seen nothing"},
    {"run", (PyCFunction)kernel_run, METH_VARARGS, "match stretches of events"},
    {"run_page", (PyCFunction)kernel_run_page, METH_VARARGS, "match the keys of a page"},
    {"count", (PyCFunction)kernel_count, METH_VARARGS, "count matches without listing them"},
    {"advance", (PyCFunction)kernel_advance, METH_VARARGS, "advance time for a key"},
    {"count_reached", (PyCFunction)kernel_count_reached, METH_NOARGS, "count what is reached"},
    {"reached", (PyCFunction)kernel_reached, METH_NOARGS, "return what has been counted"},
    {"write", (PyCFunction)kernel_write, METH_VARARGS, "return a key's state"},
    {"read", (PyCFunction)kernel_read, METH_VARARGS, "make a key of its state"},
    {"take_found", (PyCFunction)kernel_take_found, METH_NOARGS, "take the results so far"},
    {"take_rows", (PyCFunction)kernel_take_rows, METH_VARARGS, "take them by rows of a table"},
    {"take_ended", (PyCFunction)kernel_take_ended, METH_NOARGS, "take how many ended, by reason"},
    {"count_states", (PyCFunction)kernel_count_states, METH_VARARGS, "count what states hold"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, "A pattern, ready to run."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(kernel_init)},
    {Py_tp_dealloc, AS_SLOT(kernel_dealloc)},
    {Py_tp_traverse, AS_SLOT(kernel_traverse)},
    {Py_tp_clear, AS_SLOT(kernel_clear)},
    {Py_tp_getset, kernel_properties},
    {Py_tp_members, kernel_members},
    {Py_tp_methods, kernel_methods},
    {0, NULL},
};

static PyType_Spec kernel_spec = {
    .name = "pyflinkcep.kernel._kernel.Kernel",
    .basicsize = sizeof(Kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = kernel_slots,
};

/* --- the module */

static int add_type(PyObject *module, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL) return -1;
    int status = PyModule_AddObjectRef(module, name, type);
    Py_DECREF(type);
    return status;
}

static int module_exec(PyObject *module) {
    Types *types = PyModule_GetState(module);
    types->kernel = (PyTypeObject *)PyType_FromModuleAndSpec(module, &kernel_spec, NULL);
    if (types->kernel == NULL) return -1;
    types->key = (PyTypeObject *)PyType_FromModuleAndSpec(module, &key_spec, NULL);
    if (types->key == NULL) return -1;
    types->context = (PyTypeObject *)PyType_FromModuleAndSpec(module, &context_spec, NULL);
    if (types->context == NULL) return -1;
    if (add_type(module, "Join", &join_spec) < 0 ||
        add_type(module, "Latest", &latest_spec) < 0 ||
        add_type(module, "Counter", &counter_spec) < 0 ||
        add_type(module, "Lister", &lister_spec) < 0 ||
        add_type(module, "Numbering", &numbering_spec) < 0 ||
        add_type(module, "Pages", &pages_spec) < 0 ||
        add_type(module, "Backtracker", &backtracker_spec) < 0)
        return -1;
    if (PyModule_AddObjectRef(module, "Key", (PyObject *)types->key) < 0) return -1;
    PyObject *search = PyType_FromModuleAndSpec(module, &search_spec, NULL);
    if (search == NULL || PyModule_AddObjectRef(module, "RowSearch", search) < 0) {
        Py_XDECREF(search);
        return -1;
    }
    Py_DECREF(search);
    if (PyModule_AddIntConstant(module, "operations", OPERATIONS) < 0) return -1;
    if (PyModule_AddStringConstant(module, "sources", TEXT_OF(KERNEL_SOURCES)) < 0) return -1;
    return PyModule_AddObjectRef(module, "Kernel", (PyObject *)types->kernel);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    Types *types = PyModule_GetState(module);
    Py_VISIT((PyObject *)types->kernel);
    Py_VISIT((PyObject *)types->key);
    Py_VISIT((PyObject *)types->context);
    return 0;
}

static int module_clear(PyObject *module) {
    Types *types = PyModule_GetState(module);
    Py_CLEAR(types->kernel);
    Py_CLEAR(types->key);
    Py_CLEAR(types->context);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, AS_SLOT(module_exec)},
#ifdef Py_GIL_DISABLED /* an object serves one thread at a time, and threads share nothing else */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyMethodDef module_methods[] = {
    {"split", module_split, METH_VARARGS, "split the positions of events by their codes"},
    {"links", module_links, METH_VARARGS, "link the items of two lists"},
    {"heed", lock_heed, METH_O, "let a byte end the work of this thread"},
    {"literals", module_literals, METH_VARARGS, "find many texts in many values"},
    {"add_bits", module_add_bits, METH_VARARGS, "add the bits of conditions by value"},
    {"texts", module_texts, METH_VARARGS, "read the texts of a dictionary of Parquet"},
    {"row_groups", module_row_groups, METH_VARARGS, "tell what a file of Parquet consists of"},
    {"scatter", module_scatter, METH_VARARGS, "write what events have to places by code"},
    {"least", module_least, METH_VARARGS, "find the least time of each code"},
    {"order_within", module_order_within, METH_VARARGS, "return the order by time within keys"},
    {"wanted", module_wanted, METH_VARARGS, "find the events that rules want"},
    {"order_of", module_order_of, METH_O, "return the order of numbers"},
    {"hash_values", module_hash_values, METH_VARARGS, "hash values, each with a seed"},
    {"rows_with", module_rows_with, METH_VARARGS, "find the events of keys with some uses"},
#ifdef PYFLINKCEP_TEST_ALLOCATIONS
    {"fail_after", memory_fail_after, METH_O, "let only this many more allocations succeed"},
    {"live", memory_live, METH_NOARGS, "how many blocks are allocated"},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "The compiled matching core.",
    .m_size = sizeof(Types),
    .m_methods = module_methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module_definition); }
