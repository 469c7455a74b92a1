/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for a match with the standard's meaning: depth first, in the order of preference.
 * Mirror: _Search in match_recognize/standard/matcher.py.
 *
 * A place is a number made of an instruction's, the open rounds that have taken a row (a bit each)
 * and the row. The stack has the places of other ways, and below each of them the place of its
 * SPLIT, as ~place, which is remembered as failed when it comes up.
 */
#include "kernel.h"

#include <string.h>

enum { TAKE, SPLIT, JUMP, START, END, MARK, CHECK, ACCEPT };
enum { UNKNOWN = 2, NONE = -2, OPEN = -1, FAILED = -3 };

typedef struct {
    int32_t op, first, second, number; /* `number` of a SPLIT among the SPLITs */
} Command;

typedef struct {
    PyObject_HEAD Command *code;
    Py_ssize_t size, first_row, variables;
    int loops;
    bool remembers;
    uint8_t *flags;             /* the places that have failed, NULL if they are in `failed` */
    PyObject *failed;           /* a set of (place, what is known there) */
    Py_ssize_t most_remembered;
    PyObject *holds, *updates, *initial;
    Py_buffer labels, hidden, *answers; /* an answer for each row, of some variables */
    int64_t *stack;
    Py_ssize_t depth, room;
    PyObject **states; /* what is known at the places on the stack that are ways; owned */
    Py_ssize_t state_count, state_room;
    bool is_running;
} Search;

/* --- what is remembered */

static int push(Search *search, int64_t place) {
    int64_t *stack = reserve(search->stack, &search->room, search->depth + 1, sizeof(int64_t));
    if (stack == NULL) return -1;
    search->stack = stack;
    stack[search->depth++] = place;
    return 0;
}

static int push_state(Search *search, PyObject *state) {
    PyObject **states =
        reserve(search->states, &search->state_room, search->state_count + 1, sizeof(PyObject *));
    if (states == NULL) return -1;
    search->states = states;
    states[search->state_count++] = Py_NewRef(state);
    return 0;
}

static PyObject *remembered(int64_t place, PyObject *state) {
    return Py_BuildValue("LO", (long long)place, state);
}

/* Return 1 if a place has failed before with the same things known, 0 if not. */
static int has_failed(Search *search, int64_t place, PyObject *state) {
    if (search->flags != NULL) return search->flags[place];
    if (PySet_Size(search->failed) == 0) return 0;
    PyObject *what = remembered(place, state);
    if (what == NULL) return -1;
    int found = PySet_Contains(search->failed, what);
    Py_DECREF(what);
    return found;
}

/* Remember that a SPLIT has failed, with what is known at the top of the states. */
static int remember(Search *search, int64_t place) {
    if (search->flags != NULL) {
        search->flags[place] = 1;
        return 0;
    }
    PyObject *state = search->states[--search->state_count];
    int status = 0;
    if (search->remembers && PySet_Size(search->failed) < search->most_remembered) {
        PyObject *what = remembered(place, state);
        status = what == NULL ? -1 : PySet_Add(search->failed, what);
        Py_XDECREF(what);
    }
    Py_DECREF(state);
    return status;
}

static void forget_states(Search *search) {
    while (search->state_count) Py_DECREF(search->states[--search->state_count]);
}

/* --- conditions */

/* Return what is known once a row is taken, a new reference. */
static PyObject *updated(Search *search, int32_t variable, PyObject *state, int64_t row) {
    PyObject *update = PyTuple_GetItem(search->updates, variable);
    if (update == NULL || update == Py_None) return update == NULL ? NULL : Py_NewRef(state);
    return PyObject_CallFunction(update, "OL", state, (long long)row);
}

/* Return 1 if a row can be mapped to a variable, 0 if not. */
static int ask(Search *search, int32_t variable, int64_t row, PyObject *known) {
    Py_buffer *answers = &search->answers[variable];
    uint8_t *answer = answers->obj == NULL ? NULL : (uint8_t *)answers->buf + row;
    if (answer != NULL && *answer != UNKNOWN) return *answer;
    PyObject *result =
        PyObject_CallFunction(search->holds, "iLO", (int)variable, (long long)row, known);
    if (result == NULL) return -1;
    int holds = PyObject_IsTrue(result);
    Py_DECREF(result);
    if (holds >= 0 && answer != NULL) *answer = (uint8_t)holds;
    return holds;
}

/* --- the search */

typedef struct {
    int64_t start, limit, row, mask;
    int32_t pc;
    bool is_open;
    PyObject *state; /* owned */
} Way;

/* Take a row, if its condition holds: return 1 if so, 0 if not. */
static int take(Search *search, Way *way, const Command *at) {
    ((uint8_t *)search->labels.buf)[way->row - way->start] = (uint8_t)at->first;
    PyObject *known = updated(search, at->first, way->state, way->row);
    if (known == NULL) return -1;
    int holds = ask(search, at->first, way->row, known);
    if (holds <= 0) {
        Py_DECREF(known);
        return holds;
    }
    ((uint8_t *)search->hidden.buf)[way->row - way->start] = (uint8_t)at->second;
    Py_DECREF(way->state);
    way->state = known;
    way->row++;
    way->mask = ((int64_t)1 << search->loops) - 1;
    way->pc++;
    return 1;
}

static int64_t place_of(const Search *search, int64_t number, int64_t mask, int64_t row) {
    return (number << search->loops | mask) * (search->size + 1) + row;
}

/* Try the preferred way of a SPLIT, unless all have failed before: return 1 if so, 0 if not. */
static int split(Search *search, Way *way, const Command *at) {
    int64_t place = place_of(search, at->number, way->mask, way->row);
    int failed = has_failed(search, place, way->state);
    if (failed) return failed < 0 ? -1 : 0;
    if (push(search, ~place) < 0 ||
        push(search, place_of(search, at->second, way->mask, way->row)) < 0)
        return -1;
    if (search->flags == NULL && push_state(search, way->state) < 0) return -1;
    way->pc = at->first;
    return 1;
}

/* Do one instruction: return 1 if the way goes on, 0 if it fails. */
static int step(Search *search, Way *way, const Command *at) {
    switch (at->op) {
    case TAKE:
        return take(search, way, at);
    case SPLIT:
        return split(search, way, at);
    case JUMP:
        way->pc = at->first;
        return 1;
    case START:
    case END:
        if (way->row != (at->op == START ? search->first_row : search->size)) return 0;
        way->pc++;
        return 1;
    case MARK:
        way->mask &= ~((int64_t)1 << at->first);
        way->pc++;
        return 1;
    default: /* CHECK */
        if (way->mask >> at->first & 1) {
            way->pc++;
            return 1;
        }
        if (at->second < 0) return 0;
        way->pc = at->second;
        return 1;
    }
}

/* Go on with another way: return 1, or 0 if there is none. */
static int go_back(Search *search, Way *way) {
    int64_t width = search->size + 1;
    while (search->depth) {
        int64_t place = search->stack[--search->depth];
        if (place < 0) {
            if (remember(search, ~place) < 0) return -1;
            continue;
        }
        int64_t rest = place / width;
        way->row = place % width;
        way->pc = (int32_t)(rest >> search->loops);
        way->mask = rest & (((int64_t)1 << search->loops) - 1);
        if (search->flags == NULL) {
            Py_DECREF(way->state);
            way->state = Py_NewRef(search->states[search->state_count - 1]);
        }
        return 1;
    }
    return 0;
}

/* Return where the preferred match ends, NONE, OPEN, or FAILED with an exception set. */
static int64_t find(Search *search, Way *way) {
    for (uint32_t steps = 1;; steps++) {
        const Command *at = &search->code[way->pc];
        if (at->op == ACCEPT) return way->row;
        if (steps % (1 << 20) == 0 && PyErr_CheckSignals() < 0) return FAILED;
        int goes_on = 0;
        if (at->op != TAKE || way->row < way->limit)
            goes_on = step(search, way, at);
        else if (way->is_open && way->row == search->size)
            return OPEN;
        if (goes_on == 0) {
            goes_on = go_back(search, way);
            if (goes_on == 0) return NONE;
        }
        if (goes_on < 0) return FAILED;
    }
}

/* find(start, limit, is_open) -> where the preferred match that begins with a row ends, -1 if
   rows that have not come decide, None if there is no match */
static PyObject *search_find(Search *search, PyObject *args) {
    long long start, limit;
    int is_open;
    if (!PyArg_ParseTuple(args, "LLp", &start, &limit, &is_open)) return NULL;
    if (search->is_running || start < 0 || start > search->size || limit > search->size) {
        PyErr_SetString(PyExc_ValueError, "no such row, or a search within a search");
        return NULL;
    }
    if (search->failed != NULL && PySet_Clear(search->failed) < 0) return NULL;
    Way way = {.start = start, .limit = limit, .row = start, .is_open = is_open};
    way.state = Py_NewRef(search->initial);
    search->is_running = true;
    int64_t end = find(search, &way);
    search->is_running = false;
    search->depth = 0;
    forget_states(search);
    Py_DECREF(way.state);
    if (end == FAILED) return NULL;
    if (end == NONE) Py_RETURN_NONE;
    return PyLong_FromLongLong(end);
}

/* --- making one */

static int open_buffer(PyObject *object, Py_ssize_t size, Py_buffer *buffer) {
    if (PyObject_GetBuffer(object, buffer, PyBUF_WRITABLE) < 0) return -1;
    if (buffer->len >= size) return 0;
    PyErr_SetString(PyExc_ValueError, "a buffer is shorter than the rows");
    return -1;
}

static int read_code(Search *search, PyObject *code) {
    Py_ssize_t count = PyTuple_Size(code), splits = 0;
    search->code = allocate_zeros(count, sizeof(Command));
    if (search->code == NULL) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Command *at = &search->code[i];
        PyObject *written = PyTuple_GetItem(code, i);
        if (!PyArg_ParseTuple(written, "iii", &at->op, &at->first, &at->second)) return -1;
        if (at->op == SPLIT) at->number = (int32_t)splits++;
        bool jumps = at->op == SPLIT || at->op == JUMP;
        if ((jumps && (at->first < 0 || at->first >= count)) || at->second >= count ||
            (at->op == SPLIT && at->second < 0) ||
            (at->op == TAKE && (at->first < 0 || at->first >= search->variables))) {
            PyErr_SetString(PyExc_ValueError, "an instruction leads out of the program");
            return -1;
        }
    }
    return 0;
}

static int search_read(Search *search, PyObject *code, PyObject *answers, PyObject *labels,
                       PyObject *hidden, Py_ssize_t flags) {
    search->variables = PyTuple_Size(answers);
    if (search->variables < 0 || read_code(search, code) < 0) return -1;
    search->answers = allocate_zeros(search->variables, sizeof(Py_buffer));
    if (search->answers == NULL || open_buffer(labels, search->size, &search->labels) < 0 ||
        open_buffer(hidden, search->size, &search->hidden) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < search->variables; i++) {
        PyObject *known = PyTuple_GetItem(answers, i);
        if (known != Py_None && open_buffer(known, search->size, &search->answers[i]) < 0)
            return -1;
    }
    if (flags > 0) {
        search->flags = allocate_zeros(flags, 1);
        return search->flags == NULL ? -1 : 0;
    }
    search->failed = PySet_New(NULL);
    return search->failed == NULL ? -1 : 0;
}

static int search_init(Search *search, PyObject *args, PyObject *keywords) {
    static char *names[] = {"code",    "loops",  "size",   "first_row", "flags",
                            "remembers", "most_remembered", "initial", "updates",   "holds",
                            "answers", "labels", "hidden", NULL};
    PyObject *code, *answers, *labels, *hidden, *initial, *updates, *holds;
    Py_ssize_t flags;
    int remembers;
    if (search->code != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a search is made once");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "O!innnpnOO!OO!OO", names, &PyTuple_Type, &code, &search->loops,
            &search->size, &search->first_row, &flags, &remembers, &search->most_remembered,
            &initial, &PyTuple_Type, &updates, &holds, &PyTuple_Type, &answers, &labels, &hidden))
        return -1;
    search->remembers = remembers;
    search->initial = Py_NewRef(initial);
    search->updates = Py_NewRef(updates);
    search->holds = Py_NewRef(holds);
    return search_read(search, code, answers, labels, hidden, flags);
}

static int search_traverse(Search *search, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)Py_TYPE((PyObject *)search));
    Py_VISIT(search->failed);
    Py_VISIT(search->holds);
    Py_VISIT(search->updates);
    Py_VISIT(search->initial);
    for (Py_ssize_t i = 0; i < search->state_count; i++) Py_VISIT(search->states[i]);
    return 0;
}

static int search_clear(Search *search) {
    Py_CLEAR(search->failed);
    Py_CLEAR(search->holds);
    Py_CLEAR(search->updates);
    Py_CLEAR(search->initial);
    return 0;
}

static void search_dealloc(Search *search) {
    PyTypeObject *type = Py_TYPE((PyObject *)search);
    PyObject_GC_UnTrack(search);
    search_clear(search);
    forget_states(search);
    if (search->labels.obj != NULL) PyBuffer_Release(&search->labels);
    if (search->hidden.obj != NULL) PyBuffer_Release(&search->hidden);
    for (Py_ssize_t i = 0; search->answers != NULL && i < search->variables; i++)
        if (search->answers[i].obj != NULL) PyBuffer_Release(&search->answers[i]);
    release_memory(search->answers);
    release_memory(search->code);
    release_memory(search->flags);
    release_memory(search->stack);
    release_memory(search->states);
    PyObject_GC_Del(search);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef search_methods[] = {
    {"find", (PyCFunction)search_find, METH_VARARGS, "find a match that begins with a row"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot search_slots[] = {
    {Py_tp_doc, "A search for matches in the rows of a partition."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(search_init)},
    {Py_tp_dealloc, AS_SLOT(search_dealloc)},
    {Py_tp_traverse, AS_SLOT(search_traverse)},
    {Py_tp_clear, AS_SLOT(search_clear)},
    {Py_tp_methods, search_methods},
    {0, NULL},
};

PyType_Spec search_spec = {
    .name = "pyflinkcep.kernel._kernel.Search",
    .basicsize = sizeof(Search),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = search_slots,
};
