/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of many texts are in which of many values, by one automaton over all of them (Aho and
 * Corasick). Mirror: engines/literals.py.
 */
#include "base/literals.h"

#include "base/arrays.h"
#include "base/signals.h"

#include <string.h>

enum { ROOT = 0, NONE = -1, BEGINS = 1, ENDS = 2 };

/* More cells of transitions than this are not made: they would no longer fit memory. */
static const Py_ssize_t MOST_CELLS = (Py_ssize_t)1 << 28;

/* A text, where it has to be in a value, and the next test that ends at its node. */
typedef struct {
    const char *text;
    Py_ssize_t size;
    int32_t next, last; /* `last`: the value that it was last found in */
    uint8_t kind;
} Test;

typedef struct {
    Test *tests;
    Py_ssize_t test_count;
    uint8_t classes[256]; /* of bytes; 0 of those in no text */
    int32_t width, node_count;
    int32_t *next; /* by node and class */
    int32_t *first; /* by node its first test */
    int32_t *shorter; /* by node the longest of its suffixes that has tests */
    int32_t *depth;
    Py_ssize_t position; /* in the value that is searched, behind the byte that was read */
} Automaton;

typedef struct {
    int32_t test, value;
} Hit;

typedef struct {
    Hit *items;
    Py_ssize_t size, room;
} Hits;

/* --- the automaton */

static Py_ssize_t sort_bytes(Automaton *automaton) {
    Py_ssize_t nodes = 1;
    bool seen[256] = {false};
    for (Py_ssize_t i = 0; i < automaton->test_count; i++) {
        nodes += automaton->tests[i].size;
        for (Py_ssize_t n = 0; n < automaton->tests[i].size; n++)
            seen[(uint8_t)automaton->tests[i].text[n]] = true;
    }
    automaton->width = 1;
    for (int byte = 0; byte < 256; byte++)
        if (seen[byte] && automaton->width < 256)
            automaton->classes[byte] = (uint8_t)automaton->width++;
    return nodes;
}

/* Make the tree of all texts; absent transitions are the root for now, which no node leads to. */
static int make_tree(Automaton *automaton) {
    Py_ssize_t nodes = sort_bytes(automaton);
    if (automaton->width == 256 || nodes > MOST_CELLS / automaton->width) return 1;
    automaton->next = allocate_zeros(nodes * automaton->width, sizeof(int32_t));
    automaton->first = allocate((size_t)nodes * sizeof(int32_t));
    automaton->shorter = allocate((size_t)nodes * sizeof(int32_t));
    automaton->depth = allocate_zeros(nodes, sizeof(int32_t));
    if (automaton->next == NULL || automaton->first == NULL || automaton->shorter == NULL ||
        automaton->depth == NULL)
        return -1;
    automaton->node_count = 1;
    for (Py_ssize_t node = 0; node < nodes; node++) automaton->first[node] = NONE;
    for (Py_ssize_t i = 0; i < automaton->test_count; i++) {
        Test *test = &automaton->tests[i];
        int32_t node = ROOT;
        for (Py_ssize_t n = 0; n < test->size; n++) {
            int32_t *next = &automaton->next
                                 [(Py_ssize_t)node * automaton->width +
                                     automaton->classes[(uint8_t)test->text[n]]];
            if (*next == ROOT) {
                automaton->depth[automaton->node_count] = automaton->depth[node] + 1;
                *next = automaton->node_count++;
            }
            node = *next;
        }
        test->next = automaton->first[node];
        automaton->first[node] = (int32_t)i;
    }
    return 0;
}

/* Let each node lead on from its longest suffix where it does not itself. */
static int complete(Automaton *automaton) {
    Py_ssize_t size = automaton->node_count, width = automaton->width, head = 0, tail = 0;
    int32_t *queue = allocate((size_t)size * sizeof(int32_t));
    int32_t *suffix = allocate_zeros(size, sizeof(int32_t));
    if (queue == NULL || suffix == NULL) {
        release_memory(queue);
        release_memory(suffix);
        return -1;
    }
    automaton->shorter[ROOT] = NONE;
    for (Py_ssize_t c = 0; c < width; c++)
        if (automaton->next[c] != ROOT) queue[tail++] = automaton->next[c];
    while (head < tail) {
        int32_t node = queue[head++], before = suffix[node];
        int32_t *own = &automaton->next[node * width];
        const int32_t *others = &automaton->next[before * width];
        automaton->shorter[node] =
            automaton->first[before] != NONE ? before : automaton->shorter[before];
        for (Py_ssize_t c = 0; c < width; c++) {
            if (own[c] == ROOT)
                own[c] = others[c];
            else {
                suffix[own[c]] = others[c];
                queue[tail++] = own[c];
            }
        }
    }
    release_memory(queue);
    release_memory(suffix);
    return 0;
}

static void automaton_free(Automaton *automaton) {
    release_memory(automaton->tests);
    release_memory(automaton->next);
    release_memory(automaton->first);
    release_memory(automaton->shorter);
    release_memory(automaton->depth);
}

/* --- the search */

static int note(Automaton *automaton, Hits *hits, int32_t node, int32_t value, bool ends) {
    bool begins = automaton->depth[node] == automaton->position;
    for (int32_t at = automaton->first[node]; at != NONE; at = automaton->tests[at].next) {
        Test *test = &automaton->tests[at];
        if (test->last == value || ((test->kind & BEGINS) && !begins) ||
            ((test->kind & ENDS) && !ends))
            continue;
        test->last = value;
        Hit *items = reserve(hits->items, &hits->room, hits->size + 1, sizeof(Hit));
        if (items == NULL) return -1;
        hits->items = items;
        items[hits->size++] = (Hit){at, value};
    }
    return 0;
}

static int search(
    Automaton *automaton, const uint8_t *data, const int64_t *ends, Py_ssize_t count, Hits *hits) {
    Py_ssize_t width = automaton->width, at = 0;
    for (Py_ssize_t value = 0; value < count; value++) {
        int32_t node = ROOT;
        Py_ssize_t begin = at;
        for (; at < ends[value]; at++) {
            node = automaton->next[node * width + automaton->classes[data[at]]];
            int32_t own = automaton->first[node] != NONE ? node : automaton->shorter[node];
            automaton->position = at + 1 - begin;
            for (; own != NONE; own = automaton->shorter[own])
                if (note(automaton, hits, own, (int32_t)value, at + 1 == ends[value]) < 0)
                    return -1;
        }
        if (check_signals() < 0) return -1;
    }
    return 0;
}

/* Return where the values of each test end, and the values, by test. */
static PyObject *sorted_hits(const Hits *hits, Py_ssize_t test_count) {
    int64_t *ends = allocate_zeros(test_count + 1, sizeof(int64_t));
    int32_t *values = allocate((size_t)hits->size * sizeof(int32_t));
    PyObject *result = NULL;
    if (ends != NULL && values != NULL) {
        for (Py_ssize_t i = 0; i < hits->size; i++) ends[hits->items[i].test + 1]++;
        for (Py_ssize_t i = 0; i < test_count; i++) ends[i + 1] += ends[i];
        for (Py_ssize_t i = 0; i < hits->size; i++)
            values[ends[hits->items[i].test]++] = hits->items[i].value;
        result = Py_BuildValue(
            "NN", bytes_of(ends, test_count, sizeof(int64_t)),
            bytes_of(values, hits->size, sizeof(int32_t)));
    }
    release_memory(ends);
    release_memory(values);
    return result;
}

static int read_tests(Automaton *automaton, PyObject *texts, const uint8_t *kinds) {
    automaton->test_count = PyTuple_Size(texts);
    automaton->tests = allocate_zeros(automaton->test_count, sizeof(Test));
    if (automaton->tests == NULL) return -1;
    for (Py_ssize_t i = 0; i < automaton->test_count; i++) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(texts, i), &text, &size) < 0) return -1;
        if (size == 0) {
            PyErr_SetString(PyExc_ValueError, "expected texts with a character");
            return -1;
        }
        automaton->tests[i] = (Test){text, size, NONE, NONE, kinds[i]};
    }
    return 0;
}

static bool are_ascending(const int64_t *ends, Py_ssize_t count, Py_ssize_t most) {
    int64_t before = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (ends[i] < before || ends[i] > most) return false;
        before = ends[i];
    }
    return true;
}

PyObject *module_literals(PyObject *module, PyObject *args) {
    PyObject *given[3], *texts, *result = NULL;
    static const Py_ssize_t widths[3] = {1, 8, 1};
    Array arrays[3] = {0}; /* the values' bytes, where each ends, the tests' kinds */
    Automaton automaton = {0};
    Hits hits = {0};
    int opened = 0, status = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!O", &given[0], &given[1], &PyTuple_Type, &texts, &given[2]))
        return NULL;
    while (opened < 3 && array_of(given[opened], widths[opened], &arrays[opened]) == 0) opened++;
    if (opened == 3 && (arrays[2].size != PyTuple_Size(texts) || arrays[1].size > INT32_MAX ||
                           !are_ascending(arrays[1].items, arrays[1].size, arrays[0].size)))
        PyErr_SetString(PyExc_ValueError, "expected values, and a kind for each text");
    else if (opened == 3 && read_tests(&automaton, texts, arrays[2].items) == 0) {
        lock_leave();
        status = make_tree(&automaton);
        if (status == 0) status = complete(&automaton);
        if (status == 0)
            status = search(&automaton, arrays[0].items, arrays[1].items, arrays[1].size, &hits);
        lock_take();
        if (status == 0)
            result = sorted_hits(&hits, automaton.test_count);
        else if (status > 0)
            result = Py_NewRef(Py_None);
    }
    automaton_free(&automaton);
    release_memory(hits.items);
    while (opened > 0) array_close(&arrays[--opened]);
    return result;
}
