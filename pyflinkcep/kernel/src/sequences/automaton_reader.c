/* SPDX-License-Identifier: Apache-2.0 */
/* A SEQ query's automaton and events as engines/sequences/evaluation.py hands them over. */
#include "sequences/automaton.h"

/* --- the query */

static int read_component(Component *component, PyObject *spec) {
    PyObject *live[4], *asked[5];
    Equality *begin = &component->begin_equal, *take = &component->take_equal;
    Program *programs[5] = {&component->begin_alone, &component->begin_joint,
        &component->take_alone, &component->take_joint, &component->leave};
    int loops;
    if (!PyArg_ParseTuple(
            spec, "pi(OOOO)(OOOOO)(ii)(ii)", &loops, &component->strategy, &live[0], &live[1],
            &live[2], &live[3], &asked[0], &asked[1], &asked[2], &asked[3], &asked[4],
            &begin->field, &begin->slot, &take->field, &take->slot))
        return -1;
    component->loops = loops;
    for (int mode = 0; mode < 4; mode++)
        if (live_read(&component->live[mode], live[mode]) < 0) return -1;
    for (int i = 0; i < 5; i++)
        if (program_read(programs[i], asked[i]) < 0) return -1;
    return 0;
}

static int read_components(Automaton *automaton, PyObject *components) {
    Py_ssize_t count = PyTuple_Size(components);
    automaton->components = allocate_zeros(count, sizeof(Component));
    if (automaton->components == NULL) return -1;
    automaton->component_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_component(&automaton->components[i], PyTuple_GetItem(components, i)) < 0)
            return -1;
    return 0;
}

static int read_absent(Absent *absent, int32_t negative, PyObject *spec) {
    PyObject *alone, *joint;
    absent->negative = negative;
    if (!PyArg_ParseTuple(spec, "iOO", &absent->stage, &alone, &joint)) return -1;
    if (program_read(&absent->alone, alone) < 0) return -1;
    return program_read(&absent->joint, joint);
}

/* Read a negated component; its events are those after `first`. */
static int read_negative(Negative *negative, Py_ssize_t first, PyObject *spec) {
    PyObject *events;
    if (!PyArg_ParseTuple(spec, "iiO!", &negative->gap, &negative->needs, &PyTuple_Type, &events))
        return -1;
    negative->first = (int32_t)first;
    negative->count = (int32_t)PyTuple_Size(events);
    if (negative->count > 0) return 0;
    PyErr_SetString(PyExc_ValueError, "expected an event of a negated component");
    return -1;
}

static int read_events(Automaton *automaton, Py_ssize_t number, PyObject *spec) {
    Negative *negative = &automaton->negatives[number];
    PyObject *events = PyTuple_GetItem(spec, 2);
    for (int32_t i = 0; i < negative->count; i++) {
        Absent *absent = &automaton->absent[negative->first + i];
        if (read_absent(absent, (int32_t)number, PyTuple_GetItem(events, i)) < 0) return -1;
        negative->judges |= negative->count > 1 || absent->joint.size > 0;
    }
    return 0;
}

static int read_negatives(Automaton *automaton, PyObject *negatives) {
    Py_ssize_t count = PyTuple_Size(negatives), events = 0;
    automaton->negatives = allocate_zeros(count, sizeof(Negative));
    if (automaton->negatives == NULL) return -1;
    automaton->negative_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        Negative *negative = &automaton->negatives[i];
        if (read_negative(negative, events, PyTuple_GetItem(negatives, i)) < 0) return -1;
        bool is_last = negative->gap == automaton->component_count;
        automaton->waits_for_end |= is_last;
        automaton->minds_position |= is_last || negative->gap == 0;
        events += negative->count;
    }
    automaton->absent = allocate_zeros(events, sizeof(Absent));
    if (automaton->absent == NULL) return -1;
    automaton->absent_count = events;
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_events(automaton, i, PyTuple_GetItem(negatives, i)) < 0) return -1;
    return 0;
}

/* Whether an equality is of a slot, and of a field that the program of its edge reads. */
static bool is_known(const Equality *equality, const Values *values) {
    return equality->slot < 0 || (equality->slot < values->slot_count && equality->field >= 0 &&
                                     equality->field < values->fields_read);
}

static int check_component(const Component *component, Values *values) {
    const Program *programs[5] = {&component->begin_alone, &component->begin_joint,
        &component->take_alone, &component->take_joint, &component->leave};
    for (int i = 0; i < 5; i++)
        if (program_check(programs[i], values) < 0) return -1;
    bool good = component->strategy >= STRICT && component->strategy <= ANY;
    good = good && is_known(&component->begin_equal, values);
    good = good && is_known(&component->take_equal, values);
    for (int mode = 0; mode < 4; mode++)
        for (Py_ssize_t i = 0; i < component->live[mode].size; i++) {
            int32_t slot = component->live[mode].slots[i];
            good = good && slot >= 0 && slot < values->slot_count;
        }
    if (good) return 0;
    PyErr_SetString(PyExc_ValueError, "expected known slots and strategies");
    return -1;
}

static int check_negative(Automaton *automaton, const Negative *negative) {
    Values *values = &automaton->values;
    Py_ssize_t count = automaton->component_count;
    bool is_between = negative->gap > 0 && negative->gap < count;
    if (negative->gap < 0 || negative->gap > count || (negative->count > 1 && !is_between)) {
        PyErr_SetString(PyExc_ValueError, "expected a gap between components");
        return -1;
    }
    for (int32_t i = 0; i < negative->count; i++) {
        Absent *absent = &automaton->absent[negative->first + i];
        if (program_check(&absent->alone, values) < 0 || program_check(&absent->joint, values) < 0)
            return -1;
        if (absent->stage < 0) continue;
        absent->after = allocate(sizeof(Tally) + (size_t)values->slot_count * sizeof(Value));
        if (absent->after == NULL) return -1;
    }
    return 0;
}

/* Refuse numbers that refer to nothing. */
static int check_automaton(Automaton *automaton) {
    Values *values = &automaton->values;
    for (Py_ssize_t i = 0; i < automaton->component_count; i++)
        if (check_component(&automaton->components[i], values) < 0) return -1;
    for (Py_ssize_t i = 0; i < automaton->negative_count; i++)
        if (check_negative(automaton, &automaton->negatives[i]) < 0) return -1;
    if (program_check(&automaton->partition_alone, values) < 0) return -1;
    return program_check(&automaton->partition_joint, values);
}

int automaton_read(Automaton *automaton, PyObject *args) {
    PyObject *components, *negatives, *alone, *joint, *slots;
    long long window;
    if (automaton->components != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the query is already set");
        return -1;
    }
    if (!PyArg_ParseTuple(
            args, "O!O!(OO)O!L", &PyTuple_Type, &components, &PyTuple_Type, &negatives, &alone,
            &joint, &PyTuple_Type, &slots, &window))
        return -1;
    automaton->window = window;
    if (read_components(automaton, components) < 0 || read_negatives(automaton, negatives) < 0 ||
        program_read(&automaton->partition_alone, alone) < 0 ||
        program_read(&automaton->partition_joint, joint) < 0)
        return -1;
    if (automaton->component_count >= 63 || automaton->absent_count >= 63) {
        PyErr_SetString(PyExc_ValueError, "expected fewer than 63 components and negated events");
        return -1;
    }
    if (values_read_slots(&automaton->values, slots) < 0) return -1;
    return check_automaton(automaton);
}

/* --- the events */

int automaton_set_events(Automaton *automaton, PyObject *args) {
    PyObject *fields;
    long long rows;
    if (!PyArg_ParseTuple(args, "LO!", &rows, &PyTuple_Type, &fields)) return -1;
    fields_close(&automaton->values, &automaton->fields);
    automaton->values.rows = rows;
    if (fields_read(&automaton->values, &automaton->fields, fields) == 0) return 0;
    fields_close(&automaton->values, &automaton->fields);
    return -1;
}

/* Whether masks have bits of so many places only. */
static bool has_places(const Array *masks, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < masks->size; i++)
        if ((uint64_t)((const int64_t *)masks->items)[i] >> count != 0) return false;
    return true;
}

static bool fits(const Automaton *automaton) {
    const Array *arrays = automaton->arrays;
    Py_ssize_t size = arrays[TIMES].size, kinds = arrays[BEGINS].size;
    if (arrays[HANDLES].items == NULL && size > automaton->values.rows) return false;
    for (Py_ssize_t i = 0; i < arrays[HANDLES].size; i++) {
        int64_t handle = ((const int64_t *)arrays[HANDLES].items)[i];
        if (handle < 0 || handle >= automaton->values.rows) return false;
    }
    return arrays[CODES].size == size &&
           (arrays[HANDLES].items == NULL || arrays[HANDLES].size == size) &&
           (arrays[STARTS].items == NULL || arrays[STARTS].size == size) &&
           arrays[TAKES].size == kinds && arrays[ABSENTS].size == kinds;
}

static bool has_known_places(const Automaton *automaton) {
    const Array *arrays = automaton->arrays;
    return has_places(&arrays[BEGINS], automaton->component_count) &&
           has_places(&arrays[TAKES], automaton->component_count) &&
           has_places(&arrays[ABSENTS], automaton->absent_count);
}

int automaton_open(Automaton *automaton, PyObject **given) {
    static const Py_ssize_t widths[STREAM_ARRAYS] = {8, 8, 4, 1, 8, 8, 8};
    Array *arrays = automaton->arrays;
    automaton_close(automaton);
    for (int i = 0; i < STREAM_ARRAYS; i++)
        if (array_of(given[i], widths[i], &arrays[i]) < 0) return -1;
    if (!fits(automaton)) {
        PyErr_SetString(PyExc_ValueError, "expected arrays as long as there are events");
        return -1;
    }
    if (!has_known_places(automaton)) {
        PyErr_SetString(PyExc_ValueError, "expected bits of components and negated events");
        return -1;
    }
    automaton->stream = (Stream){.times = arrays[TIMES].items,
        .handles = arrays[HANDLES].items,
        .codes = arrays[CODES].items,
        .starts = arrays[STARTS].items,
        .begins = arrays[BEGINS].items,
        .takes = arrays[TAKES].items,
        .absents = arrays[ABSENTS].items,
        .size = arrays[TIMES].size,
        .kinds = arrays[BEGINS].size};
    return 0;
}

void automaton_close(Automaton *automaton) {
    for (int i = 0; i < STREAM_ARRAYS; i++) array_close(&automaton->arrays[i]);
    automaton->stream = (Stream){0};
}

static void component_free(Component *component) {
    program_free(&component->begin_alone);
    program_free(&component->begin_joint);
    program_free(&component->take_alone);
    program_free(&component->take_joint);
    program_free(&component->leave);
    for (int mode = 0; mode < 4; mode++) release_memory(component->live[mode].slots);
}

void automaton_free(Automaton *automaton) {
    automaton_close(automaton);
    for (Py_ssize_t i = 0; i < automaton->component_count; i++)
        component_free(&automaton->components[i]);
    for (Py_ssize_t i = 0; i < automaton->absent_count; i++) {
        program_free(&automaton->absent[i].alone);
        program_free(&automaton->absent[i].joint);
        release_memory(automaton->absent[i].after);
    }
    program_free(&automaton->partition_alone);
    program_free(&automaton->partition_joint);
    fields_close(&automaton->values, &automaton->fields);
    release_memory(automaton->components);
    release_memory(automaton->negatives);
    release_memory(automaton->absent);
    release_memory(automaton->values.slots);
}
