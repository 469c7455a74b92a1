/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine for match expressions, on numbers. Mirror: expressions/codegen.py; what each opcode
 * does is in expressions/program.py.
 */
#include "values.h"

#include <math.h>

enum { COUNT, FIRST, LAST, SUM, MIN, MAX };

enum {
    OP_FIELD = 0,
    OP_SLOT = 1,
    OP_INT = 2,
    OP_FLOAT = 3,
    OP_NULL = 5,
    OP_INT_TO_FLOAT = 6,
    OP_NEG = 10,
    OP_ADD = 11,
    OP_SUB = 12,
    OP_MUL = 13,
    OP_DIV = 14,
    OP_MOD = 15,
    OP_LT = 20,
    OP_LE = 21,
    OP_GT = 22,
    OP_GE = 23,
    OP_EQ = 24,
    OP_NE = 25,
    OP_EQ_NULLSAFE = 26,
    OP_NOT = 30,
    OP_AND = 31,
    OP_OR = 32,
    OP_IS_NULL = 33,
    OP_JUMP_IF_FALSE = 40,
    OP_JUMP_IF_TRUE = 41,
    OP_JUMP_IF_NOT_NULL = 42,
};

static const Value NOTHING = {{.i = 0}, VALUE_NULL};

static Value integer(int64_t i) { return (Value){{.i = i}, VALUE_INT}; }

static Value number(double f) { return (Value){{.f = f}, VALUE_FLOAT}; }

static Value to_float(Value value) {
    return value.kind == VALUE_INT ? number((double)value.as.i) : value;
}

/* Order two values of one type, NaN after everything and equal to itself. */
static int compared(Value a, Value b) {
    if (a.kind == VALUE_INT) return (a.as.i > b.as.i) - (a.as.i < b.as.i);
    bool a_nan = isnan(a.as.f), b_nan = isnan(b.as.f);
    if (a_nan || b_nan) return a_nan - b_nan;
    return (a.as.f > b.as.f) - (a.as.f < b.as.f);
}

/* --- fields and slots */

static Value values_field(const Values *values, Py_ssize_t field, int64_t handle) {
    const Field *column = &values->columns[field];
    int64_t row = handle - values->base;
    if (row < 0 || row >= values->rows) return NOTHING;
    if (column->valid != NULL && !column->valid[row]) return NOTHING;
    if (column->is_float) return number(((const double *)column->data)[row]);
    return integer(((const int64_t *)column->data)[row]);
}

static Value summed(const Values *values, Value before, Value value, bool is_float) {
    if (is_float) value = to_float(value);
    if (before.kind == VALUE_NULL) return value;
    if (is_float) return number(before.as.f + value.as.f);
    int64_t sum;
    bool over = add_overflows(before.as.i, value.as.i, &sum);
    return over && values->ansi ? (Value){{.i = 0}, VALUE_OVERFLOWED} : integer(sum);
}

static Value counted_in(
    const Values *values, const Slot *slot, const Value *before, Value own, Value value) {
    if (slot->function == FIRST) return before[slot->count].as.i == 0 ? value : own;
    if (slot->function == LAST) return value;
    if (value.kind == VALUE_NULL || own.kind == VALUE_OVERFLOWED) return own;
    if (slot->function == SUM) return summed(values, own, value, slot->is_float);
    if (own.kind == VALUE_NULL) return value;
    int order = compared(value, own);
    return (slot->function == MIN ? order < 0 : order > 0) ? value : own;
}

/* Work out the slots after an event; `before` is NULL where a match begins. */
void values_update(
    const Values *values, const Value *before, int32_t stage, int64_t handle, Value *after) {
    for (Py_ssize_t i = 0; i < values->slot_count; i++) {
        const Slot *slot = &values->slots[i];
        if (before != NULL)
            after[i] = before[i];
        else
            after[i] = slot->function == COUNT ? integer(0) : NOTHING;
    }
    for (Py_ssize_t i = 0; i < values->slot_count; i++) {
        const Slot *slot = &values->slots[i];
        if (slot->stage >= 0 && slot->stage != stage) continue;
        Value value = slot->field < 0 ? integer(1) : values_field(values, slot->field, handle);
        if (slot->function == COUNT)
            after[i].as.i += value.kind != VALUE_NULL;
        else if (slot->function == FIRST && before == NULL)
            after[i] = value;
        else
            after[i] = counted_in(values, slot, before, after[i], value);
    }
}

/* --- the machine */

static ValuesError int_arithmetic(
    const Values *values, int32_t opcode, int64_t a, int64_t b, Value *result) {
    int64_t value = 0;
    bool over = false;
    switch (opcode) {
    case OP_ADD: over = add_overflows(a, b, &value); break;
    case OP_SUB: over = subtract_overflows(a, b, &value); break;
    case OP_MUL: over = multiply_overflows(a, b, &value); break;
    default:
        if (b == 0) {
            *result = NOTHING;
            return values->ansi ? VALUES_DIVIDED_BY_ZERO : VALUES_OK;
        }
        value = b == -1 ? 0 : a % b;
    }
    *result = integer(value);
    return over && values->ansi ? VALUES_OVERFLOW : VALUES_OK;
}

static ValuesError float_arithmetic(
    const Values *values, int32_t opcode, double a, double b, Value *result) {
    if ((opcode == OP_DIV || opcode == OP_MOD) && b == 0) {
        *result = NOTHING;
        return values->ansi ? VALUES_DIVIDED_BY_ZERO : VALUES_OK;
    }
    switch (opcode) {
    case OP_ADD: *result = number(a + b); break;
    case OP_SUB: *result = number(a - b); break;
    case OP_MUL: *result = number(a * b); break;
    case OP_DIV: *result = number(a / b); break;
    default: *result = number(fmod(a, b));
    }
    return VALUES_OK;
}

static ValuesError arithmetic(
    const Values *values, int32_t opcode, Value a, Value b, Value *result) {
    *result = NOTHING;
    if (a.kind == VALUE_NULL || b.kind == VALUE_NULL) return VALUES_OK;
    if (a.kind == VALUE_INT) return int_arithmetic(values, opcode, a.as.i, b.as.i, result);
    return float_arithmetic(values, opcode, a.as.f, b.as.f, result);
}

static Value comparison(int32_t opcode, Value a, Value b) {
    bool nulls = a.kind == VALUE_NULL || b.kind == VALUE_NULL;
    if (opcode == OP_EQ_NULLSAFE)
        return integer(nulls ? a.kind == b.kind : compared(a, b) == 0);
    if (nulls) return NOTHING;
    int order = compared(a, b);
    switch (opcode) {
    case OP_LT: return integer(order < 0);
    case OP_LE: return integer(order <= 0);
    case OP_GT: return integer(order > 0);
    case OP_GE: return integer(order >= 0);
    case OP_EQ: return integer(order == 0);
    default: return integer(order != 0);
    }
}

static bool is_true(Value value) { return value.kind != VALUE_NULL && value.as.i != 0; }

static bool is_false(Value value) { return value.kind != VALUE_NULL && value.as.i == 0; }

static Value logic(int32_t opcode, Value a, Value b) {
    bool is_or = opcode == OP_OR;
    if (is_or ? is_true(a) || is_true(b) : is_false(a) || is_false(b)) return integer(is_or);
    if (a.kind == VALUE_NULL || b.kind == VALUE_NULL) return NOTHING;
    return integer(!is_or);
}

static ValuesError unary(const Values *values, int32_t opcode, Value *top) {
    if (opcode == OP_IS_NULL) {
        *top = integer(top->kind == VALUE_NULL);
    } else if (top->kind == VALUE_NULL) {
        return VALUES_OK;
    } else if (opcode == OP_INT_TO_FLOAT) {
        *top = to_float(*top);
    } else if (opcode == OP_NOT) {
        *top = integer(top->as.i == 0);
    } else if (top->kind == VALUE_FLOAT) {
        *top = number(-top->as.f);
    } else {
        return int_arithmetic(values, OP_SUB, 0, top->as.i, top);
    }
    return VALUES_OK;
}

static bool any_overflowed(const Values *values, const Value *slots) {
    for (Py_ssize_t i = 0; slots != NULL && i < values->slot_count; i++)
        if (slots[i].kind == VALUE_OVERFLOWED) return true;
    return false;
}

/* Find whether an expression holds; `slots` is NULL for a partial match without events. */
ValuesError values_holds(
    const Values *values, const Program *program, const Value *slots, int64_t handle,
    bool *holds) {
    Value *stack = program->stack;
    Py_ssize_t size = 0;
    ValuesError error = any_overflowed(values, slots) ? VALUES_OVERFLOW : VALUES_OK;
    for (Py_ssize_t at = 0; at < program->size && error == VALUES_OK; at++) {
        const Instruction *now = &program->code[at];
        int64_t operand = now->operand.as.i;
        switch (now->opcode) {
        case OP_FIELD: stack[size++] = values_field(values, operand, handle); break;
        case OP_SLOT:
            if (slots != NULL)
                stack[size++] = slots[operand];
            else
                stack[size++] =
                    values->slots[operand].function == COUNT ? integer(0) : NOTHING;
            break;
        case OP_INT:
        case OP_FLOAT: stack[size++] = now->operand; break;
        case OP_NULL: stack[size++] = NOTHING; break;
        case OP_INT_TO_FLOAT:
        case OP_NEG:
        case OP_NOT:
        case OP_IS_NULL: error = unary(values, now->opcode, &stack[size - 1]); break;
        case OP_JUMP_IF_FALSE: at += is_false(stack[size - 1]) ? operand : 0; break;
        case OP_JUMP_IF_TRUE: at += is_true(stack[size - 1]) ? operand : 0; break;
        case OP_JUMP_IF_NOT_NULL:
            if (stack[size - 1].kind != VALUE_NULL)
                at += operand;
            else
                size--;
            break;
        default: {
            Value a = stack[size - 2], b = stack[size - 1];
            size--;
            if (now->opcode == OP_AND || now->opcode == OP_OR)
                stack[size - 1] = logic(now->opcode, a, b);
            else if (now->opcode >= OP_LT)
                stack[size - 1] = comparison(now->opcode, a, b);
            else
                error = arithmetic(values, now->opcode, a, b, &stack[size - 1]);
        }
        }
    }
    *holds = error == VALUES_OK && is_true(stack[0]);
    return error;
}
