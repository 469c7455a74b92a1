/* SPDX-License-Identifier: Apache-2.0 */
/* The events that many rules want, rule by rule and key by key. Mirror: Wants.of in rules/wants.py. */
#include "base/lock.h"
#include "tables/grouping.h"

typedef struct {
    Array ends, numbers; /* by event, the numbers of the conditions that hold */
    bool are_short;      /* whether these have 16 bits */
    Array rows, groups;  /* by place, the event and its key */
    Array asked_ends, rules, bits; /* by condition, the rules that ask it, and by which bits */
    Py_ssize_t rule_count;
} Given;

typedef struct {
    int32_t *lasts;    /* by rule, the last place that it wants */
    Py_ssize_t *ats;   /* by rule, where its next place is written */
    int32_t *places;
    int64_t *bits;
    int64_t *bounds;   /* where a rule's events of a key begin */
    int32_t *owners;   /* the rule of each of these */
    Py_ssize_t size, stretches;
} Wanted;

/* Whether the rules of conditions are there, and the keys of places. */
static bool fits(const Given *given) {
    const int64_t *ends = given->asked_ends.items;
    const int32_t *rules = given->rules.items;
    Py_ssize_t asked = given->rules.size;
    if (given->rows.size != given->groups.size || given->rows.size > INT32_MAX ||
        given->asked_ends.size < 1 || given->ends.size < 1 || given->bits.size != asked ||
        given->asked_ends.size > INT32_MAX || ends[0] != 0 ||
        ends[given->asked_ends.size - 1] != asked)
        return false;
    for (Py_ssize_t i = 1; i < given->asked_ends.size; i++)
        if (ends[i] < ends[i - 1]) return false;
    for (Py_ssize_t i = 0; i < asked; i++)
        if (rules[i] < 0 || rules[i] >= given->rule_count) return false;
    return true;
}

static int do_not_fit(void) {
    lock_take();
    PyErr_SetString(PyExc_ValueError, "events, conditions and rules do not fit together");
    return -1;
}

/* Let rules have the event of a place for which a condition holds; only count it without bits. */
static inline void offer(const Given *given, Wanted *wanted, int32_t place, int32_t number) {
    const int64_t *ends = given->asked_ends.items, *bits = given->bits.items;
    const int32_t *rules = given->rules.items;
    for (int64_t i = ends[number]; i < ends[number + 1]; i++) {
        int32_t rule = rules[i];
        if (wanted->lasts[rule] != place) {
            wanted->lasts[rule] = place;
            Py_ssize_t at = wanted->ats[rule]++;
            if (wanted->bits == NULL) continue;
            wanted->places[at] = place;
            wanted->bits[at] = bits[i];
        } else if (wanted->bits != NULL) {
            wanted->bits[wanted->ats[rule] - 1] |= bits[i];
        }
    }
}

static int offer_all(const Given *given, Wanted *wanted) {
    const int32_t *ends = given->ends.items, *rows = given->rows.items;
    const uint16_t *shorts = given->numbers.items;
    const int32_t *numbers = given->numbers.items;
    uint32_t conditions = (uint32_t)given->asked_ends.size - 1;
    for (Py_ssize_t rule = 0; rule < given->rule_count; rule++) wanted->lasts[rule] = -1;
    for (int32_t place = 0; place < given->rows.size; place++) {
        if ((place & 4095) == 0 && lock_signals() < 0) return -1;
        int32_t row = rows[place];
        if (row < 0 || row >= given->ends.size - 1) return do_not_fit();
        int32_t begin = ends[row], end = ends[row + 1];
        if (begin < 0 || end < begin || end > given->numbers.size) return do_not_fit();
        for (int32_t i = begin; i < end; i++) {
            uint32_t number = given->are_short ? shorts[i] : (uint32_t)numbers[i];
            if (number >= conditions) return do_not_fit();
            offer(given, wanted, place, (int32_t)number);
        }
    }
    return 0;
}

/* Put the counts of rules in place of where their events are written. */
static void begin_writing(const Given *given, Wanted *wanted) {
    for (Py_ssize_t rule = 0; rule < given->rule_count; rule++) {
        Py_ssize_t count = wanted->ats[rule];
        wanted->ats[rule] = wanted->size;
        wanted->size += count;
    }
}

static void find_keys(const Given *given, Wanted *wanted) {
    const int32_t *groups = given->groups.items;
    Py_ssize_t at = 0;
    for (int32_t rule = 0; rule < given->rule_count; rule++) {
        for (Py_ssize_t begin = at; at < wanted->ats[rule]; at++) {
            const int32_t *place = wanted->places + at;
            if (at > begin && groups[place[0]] == groups[place[-1]]) continue;
            wanted->bounds[wanted->stretches] = at;
            wanted->owners[wanted->stretches++] = rule;
        }
    }
}

static int find(const Given *given, Wanted *wanted) {
    wanted->lasts = allocate((size_t)given->rule_count * sizeof(int32_t));
    wanted->ats = allocate_zeros(given->rule_count, sizeof(Py_ssize_t));
    if (wanted->lasts == NULL || wanted->ats == NULL) return -1;
    lock_leave();
    int status = offer_all(given, wanted);
    lock_take();
    if (status < 0) return -1;
    begin_writing(given, wanted);
    size_t size = (size_t)wanted->size;
    wanted->places = allocate(size * sizeof(int32_t));
    wanted->bits = allocate(size * sizeof(int64_t));
    wanted->bounds = allocate(size * sizeof(int64_t));
    wanted->owners = allocate(size * sizeof(int32_t));
    if (wanted->places == NULL || wanted->bits == NULL || wanted->bounds == NULL ||
        wanted->owners == NULL)
        return -1;
    lock_leave();
    status = offer_all(given, wanted);
    if (status == 0) find_keys(given, wanted);
    lock_take();
    return status;
}

static PyObject *wanted_result(const Wanted *wanted) {
    PyObject *places = bytes_of(wanted->places, wanted->size, sizeof(int32_t));
    PyObject *bits = bytes_of(wanted->bits, wanted->size, sizeof(int64_t));
    PyObject *bounds = bytes_of(wanted->bounds, wanted->stretches, sizeof(int64_t));
    PyObject *owners = bytes_of(wanted->owners, wanted->stretches, sizeof(int32_t));
    PyObject *result = NULL;
    if (places != NULL && bits != NULL && bounds != NULL && owners != NULL)
        result = PyTuple_Pack(4, places, bits, bounds, owners);
    Py_XDECREF(places);
    Py_XDECREF(bits);
    Py_XDECREF(bounds);
    Py_XDECREF(owners);
    return result;
}

static PyObject *wanted_events(const Given *given) {
    Wanted wanted = {0};
    PyObject *result = NULL;
    if (given->rule_count < 0 || !fits(given))
        do_not_fit();
    else if (find(given, &wanted) == 0)
        result = wanted_result(&wanted);
    release_memory(wanted.lasts);
    release_memory(wanted.ats);
    release_memory(wanted.places);
    release_memory(wanted.bits);
    release_memory(wanted.bounds);
    release_memory(wanted.owners);
    return result;
}

PyObject *module_wanted(PyObject *module, PyObject *args) {
    PyObject *objects[7], *result = NULL;
    Given given = {0};
    int width;
    (void)module;
    if (!PyArg_ParseTuple(
            args, "OOiOOOOOn", &objects[0], &objects[1], &width, &objects[2], &objects[3],
            &objects[4], &objects[5], &objects[6], &given.rule_count))
        return NULL;
    Array *arrays[] = {&given.ends, &given.numbers, &given.rows, &given.groups, &given.asked_ends,
        &given.rules, &given.bits};
    const Py_ssize_t widths[] = {4, width == 2 ? 2 : 4, 4, 4, 8, 4, 8};
    given.are_short = width == 2;
    bool good = true;
    for (Py_ssize_t i = 0; i < 7 && good; i++) good = array_of(objects[i], widths[i], arrays[i]) == 0;
    if (good) result = wanted_events(&given);
    for (Py_ssize_t i = 0; i < 7; i++) array_close(arrays[i]);
    return result;
}
