/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of events, and slots of partial matches, as in expressions/program.py. Mirror: the
 * updates in expressions/codegen.py.
 */
#include "base/values.h"

#include "base/rules.h"

#include <string.h>

static int objects_compare(PyObject *a, PyObject *b) {
    if (PyUnicode_Check(a) && PyUnicode_Check(b)) return PyUnicode_Compare(a, b);
    int less = PyObject_RichCompareBool(a, b, Py_LT),
        greater = PyObject_RichCompareBool(b, a, Py_LT);
    if (less < 0 || greater < 0) PyErr_Clear(); /* of no type that programs have */
    return (greater > 0) - (less > 0);
}

bool units_at(Value value, uint8_t scale, int64_t *units) {
    int64_t factor = 1;
    for (uint8_t i = value.scale; i < scale; i++) factor *= 10;
    return !multiply_overflows(value.as.i, factor, units);
}

static int units_compare(Value a, Value b) {
    if (a.scale > b.scale) return -units_compare(b, a);
    int64_t units;
    if (!units_at(a, b.scale, &units)) return a.as.i < 0 ? -1 : 1; /* farther from 0 than b */
    return (units > b.as.i) - (units < b.as.i);
}

int value_compare(Value a, Value b) {
    if (a.kind == VALUE_UNITS && b.kind == VALUE_UNITS) return units_compare(a, b);
    if (a.kind != b.kind) return (a.kind > b.kind) - (a.kind < b.kind); /* no program has this */
    if (a.kind == VALUE_INT) return (a.as.i > b.as.i) - (a.as.i < b.as.i);
    if (a.kind == VALUE_TEXT) return objects_compare(a.as.text, b.as.text);
    return float_less(b.as.f, a.as.f) - float_less(a.as.f, b.as.f);
}

static Value text_of(PyObject *texts, int64_t row) {
    PyObject *text = PyList_GetItem(texts, (Py_ssize_t)row);
    if (text == NULL) PyErr_Clear(); /* a list that was cut since */
    if (text == NULL || text == Py_None) return value_null();
    return value_keep((Value){.as.text = text, .kind = VALUE_TEXT});
}

Value values_field(const Values *values, int64_t field, int64_t handle) {
    const Field *column = &values->columns[field];
    int64_t row;
    if (subtract_overflows(handle, values->base, &row) || row < 0 || row >= values->rows)
        return value_null();
    if (column->texts != NULL) return text_of(column->texts, row);
    if (column->valid != NULL && !column->valid[row]) return value_null();
    if (column->is_float) return value_float(((const double *)column->data)[row]);
    return value_int(((const int64_t *)column->data)[row]);
}

Value values_initial(const Values *values, Py_ssize_t slot) {
    return values->slots[slot].function == SLOT_COUNT ? value_int(0) : value_null();
}

/* Return what a function of expressions/aggregates.py makes of two objects, which it drops, with a
   reference for the caller; the function is kept in `kept` while the thread runs. */
static Value accumulated(PyObject **kept, const char *name, PyObject *before, PyObject *value) {
    if (*kept == NULL) {
        PyObject *module = PyImport_ImportModule("pyflinkcep.expressions.aggregates");
        *kept = module == NULL ? NULL : PyObject_GetAttrString(module, name);
        Py_XDECREF(module);
    }
    PyObject *found = NULL;
    if (*kept != NULL && before != NULL && value != NULL)
        found = PyObject_CallFunctionObjArgs(*kept, before, value, NULL);
    Py_XDECREF(before);
    Py_XDECREF(value);
    if (found == NULL) {
        PyErr_Clear();
        return (Value){.as.i = 0, .kind = VALUE_OVERFLOWED};
    }
    return (Value){.as.text = found, .kind = VALUE_TEXT};
}

static Value decimals_summed(Value before, Value value) {
    static _Thread_local PyObject *add = NULL;
    return accumulated(&add, "added", Py_NewRef(before.as.text), Py_NewRef(value.as.text));
}

static Value listed(Value before, double number) {
    static _Thread_local PyObject *append = NULL;
    PyObject *list = Py_NewRef(before.kind == VALUE_NULL ? Py_None : before.as.text);
    return accumulated(&append, "appended", list, PyFloat_FromDouble(number));
}

static Value summed(const Values *values, Value before, Value value, bool is_float) {
    if (before.kind == VALUE_NULL) return value;
    if (is_float) return value_float(before.as.f + value.as.f);
    int64_t sum;
    bool over = add_overflows(before.as.i, value.as.i, &sum);
    return over && values->ansi ? (Value){.as.i = 0, .kind = VALUE_OVERFLOWED} : value_int(sum);
}

/* Return the field's value if it is less, or greater; otherwise the slot's. */
static Value extreme(int32_t function, Value before, Value value) {
    if (before.kind == VALUE_NULL) return value;
    int order = value_compare(value, before);
    return (function == SLOT_MIN ? order < 0 : order > 0) ? value : before;
}

/* Return a slot of the partial match before an event. */
static Value slot_before(const Values *values, const Tally *before, Py_ssize_t slot) {
    return before == NULL ? values_initial(values, slot) : before->slots[slot];
}

static Value mean(Value before, Value value, int64_t count) {
    if (before.kind == VALUE_NULL) return value;
    return value_float(before.as.f + (value.as.f - before.as.f) / (double)(count + 1));
}

static Value moment(
    const Values *values, const Slot *slot, Value old, const Tally *before, double number) {
    if (old.kind == VALUE_NULL) return value_float(number * (number - number));
    int32_t counter = values->slots[slot->source].source;
    int64_t count = slot_before(values, before, counter).as.i;
    double distance = number - slot_before(values, before, slot->source).as.f;
    return value_float(old.as.f + distance * (distance - distance / (double)(count + 1)));
}

Value slot_after(
    const Values *values, const Slot *slot, Value old, const Tally *before, int64_t handle) {
    if (slot->function == SLOT_LAST && slot->offset > 0)
        return value_keep(slot_before(values, before, slot->source));
    Value value = slot->field < 0 ? value_int(1) : values_field(values, slot->field, handle);
    if (slot->is_float && value.kind == VALUE_INT) value = value_float((double)value.as.i);
    Value after = old;
    if (slot->function == SLOT_LAST)
        after = value;
    else if (slot->function == SLOT_FIRST)
        after = slot_before(values, before, slot->source).as.i == slot->offset ? value : old;
    else if (value.kind == VALUE_NULL || old.kind == VALUE_OVERFLOWED)
        after = old;
    else if (slot->function == SLOT_COUNT)
        after = value_int(old.as.i + 1);
    else if (slot->function == SLOT_MEAN)
        after = mean(old, value, slot_before(values, before, slot->source).as.i);
    else if (slot->function == SLOT_MOMENT)
        after = moment(values, slot, old, before, value.as.f);
    else if (slot->function == SLOT_LIST)
        return listed(old, value.as.f);
    else if (slot->function == SLOT_SUM && old.kind == VALUE_TEXT && value.kind == VALUE_TEXT) {
        after = decimals_summed(old, value);
        value_drop(value);
        return after;
    } else if (slot->function == SLOT_SUM)
        after = summed(values, old, value, slot->is_float);
    else
        after = extreme(slot->function, old, value);
    value_keep(after);
    value_drop(value);
    return after;
}

static size_t size_of_tally(Py_ssize_t slots) {
    return sizeof(Tally) + (size_t)slots * sizeof(Value);
}

Value tally_slot_after(
    const Values *values, const Tally *before, int32_t stage, int64_t handle, Py_ssize_t number) {
    const Slot *slot = &values->slots[number];
    Value old = slot_before(values, before, number);
    bool sees = slot->stage < 0 || slot->stage == stage;
    return sees ? slot_after(values, slot, old, before, handle) : value_keep(old);
}

Tally *tally_after(const Values *values, const Tally *before, int32_t stage, int64_t handle) {
    Tally *tally = allocate_small(size_of_tally(values->slot_count));
    if (tally == NULL) return NULL;
    tally->size = values->slot_count;
    for (Py_ssize_t i = 0; i < values->slot_count; i++)
        tally->slots[i] = tally_slot_after(values, before, stage, handle, i);
    return tally;
}

Tally *tally_copy(const Tally *tally) {
    size_t size = size_of_tally(tally->size);
    Tally *copy = allocate_small(size);
    if (copy == NULL) return NULL;
    memcpy(copy, tally, size);
    for (Py_ssize_t i = 0; i < copy->size; i++) value_keep(copy->slots[i]);
    return copy;
}

bool tally_overflowed(const Tally *tally) {
    for (Py_ssize_t i = 0; tally != NULL && i < tally->size; i++)
        if (tally->slots[i].kind == VALUE_OVERFLOWED) return true;
    return false;
}

void tally_free(Tally *tally) {
    if (tally == NULL) return;
    for (Py_ssize_t i = 0; i < tally->size; i++) value_drop(tally->slots[i]);
    release_small(tally, size_of_tally(tally->size));
}
