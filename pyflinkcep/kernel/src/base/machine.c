/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine for match expressions; the opcodes are described in expressions/program.py. Mirror:
 * the conditions in expressions/codegen.py.
 */
#include "base/functions.h"
#include "base/lock.h"
#include "base/rules.h"
#include "base/values.h"

#include <math.h>

typedef struct {
    const Values *values;
    const Tally *tally; /* NULL for a partial match without events */
    int64_t handle;
    Value *stack; /* each value with a reference of its own */
    Py_ssize_t size;
    ProgramAnswer error; /* PROGRAM_TRUE for none */
    bool took_lock; /* Python's, for the rest of the run: its objects may be on the stack */
} Machine;

static bool is_true(Value value) { return value.kind != VALUE_NULL && value.as.i != 0; }

static bool is_false(Value value) { return value.kind != VALUE_NULL && value.as.i == 0; }

/* --- operations */

static Value fail(Machine *machine, ProgramAnswer error) {
    machine->error = error;
    return value_null();
}

/* Return what a program that confuses texts and numbers has; none of the compiler's does. */
static Value wrong_type(Machine *machine) {
    lock_take();
    PyErr_SetString(PyExc_TypeError, "expected operands of the type of their operation");
    return fail(machine, PROGRAM_RAISED);
}

static Value by_zero(Machine *machine) {
    return machine->values->ansi ? fail(machine, PROGRAM_DIVIDED_BY_ZERO) : value_null();
}

static Value int_arithmetic(Machine *machine, int32_t opcode, int64_t a, int64_t b) {
    int64_t result = 0;
    bool over = false;
    switch (opcode) {
    case OP_ADD:
    case OP_ADD_PASSING: over = add_overflows(a, b, &result); break;
    case OP_SUB: over = subtract_overflows(a, b, &result); break;
    case OP_MUL: over = multiply_overflows(a, b, &result); break;
    default:
        if (opcode == OP_PMOD)
            result = int_pmod(a, b);
        else if (b != -1)
            result = opcode == OP_MOD ? a % b : a / b;
        else if (opcode == OP_INT_DIV)
            over = subtract_overflows(0, a, &result);
    }
    return over && machine->values->ansi ? fail(machine, PROGRAM_OVERFLOW) : value_int(result);
}

static Value float_arithmetic(int32_t opcode, double a, double b) {
    switch (opcode) {
    case OP_ADD:
    case OP_ADD_PASSING: return value_float(a + b);
    case OP_SUB: return value_float(a - b);
    case OP_MUL: return value_float(a * b);
    case OP_PMOD: return value_float(float_pmod(a, b));
    default: return value_float(opcode == OP_MOD ? fmod(a, b) : a / b);
    }
}

static bool is_zero(Value value) {
    return value.kind == VALUE_INT ? value.as.i == 0 : value.as.f == 0;
}

static Value arithmetic(Machine *machine, int32_t opcode, Value a, Value b) {
    if (DIVIDES[opcode] && is_zero(b)) return by_zero(machine);
    if (a.kind == VALUE_INT) return int_arithmetic(machine, opcode, a.as.i, b.as.i);
    return float_arithmetic(opcode, a.as.f, b.as.f);
}

static Value comparison(int32_t opcode, Value a, Value b) {
    int order = value_compare(a, b);
    switch (opcode) {
    case OP_LT: return value_int(order < 0);
    case OP_LE: return value_int(order <= 0);
    case OP_GT: return value_int(order > 0);
    case OP_GE: return value_int(order >= 0);
    case OP_NE: return value_int(order != 0);
    default: return value_int(order == 0);
    }
}

static Value logic(bool is_or, Value a, Value b) {
    if (is_or ? is_true(a) || is_true(b) : is_false(a) || is_false(b)) return value_int(is_or);
    if (a.kind == VALUE_NULL || b.kind == VALUE_NULL) return value_null();
    return value_int(!is_or);
}

static Value joined(Machine *machine, Value a, Value b) {
    PyObject *text = PyUnicode_Concat(a.as.text, b.as.text);
    return text == NULL ? fail(machine, PROGRAM_RAISED)
                        : (Value){.as.text = text, .kind = VALUE_TEXT};
}

static Value begins(Machine *machine, Value a, Value b) {
    Py_ssize_t found = PyUnicode_Tailmatch(a.as.text, b.as.text, 0, PY_SSIZE_T_MAX, -1);
    return found < 0 ? fail(machine, PROGRAM_RAISED) : value_int(found);
}

static Value extreme(int32_t opcode, Value a, Value b) {
    int order = value_compare(b, a);
    return value_keep((opcode == OP_LEAST ? order < 0 : order > 0) ? b : a);
}

/* --- functions of Python: what decimals do */

static void take_lock(Machine *machine) {
    if (lock_take()) machine->took_lock = true;
}

/* Return a decimal as a Decimal. */
static PyObject *decimal_of(Value value) {
    PyObject *module = PyImport_ImportModule("decimal"), *decimal = NULL;
    PyObject *text = PyUnicode_FromFormat("%lldE-%d", (long long)value.as.i, (int)value.scale);
    if (module != NULL && text != NULL) decimal = PyObject_CallMethod(module, "Decimal", "O", text);
    Py_XDECREF(module);
    Py_XDECREF(text);
    return decimal;
}

static PyObject *object_of(Value value) {
    if (value.kind == VALUE_UNITS) return decimal_of(value);
    if (value.kind == VALUE_INT) return PyLong_FromLongLong(value.as.i);
    if (value.kind == VALUE_FLOAT) return PyFloat_FromDouble(value.as.f);
    return Py_NewRef(value.as.text);
}

/* Return what a function returned as a value, and drop it. */
static Value value_of(Machine *machine, PyObject *found) {
    Value value = {.as.text = found, .kind = VALUE_TEXT};
    if (found == Py_None)
        value = value_null();
    else if (PyLong_Check(found))
        value = value_int(PyLong_AsLongLong(found));
    else if (PyFloat_Check(found))
        value = value_float(PyFloat_AsDouble(found));
    else
        return value;
    Py_DECREF(found);
    return PyErr_Occurred() ? fail(machine, PROGRAM_RAISED) : value;
}

static Value not_computed(Machine *machine) {
    ProgramAnswer error = PROGRAM_RAISED;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) error = PROGRAM_OVERFLOW;
    if (PyErr_ExceptionMatches(PyExc_ZeroDivisionError)) error = PROGRAM_DIVIDED_BY_ZERO;
    if (error != PROGRAM_RAISED) PyErr_Clear();
    return fail(machine, error);
}

/* Call the function of an instruction with one value, or two if `b` is not NULL. */
static Value called(Machine *machine, const Instruction *now, Value a, const Value *b) {
    take_lock(machine);
    if (PyErr_Occurred()) return fail(machine, PROGRAM_RAISED); /* before, as Ctrl-C is */
    PyObject *first = object_of(a), *second = b == NULL ? NULL : object_of(*b), *found = NULL;
    if (first != NULL && (b == NULL || second != NULL))
        found = PyObject_CallFunctionObjArgs(now->operand.as.text, first, second, NULL);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return found == NULL ? not_computed(machine) : value_of(machine, found);
}

static bool is_called(const Instruction *now) {
    return now->operand.kind == VALUE_TEXT && now->opcode != OP_LIKE;
}

/* --- decimals whose units fit 64 bits */

/* Write the result of an operator on two decimals; whether its units fit 64 bits too. */
static bool units_computed(int32_t opcode, Value a, Value b, Value *result) {
    if (a.kind != VALUE_UNITS || b.kind != VALUE_UNITS) return false;
    uint8_t scale = opcode == OP_MUL ? a.scale + b.scale : a.scale > b.scale ? a.scale : b.scale;
    int64_t left = a.as.i, right = b.as.i, units;
    if (scale > MOST_SCALE) return false;
    if (opcode != OP_MUL && !(units_at(a, scale, &left) && units_at(b, scale, &right)))
        return false;
    switch (opcode) {
    case OP_MUL:
        if (multiply_overflows(left, right, &units)) return false;
        break;
    case OP_ADD:
    case OP_ADD_PASSING:
        if (add_overflows(left, right, &units)) return false;
        break;
    case OP_SUB:
        if (subtract_overflows(left, right, &units)) return false;
        break;
    default: return false;
    }
    *result = value_units(units, scale);
    return true;
}

static Value of_known(Machine *machine, const Instruction *now, Value a, Value b);

/* Return the result of an operator on two decimals of which one is a Decimal. */
static Value of_decimals(Machine *machine, const Instruction *now, Value a, Value b) {
    take_lock(machine);
    if (PyErr_Occurred()) return fail(machine, PROGRAM_RAISED);
    bool is_first = a.kind == VALUE_UNITS;
    PyObject *made = decimal_of(is_first ? a : b);
    if (made == NULL) return fail(machine, PROGRAM_RAISED);
    Value other = {.as.text = made, .kind = VALUE_TEXT};
    Value result = of_known(machine, now, is_first ? other : a, is_first ? b : other);
    Py_DECREF(made);
    return result;
}

/* Return the result of an operator on two values that are not NULL, with a reference of its own. */
static Value of_known(Machine *machine, const Instruction *now, Value a, Value b) {
    int32_t opcode = now->opcode;
    Value computed;
    if (units_computed(opcode, a, b, &computed)) return computed;
    if (is_called(now)) return called(machine, now, a, &b);
    if (a.kind + b.kind == VALUE_UNITS + VALUE_TEXT && a.kind != b.kind)
        return of_decimals(machine, now, a, b);
    bool of_texts = opcode == OP_CONCAT || opcode == OP_STARTS_WITH;
    if (a.kind != b.kind || (of_texts && a.kind != VALUE_TEXT)) return wrong_type(machine);
    switch (opcode) {
    case OP_LEAST:
    case OP_GREATEST: return extreme(opcode, a, b);
    case OP_CONCAT: return joined(machine, a, b);
    case OP_STARTS_WITH: return begins(machine, a, b);
    default:
        if (opcode >= FIRST_FUNCTION) return value_float(number_computed(opcode, a.as.f, b.as.f));
        return opcode >= OP_LT && opcode <= OP_EQ_NULLSAFE ? comparison(opcode, a, b)
                                                           : arithmetic(machine, opcode, a, b);
    }
}

/* Return the same of any two values. */
static Value binary(Machine *machine, const Instruction *now, Value a, Value b) {
    int32_t opcode = now->opcode;
    bool a_null = a.kind == VALUE_NULL, b_null = b.kind == VALUE_NULL;
    if (NULLS_OF[opcode] == NULLS_DECIDES) return logic(opcode == OP_OR, a, b);
    if (!a_null && !b_null) return of_known(machine, now, a, b);
    switch (NULLS_OF[opcode]) {
    case NULLS_EQUALS: return value_int(a_null == b_null);
    case NULLS_YIELDS: return value_keep(a_null ? b : a);
    default: return value_null();
    }
}

/* Test a LIKE pattern, a Python function that returns None for no match. */
static Value like(Machine *machine, const Instruction *now, Value a) {
    if (PyErr_Occurred()) return fail(machine, PROGRAM_RAISED);
    PyObject *answer = PyObject_CallFunctionObjArgs(now->operand.as.text, a.as.text, NULL);
    if (answer == NULL) return fail(machine, PROGRAM_RAISED);
    Py_DECREF(answer);
    return value_int(answer != Py_None);
}

static Value magnitude(Machine *machine, int32_t opcode, Value a) {
    if (a.kind == VALUE_FLOAT) return value_float(opcode == OP_ABS ? fabs(a.as.f) : -a.as.f);
    if (opcode == OP_ABS && a.as.i >= 0) return a;
    return int_arithmetic(machine, OP_SUB, 0, a.as.i);
}

static Value whole(Machine *machine, double number) {
    int64_t found;
    if (number_whole(number, &found) || !machine->values->ansi) return value_int(found);
    return fail(machine, PROGRAM_OVERFLOW);
}

/* Return the result of an operator on one value that is not NULL. */
static Value unary(Machine *machine, const Instruction *now, Value a) {
    if (is_called(now)) return called(machine, now, a, NULL);
    if ((a.kind == VALUE_TEXT) != (now->opcode == OP_LIKE)) return wrong_type(machine);
    switch (now->opcode) {
    case OP_INT_TO_DECIMAL:
        return a.kind == VALUE_INT ? value_units(a.as.i, (uint8_t)now->operand.as.i) : a;
    case OP_INT_TO_FLOAT: return a.kind == VALUE_INT ? value_float((double)a.as.i) : a;
    case OP_NOT: return value_int(a.as.i == 0);
    case OP_LIKE: return like(machine, now, a);
    case OP_FLOOR: return whole(machine, floor(a.as.f));
    case OP_CEIL: return whole(machine, ceil(a.as.f));
    case OP_NEG:
    case OP_ABS: return magnitude(machine, now->opcode, a);
    case OP_ROUND:
    case OP_TRUNCATE: return value_float(number_rounded(now->opcode, a.as.f, now->operand.as.i));
    default:
        if (OF_POSITIVE[now->opcode] && a.as.f <= 0) return value_null();
        return value_float(number_computed(now->opcode, a.as.f, 0));
    }
}

/* --- the stack */

static void push(Machine *machine, Value value) { machine->stack[machine->size++] = value; }

static Value *top(Machine *machine) { return &machine->stack[machine->size - 1]; }

static void drop_top(Machine *machine) { value_drop(machine->stack[--machine->size]); }

static void replace_top(Machine *machine, Value value) {
    Value before = *top(machine);
    *top(machine) = value;
    value_drop(before);
}

static Value slot_of(const Machine *machine, int64_t slot) {
    if (machine->tally == NULL) return values_initial(machine->values, (Py_ssize_t)slot);
    return value_keep(machine->tally->slots[slot]);
}

/* Return how many of the next instructions to skip. */
static int64_t jump(Machine *machine, int32_t opcode, int64_t count) {
    if (opcode == OP_JUMP) return count;
    Value value = *top(machine);
    if (opcode == OP_JUMP_IF_FALSE) return is_false(value) ? count : 0;
    if (opcode == OP_JUMP_IF_TRUE) return is_true(value) ? count : 0;
    if (opcode == OP_JUMP_IF_NOT_NULL && value.kind != VALUE_NULL) return count;
    drop_top(machine);
    return opcode == OP_JUMP_UNLESS && !is_true(value) ? count : 0;
}

static void compute(Machine *machine, const Instruction *now) {
    switch (now->opcode) {
    case OP_FIELD:
        push(machine, values_field(machine->values, now->operand.as.i, machine->handle));
        return;
    case OP_SLOT: push(machine, slot_of(machine, now->operand.as.i)); return;
    case OP_INT:
    case OP_FLOAT:
    case OP_DECIMAL:
    case OP_TEXT: push(machine, value_keep(now->operand)); return;
    case OP_NULL: push(machine, value_null()); return;
    case OP_IS_NULL: replace_top(machine, value_int(top(machine)->kind == VALUE_NULL)); return;
    default: {
        if (OPERANDS_OF[now->opcode] == 1) {
            if (top(machine)->kind != VALUE_NULL)
                replace_top(machine, unary(machine, now, *top(machine)));
            return;
        }
        Value b = *top(machine), a = machine->stack[machine->size - 2];
        Value result = binary(machine, now, a, b);
        drop_top(machine);
        replace_top(machine, result);
    }
    }
}

ProgramAnswer program_run(
    const Values *values, const Program *program, const Tally *tally, int64_t handle) {
    if (tally_overflowed(tally)) return PROGRAM_OVERFLOW;
    Machine machine = {.values = values,
        .tally = tally,
        .handle = handle,
        .stack = program->stack,
        .error = PROGRAM_TRUE};
    for (Py_ssize_t at = 0; at < program->size && machine.error == PROGRAM_TRUE; at++) {
        const Instruction *now = &program->code[at];
        if (now->opcode >= OP_JUMP_IF_FALSE && now->opcode <= OP_JUMP)
            at += (Py_ssize_t)jump(&machine, now->opcode, now->operand.as.i);
        else
            compute(&machine, now);
    }
    bool holds = machine.size > 0 && is_true(machine.stack[0]);
    while (machine.size > 0) drop_top(&machine);
    if (machine.error != PROGRAM_RAISED) lock_return(machine.took_lock);
    if (machine.error != PROGRAM_TRUE) return machine.error;
    return holds ? PROGRAM_TRUE : PROGRAM_FALSE;
}
