/* SPDX-License-Identifier: Apache-2.0 */
/* The standard's search as Python sees it; engines/rows/matching.py makes it. No mirror in Python. */
#include "base/lock.h"
#include "base/objects.h"
#include "rows/search.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* turn_to(begin, end, has_first): select the rows of a partition; whether its first is there */
static PyObject *search_turn_to(RowSearch *search, PyObject *args) {
    long long begin, end;
    int has_first;
    if (!PyArg_ParseTuple(args, "LLp", &begin, &end, &has_first)) return NULL;
    if (begin < 0 || begin > end || end > search->rows) {
        PyErr_SetString(PyExc_ValueError, "rows out of range");
        return NULL;
    }
    if (search_turn(search, begin, end, has_first) < 0) return NULL;
    Py_RETURN_NONE;
}

/* find(start, number) -> where the next match begins and ends; (start, -1) if future rows decide,
   None if there is no other match */
static PyObject *search_find(RowSearch *search, PyObject *args) {
    long long start, number;
    if (!PyArg_ParseTuple(args, "LL", &start, &number)) return NULL;
    if (start < search->begin) {
        PyErr_SetString(PyExc_ValueError, "row out of range");
        return NULL;
    }
    int64_t end = search_next(search, start, number);
    if (end == SEARCH_FAILED) return NULL;
    if (end == SEARCH_NONE) Py_RETURN_NONE;
    return Py_BuildValue("LL", (long long)search->way.start, (long long)end);
}

/* --- many matches */

enum { TO_NEXT_ROW, PAST_LAST_ROW, TO_FIRST, TO_LAST }; /* of engines/rows/matching.py */

enum { START_OF, NUMBER_OF, SETTLED_OF, BEFORE_OF, PLACE_WIDTH }; /* of a place */

/* Concatenated matches: where each begins, its size, number and partition; and of its rows. */
typedef struct {
    int64_t *matches;
    uint8_t *labels, *hidden;
    Py_ssize_t size, room, rows, label_room, hidden_room;
} Matches;

/* What is asked of a call. */
typedef struct {
    Array ends, places;
    const char *targets; /* by label whether AFTER MATCH SKIP names it */
    Py_ssize_t targets_size, most;
    int skip;
    int64_t next; /* where to look on after the last match, or why there is no such row */
} Asked;

static int add_match(Matches *found, const RowSearch *search, int64_t end) {
    int64_t size = end - search->way.start;
    Py_ssize_t rows = found->rows + (Py_ssize_t)size;
    int64_t *matches =
        reserve(found->matches, &found->room, 4 * (found->size + 1), sizeof(int64_t));
    if (matches == NULL) return -1;
    found->matches = matches;
    uint8_t *labels = reserve(found->labels, &found->label_room, rows + 1, 1);
    if (labels == NULL) return -1;
    found->labels = labels;
    uint8_t *hidden = reserve(found->hidden, &found->hidden_room, rows + 1, 1);
    if (hidden == NULL) return -1;
    found->hidden = hidden;
    matches += 4 * found->size++;
    matches[0] = search->way.start;
    matches[1] = size;
    matches[3] = search->partition;
    memcpy(labels + found->rows, search->labels.buf, (size_t)size);
    memcpy(hidden + found->rows, search->hidden.buf, (size_t)size);
    found->rows = rows;
    return 0;
}

/* Return where to look on after a match; SEARCH_NONE if it lacks the row, SEARCH_OPEN if that is
   its first. */
static int64_t next_start(const RowSearch *search, const Asked *asked, int64_t end) {
    int64_t start = search->way.start, size = end - start;
    if (size == 0 || asked->skip == TO_NEXT_ROW) return start + 1;
    if (asked->skip == PAST_LAST_ROW) return end;
    const uint8_t *labels = search->labels.buf;
    for (int64_t i = 0; i < size; i++) {
        int64_t at = asked->skip == TO_FIRST ? i : size - 1 - i;
        if (labels[at] < asked->targets_size && asked->targets[labels[at]])
            return at == 0 ? SEARCH_OPEN : start + at;
    }
    return SEARCH_NONE;
}

/* Find matches until there are enough, or no row to go on with. */
static int list_matches(RowSearch *search, Asked *asked, Matches *found) {
    const int64_t *ends = asked->ends.items;
    while (search->partition < asked->ends.size && found->rows + found->size < asked->most) {
        int64_t begin = search->partition > 0 ? ends[search->partition - 1] : 0;
        int64_t end = ends[search->partition];
        int64_t *place = (int64_t *)asked->places.buffer.buf + PLACE_WIDTH * search->partition;
        if (!search->is_turned && search_turn(search, begin, end, place[BEFORE_OF] == 0) < 0)
            return -1;
        search->is_turned = true;
        int64_t last = search_next(search, begin + place[START_OF], place[NUMBER_OF] + 1);
        if (last == SEARCH_FAILED) return -1;
        if (last < 0) {
            place[START_OF] = (last == SEARCH_NONE ? end : search->way.start) - begin;
            search->partition++;
            search->is_turned = false;
            continue;
        }
        if (add_match(found, search, last) < 0) return -1;
        found->matches[4 * found->size - 2] = ++place[NUMBER_OF];
        asked->next = next_start(search, asked, last);
        if (asked->next < 0) return 0;
        place[START_OF] = asked->next - begin;
    }
    return 0;
}

/* Whether partitions, and places in them, are within the rows. */
static bool are_within(const RowSearch *search, const Asked *asked) {
    const int64_t *ends = asked->ends.items, *place = asked->places.items;
    if (asked->places.size != PLACE_WIDTH * asked->ends.size) return false;
    int64_t begin = 0;
    for (Py_ssize_t i = 0; i < asked->ends.size; i++, place += PLACE_WIDTH) {
        if (ends[i] < begin || ends[i] > search->rows || place[START_OF] < 0) return false;
        begin = ends[i];
    }
    return true;
}

static bool needs_python(const Slots *slots) {
    for (Py_ssize_t i = 0; i < slots->program_count; i++)
        if (program_needs_python(&slots->programs[i])) return true;
    return values_need_python(&slots->values);
}

/*
 * list(ends, places, skip, targets, most) -> (matches, labels, hidden, next): some matches of
 * partitions, from where the places in them say, which then say where to go on. `next` is negative
 * if AFTER MATCH SKIP fails for the last one. All are found once `partition` is their number.
 */
static PyObject *search_list(RowSearch *search, PyObject *args) {
    PyObject *ends, *places, *result = NULL;
    Asked asked = {0};
    Matches found = {0};
    if (!PyArg_ParseTuple(
            args, "OOiy#n", &ends, &places, &asked.skip, &asked.targets, &asked.targets_size,
            &asked.most))
        return NULL;
    if (array_of(ends, 8, &asked.ends) == 0 && writable_of(places, 8, &asked.places) == 0) {
        int status = -1;
        if (are_within(search, &asked)) {
            if (!needs_python(&search->slots)) lock_leave();
            status = list_matches(search, &asked, &found);
            lock_take();
        } else {
            PyErr_SetString(PyExc_ValueError, "rows out of range");
        }
        if (status == 0)
            result = Py_BuildValue(
                "NNNL", bytes_of(found.matches, 4 * found.size, sizeof(int64_t)),
                bytes_of(found.labels, found.rows, 1), bytes_of(found.hidden, found.rows, 1),
                (long long)asked.next);
    }
    array_close(&asked.ends);
    array_close(&asked.places);
    release_memory(found.matches);
    release_memory(found.labels);
    release_memory(found.hidden);
    return result;
}

/* --- making one */

static int open_buffer(PyObject *object, Py_ssize_t size, Py_buffer *buffer) {
    if (PyObject_GetBuffer(object, buffer, PyBUF_WRITABLE) < 0) return -1;
    if (buffer->len >= size) return 0;
    PyErr_SetString(PyExc_ValueError, "a buffer is shorter than the rows");
    return -1;
}

static int read_code(RowSearch *search, PyObject *code) {
    Py_ssize_t count = PyTuple_Size(code);
    search->code = allocate_zeros(count, sizeof(Command));
    if (search->code == NULL) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Command *at = &search->code[i];
        PyObject *written = PyTuple_GetItem(code, i);
        if (!PyArg_ParseTuple(written, "iii", &at->op, &at->first, &at->second)) return -1;
        if (at->op == SPLIT) at->number = (int32_t)search->splits++;
        bool jumps = at->op == SPLIT || at->op == JUMP;
        if ((jumps && (at->first < 0 || at->first >= count)) || at->second >= count ||
            (at->op == SPLIT && at->second < 0) ||
            (at->op == TAKE && (at->first < 0 || at->first >= search->answer_count))) {
            PyErr_SetString(PyExc_ValueError, "an instruction leads out of the program");
            return -1;
        }
    }
    return 0;
}

static int read_rows(
    RowSearch *search, PyObject *fields, PyObject *answers, PyObject *labels, PyObject *hidden,
    PyObject *times) {
    search->slots.values.rows = search->rows;
    if (fields_read(&search->slots.values, &search->slots.fields, fields) < 0 ||
        open_buffer(labels, search->rows, &search->labels) < 0 ||
        open_buffer(hidden, search->rows, &search->hidden) < 0 ||
        array_of(times, sizeof(int64_t), &search->times) < 0)
        return -1;
    if (times != Py_None && search->times.size < search->rows) {
        PyErr_SetString(PyExc_ValueError, "expected a time for each row");
        return -1;
    }
    for (Py_ssize_t i = 0; i < search->answer_count; i++) {
        PyObject *known = PyTuple_GetItem(answers, i);
        if (known != Py_None && open_buffer(known, search->rows, &search->answers[i]) < 0)
            return -1;
    }
    return 0;
}

static int search_init(RowSearch *search, PyObject *args, PyObject *keywords) {
    static char *names[] = {"code", "loops", "rows", "has_flags", "slots", "programs", "has_number",
        "ansi", "most_remembered", "fields", "answers", "labels", "hidden", "times", "within",
        "watermark", NULL};
    PyObject *code, *slots, *programs, *fields, *answers, *labels, *hidden, *times, *watermark;
    int has_flags, has_number, ansi;
    long long within;
    if (search->code != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the search is already set up");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "O!inpO!O!ppnO!O!OOOLO", names, &PyTuple_Type, &code, &search->loops,
            &search->rows, &has_flags, &PyTuple_Type, &slots, &PyTuple_Type, &programs, &has_number,
            &ansi, &search->failed.most, &PyTuple_Type, &fields, &PyTuple_Type, &answers, &labels,
            &hidden, &times, &within, &watermark))
        return -1;
    search->has_flags = has_flags;
    search->within = within;
    search->is_growing = watermark != Py_None;
    if (search->is_growing) search->watermark = PyLong_AsLongLong(watermark);
    if (PyErr_Occurred()) return -1;
    search->answer_count = PyTuple_Size(answers);
    search->answers = allocate_zeros(search->answer_count, sizeof(Py_buffer));
    if (search->answers == NULL || read_code(search, code) < 0 ||
        slots_read(&search->slots, slots, programs, search->answer_count) < 0)
        return -1;
    search->slots.has_number = has_number;
    search->slots.values.ansi = ansi;
    search->failed.width = search->slots.values.slot_count;
    if (read_rows(search, fields, answers, labels, hidden, times) < 0) return -1;
    return search_turn(search, 0, 0, true);
}

static void search_dealloc(RowSearch *search) {
    PyTypeObject *type = Py_TYPE((PyObject *)search);
    slots_free(&search->slots);
    failed_free(&search->failed);
    array_close(&search->times);
    if (search->labels.obj != NULL) PyBuffer_Release(&search->labels);
    if (search->hidden.obj != NULL) PyBuffer_Release(&search->hidden);
    for (Py_ssize_t i = 0; search->answers != NULL && i < search->answer_count; i++)
        if (search->answers[i].obj != NULL) PyBuffer_Release(&search->answers[i]);
    release_memory(search->answers);
    release_memory(search->code);
    release_memory(search->flags);
    release_memory(search->stack);
    PyObject_Free(search);
    Py_DECREF((PyObject *)type);
}

static PyMemberDef search_members[] = {
    {"asked", T_INT, offsetof(RowSearch, asked), READONLY, "whose condition was asked last"},
    {"partition", T_PYSSIZET, offsetof(RowSearch, partition), READONLY, "which one is searched"},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef search_methods[] = {
    {"turn_to", (PyCFunction)search_turn_to, METH_VARARGS, "select a partition"},
    {"find", (PyCFunction)search_find, METH_VARARGS, "find the next match"},
    {"list", (PyCFunction)search_list, METH_VARARGS, "find many matches"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot search_slots[] = {
    {Py_tp_doc, "A search for matches in the rows of partitions."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(search_init)},
    {Py_tp_dealloc, AS_SLOT(search_dealloc)},
    {Py_tp_members, search_members},
    {Py_tp_methods, search_methods},
    {0, NULL},
};

PyType_Spec search_spec = {
    .name = "pyflinkcep.kernel._kernel.RowSearch",
    .basicsize = sizeof(RowSearch),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = search_slots,
};
