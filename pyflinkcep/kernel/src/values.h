/* SPDX-License-Identifier: Apache-2.0 */
/* What SQL over earlier stages computes with: values, programs, fields, slots. */
#ifndef PYFLINKCEP_VALUES_H
#define PYFLINKCEP_VALUES_H

#include "memory.h"

typedef struct {
    union {
        int64_t i;
        double f;
    } as;
    uint8_t kind; /* one of VALUE_* */
} Value;

enum { VALUE_NULL, VALUE_INT, VALUE_FLOAT, VALUE_OVERFLOWED };

typedef struct {
    int32_t opcode;
    Value operand;
} Instruction;

typedef struct {
    Py_ssize_t size;
    Instruction *code;
    Value *stack; /* room for a run of it */
} Program;

typedef struct {
    int32_t stage; /* negative for all stages */
    int32_t function;
    int32_t field; /* -1 to count events whatever they hold */
    int32_t count; /* of FIRST: the slot that counts the stage's events */
    bool is_float;
} Slot;

typedef struct {
    const void *data; /* int64_t or double */
    const uint8_t *valid; /* a byte for each row, NULL when no value is null */
    bool is_float;
} Field;

typedef enum { VALUES_OK, VALUES_OVERFLOW, VALUES_DIVIDED_BY_ZERO } ValuesError;

typedef struct {
    Py_ssize_t fields, slot_count;
    Slot *slots;
    Field *columns;
    int64_t base, rows; /* the handle of the columns' first row, and how many there are */
    bool ansi;
} Values;

void values_update(
    const Values *values, const Value *before, int32_t stage, int64_t handle, Value *after);
ValuesError values_holds(
    const Values *values, const Program *program, const Value *slots, int64_t handle, bool *holds);

#endif
