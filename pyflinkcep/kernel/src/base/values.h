/* SPDX-License-Identifier: Apache-2.0 */
/* What SQL over earlier stages computes with: values, fields, slots and programs. */
#ifndef PYFLINKCEP_VALUES_H
#define PYFLINKCEP_VALUES_H

#include "base/memory.h"
#include "base/opcodes.h"

/* --- values.c */

typedef struct {
    union {
        int64_t i;
        double f;
        PyObject *text; /* a str or a Decimal; the holder of the value holds a reference */
    } as;
    uint8_t kind; /* one of VALUE_* */
    uint8_t scale; /* of a decimal whose units of the last digit fit 64 bits: the digits after the
                      point, at most MOST_SCALE */
} Value;

enum { VALUE_NULL, VALUE_INT, VALUE_FLOAT, VALUE_TEXT, VALUE_OVERFLOWED, VALUE_UNITS };
enum { MOST_SCALE = 18 };

typedef struct {
    int32_t stage; /* negative for all stages */
    int32_t function;
    int32_t field; /* -1 to count events whatever they hold */
    int32_t source; /* of FIRST: the slot that counts the stage's events; of LAST: see offset */
    int64_t offset; /* of LAST from 1: this slot becomes what the slot `source` was */
    bool is_float;
} Slot;

typedef struct {
    const void *data; /* int64_t or double */
    const uint8_t *valid; /* a byte for each row, NULL when no value is null */
    PyObject *texts; /* instead of both: a list of str or Decimal, and None */
    bool is_float;
} Field;

typedef struct {
    Py_ssize_t fields, slot_count;
    Py_ssize_t fields_read; /* by slots and programs: so many fields are needed */
    Slot *slots;
    Field *columns;
    int64_t base, rows; /* the handle of the columns' first row, and how many there are */
    bool ansi;
} Values;

/* Some slots, those that distinguish partial matches. */
typedef struct {
    int32_t *slots;
    Py_ssize_t size;
} Live;

/* The slots of a partial match. */
typedef struct {
    Py_ssize_t size;
    Value slots[];
} Tally;

static inline Value value_keep(Value value) {
    if (value.kind == VALUE_TEXT) Py_INCREF(value.as.text);
    return value;
}

static inline void value_drop(Value value) {
    if (value.kind == VALUE_TEXT) Py_DECREF(value.as.text);
}

static inline Value value_null(void) { return (Value){.as.i = 0, .kind = VALUE_NULL}; }

static inline Value value_int(int64_t i) { return (Value){.as.i = i, .kind = VALUE_INT}; }

static inline Value value_float(double f) { return (Value){.as.f = f, .kind = VALUE_FLOAT}; }

/* Return a decimal of which `i` counts units of the last digit. */
static inline Value value_units(int64_t i, uint8_t scale) {
    return (Value){.as.i = i, .kind = VALUE_UNITS, .scale = scale};
}

/* Write the units that a decimal has with as many digits as another or more; whether they fit. */
bool units_at(Value value, uint8_t scale, int64_t *units);
/* Order two values of one type: texts by code point. */
int value_compare(Value a, Value b);
/* Return a field of an event, with a reference for the caller. */
Value values_field(const Values *values, int64_t field, int64_t handle);
/* Return a slot of a partial match without events. */
Value values_initial(const Values *values, Py_ssize_t slot);
/* Return the new value of a slot that sees an event, with a reference for the caller. */
Value slot_after(
    const Values *values, const Slot *slot, Value old, const Tally *before, int64_t handle);
/* Make the slots after an event that is taken for a stage; `before` is NULL at the start of a
   match. */
Tally *tally_after(const Values *values, const Tally *before, int32_t stage, int64_t handle);
/* Return the new value of a slot when an event is taken for a stage, with a reference for the
   caller. */
Value tally_slot_after(
    const Values *values, const Tally *before, int32_t stage, int64_t handle, Py_ssize_t slot);
/* Return a copy with its own references; NULL without memory. */
Tally *tally_copy(const Tally *tally);
/* Whether a sum had no value; `tally` is NULL for a partial match without events. */
bool tally_overflowed(const Tally *tally);
/* Release a tally and its values; NULL is none. */
void tally_free(Tally *tally);

/* --- programs.c */

typedef struct {
    int32_t opcode;
    Value operand; /* a number or a text; the function of a LIKE pattern */
} Instruction;

typedef struct {
    Py_ssize_t size;
    Instruction *code;
    Value *stack; /* room for a run of it */
} Program;

/* Read which slots distinguish partial matches; whether they are there is for the caller to check. */
int live_read(Live *live, PyObject *slots);
/* Read the slots of a partial match as Python hands them over. */
int values_read_slots(Values *values, PyObject *slots);
/* Read a program's instructions, unchecked. */
int program_read(Program *program, PyObject *code);
/* Refuse a program that lacks operands, reads slots that are not there, or leads out of itself. */
int program_check(const Program *program, Values *values);
/* Whether a program calls Python, or has texts. */
bool program_needs_python(const Program *program);
/* Whether fields or slots are objects of Python. */
bool values_need_python(const Values *values);
/* Release a program's instructions. */
void program_free(Program *program);

/* --- machine.c */

typedef enum {
    PROGRAM_FALSE,
    PROGRAM_TRUE,
    PROGRAM_OVERFLOW,
    PROGRAM_DIVIDED_BY_ZERO,
    PROGRAM_RAISED,
} ProgramAnswer;

/* Find whether an expression holds; `tally` is NULL for a partial match without events. */
ProgramAnswer program_run(
    const Values *values, const Program *program, const Tally *tally, int64_t handle);

#endif
