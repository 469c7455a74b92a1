/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the standard's search knows of a match: slots as in expressions/program.py, with two
 * differences. They include the current row, and a slot may see the rows of several variables, with
 * another field in each. Mirror: engines/rows/values.py.
 */
#include "rows/search.h"

/* --- construction */

static int read_slot(Slots *slots, Py_ssize_t number, PyObject *spec) {
    Slot *slot = &slots->values.slots[number];
    PyObject *fields;
    long long offset;
    int is_float;
    if (!PyArg_ParseTuple(
            spec, "iO!iLp", &slot->function, &PyTuple_Type, &fields, &slot->source, &offset,
            &is_float))
        return -1;
    slot->offset = offset;
    slot->is_float = is_float;
    if (slot->source < -1 || slot->source >= slots->values.slot_count) {
        PyErr_SetString(PyExc_ValueError, "expected slots that read other slots");
        return -1;
    }
    if (PyTuple_Size(fields) != slots->variables) {
        PyErr_SetString(PyExc_ValueError, "expected a field for each variable");
        return -1;
    }
    for (Py_ssize_t i = 0; i < slots->variables; i++) {
        long field = PyLong_AsLong(PyTuple_GetItem(fields, i));
        if (field == -1 && PyErr_Occurred()) return -1;
        slots->fields_seen[number * slots->variables + i] = (int32_t)field;
        if (field != SEES_NOTHING) slots->changes[i] = true;
        if (field >= slots->values.fields_read) slots->values.fields_read = field + 1;
    }
    return 0;
}

static Tally *new_tally(Py_ssize_t size) {
    Tally *tally = allocate_zeros(1, sizeof(Tally) + (size_t)size * sizeof(Value));
    if (tally != NULL) tally->size = size;
    return tally;
}

int slots_read(Slots *slots, PyObject *specs, PyObject *programs, Py_ssize_t variables) {
    Py_ssize_t count = PyTuple_Size(specs);
    slots->variables = variables;
    slots->values.slots = allocate_zeros(count, sizeof(Slot));
    slots->fields_seen = allocate_zeros(count * variables, sizeof(int32_t));
    slots->changes = allocate_zeros(variables, sizeof(bool));
    slots->programs = allocate_zeros(variables, sizeof(Program));
    slots->now = new_tally(count);
    slots->next = new_tally(count);
    if (slots->values.slots == NULL || slots->fields_seen == NULL || slots->changes == NULL ||
        slots->programs == NULL || slots->now == NULL || slots->next == NULL)
        return -1;
    slots->values.slot_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_slot(slots, i, PyTuple_GetItem(specs, i)) < 0) return -1;
    for (Py_ssize_t i = 0; i < variables; i++) {
        slots->program_count = i + 1;
        PyObject *code = PyTuple_GetItem(programs, i);
        if (code == NULL || program_read(&slots->programs[i], code) < 0 ||
            program_check(&slots->programs[i], &slots->values) < 0)
            return -1;
    }
    return 0;
}

static void drop_all(Value *values, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        value_drop(values[i]);
        values[i] = value_null();
    }
}

static void keep_all(Value *to, const Value *from, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) to[i] = value_keep(from[i]);
}

void slots_free(Slots *slots) {
    slots_forget(slots);
    for (Py_ssize_t i = 0; i < slots->program_count; i++) program_free(&slots->programs[i]);
    if (slots->now != NULL) drop_all(slots->now->slots, slots->now->size);
    if (slots->next != NULL) drop_all(slots->next->slots, slots->next->size);
    fields_close(&slots->values, &slots->fields);
    release_memory(slots->values.slots);
    release_memory(slots->fields_seen);
    release_memory(slots->changes);
    release_memory(slots->programs);
    release_memory(slots->now);
    release_memory(slots->next);
    release_memory(slots->ways);
}

/* --- the current match */

void slots_begin(Slots *slots, int64_t number) {
    drop_all(slots->now->slots, slots->now->size);
    for (Py_ssize_t i = 0; i < slots->now->size; i++)
        slots->now->slots[i] = values_initial(&slots->values, i);
    if (slots->has_number) slots->now->slots[0] = value_int(number);
}

void slots_take(Slots *slots, int32_t variable, int64_t row) {
    if (!slots->changes[variable]) return;
    const Tally *before = slots->now;
    for (Py_ssize_t i = 0; i < before->size; i++) {
        int32_t field = slots->fields_seen[i * slots->variables + variable];
        if (field == SEES_NOTHING) {
            slots->next->slots[i] = value_keep(before->slots[i]);
            continue;
        }
        Slot slot = slots->values.slots[i];
        slot.field = field;
        slots->next->slots[i] = slot_after(&slots->values, &slot, before->slots[i], before, row);
    }
}

ProgramAnswer slots_ask(Slots *slots, int32_t variable, int64_t row) {
    const Program *program = &slots->programs[variable];
    if (program->size == 0) return PROGRAM_TRUE;
    const Tally *known = slots->changes[variable] ? slots->next : slots->now;
    return program_run(&slots->values, program, known, row);
}

void slots_settle(Slots *slots, int32_t variable, bool holds) {
    if (!slots->changes[variable]) return;
    if (holds) {
        Tally *before = slots->now;
        slots->now = slots->next;
        slots->next = before;
    }
    drop_all(slots->next->slots, slots->next->size);
}

/* --- the untried alternatives */

int slots_push(Slots *slots) {
    Py_ssize_t width = slots->now->size, size = slots->way_count * width;
    if (width > 0) {
        Value *ways = reserve(slots->ways, &slots->way_room, size + width, sizeof(Value));
        if (ways == NULL) return -1;
        slots->ways = ways;
        keep_all(ways + size, slots->now->slots, width);
    }
    slots->way_count++;
    return 0;
}

Value *slots_last(const Slots *slots) {
    Py_ssize_t width = slots->now->size;
    return width > 0 ? slots->ways + (slots->way_count - 1) * width : NULL;
}

void slots_go_back(Slots *slots) {
    drop_all(slots->now->slots, slots->now->size);
    keep_all(slots->now->slots, slots_last(slots), slots->now->size);
}

void slots_forget(Slots *slots) {
    for (; slots->way_count > 0; slots->way_count--) drop_all(slots_last(slots), slots->now->size);
}
