/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine for conditions, on as many events at once as a word has bits. The opcodes are
 * described in expressions/program.py; texts are numbers here, which compare as the texts do. All
 * branches are computed, for programs have no jumps (expressions/arrays.py): without ANSI no
 * computation fails. Mirror: expressions/arrays.py.
 */
#include "lists/batch.h"

#include "base/functions.h"
#include "base/rules.h"

#include <math.h>

static uint64_t all_of(int count) { return ~(uint64_t)0 >> (BATCH - count); }

static uint64_t valid_of(const uint8_t *valid, int count) {
    uint64_t known = 0;
    for (int i = 0; i < count; i++) known |= (uint64_t)(valid[i] != 0) << i;
    return known;
}

static void load(Operand *to, const Batch *batch, const Column *column) {
    bool is_newest = column->element == batch->newest;
    Py_ssize_t at = is_newest ? batch->base : batch->bound[column->element];
    to->items = column->items + at;
    to->stride = is_newest;
    to->known = ~(uint64_t)0;
    if (column->valid == NULL) return;
    if (is_newest)
        to->known = valid_of(column->valid + at, batch->count);
    else if (!column->valid[at])
        to->known = 0;
}

static void constant(Operand *to, Value value) {
    if (value.kind == VALUE_FLOAT)
        to->own[0].f = value.as.f;
    else
        to->own[0].i = value.kind == VALUE_INT ? value.as.i : 0;
    to->items = to->own;
    to->stride = 0;
    to->known = value.kind == VALUE_NULL ? 0 : ~(uint64_t)0;
}

/* --- comparisons */

#define EACH(count, expression)                                                                    \
    for (int i = 0; i < (count); i++) truth |= (uint64_t)(expression) << i

static uint64_t ints_compared(int32_t opcode, const Operand *a, const Operand *b, int count) {
    const Number *x = a->items, *y = b->items;
    Py_ssize_t dx = a->stride, dy = b->stride;
    uint64_t truth = 0;
    switch (opcode) {
    case OP_LT:
    case OP_GE: EACH(count, x[i * dx].i < y[i * dy].i); break;
    case OP_GT:
    case OP_LE: EACH(count, x[i * dx].i > y[i * dy].i); break;
    default: EACH(count, x[i * dx].i == y[i * dy].i);
    }
    return truth;
}

static uint64_t floats_compared(int32_t opcode, const Operand *a, const Operand *b, int count) {
    const Number *x = a->items, *y = b->items;
    Py_ssize_t dx = a->stride, dy = b->stride;
    uint64_t truth = 0;
    switch (opcode) {
    case OP_LT:
    case OP_GE: EACH(count, float_less(x[i * dx].f, y[i * dy].f)); break;
    case OP_GT:
    case OP_LE: EACH(count, float_less(y[i * dy].f, x[i * dx].f)); break;
    default: EACH(count, float_equal(x[i * dx].f, y[i * dy].f));
    }
    return truth;
}

static void compare(Operand *a, const Operand *b, const Instruction *now, int count) {
    bool is_float = now->operand.as.i == TYPE_FLOAT;
    uint64_t truth = is_float ? floats_compared(now->opcode, a, b, count)
                              : ints_compared(now->opcode, a, b, count);
    bool opposite = now->opcode == OP_LE || now->opcode == OP_GE || now->opcode == OP_NE;
    a->truth = opposite ? ~truth : truth;
}

/* --- choices */

/* Set a value to one of two for each event, `first` where a bit is set. */
static void choose(
    Operand *to, const Operand *first, const Operand *second, uint64_t chosen, int count) {
    Number one = first->items[0]; /* which may be overwritten */
    Py_ssize_t dx = first->stride, dy = second->stride;
    const Number *x = dx ? first->items : &one, *y = second->items;
    for (int i = 0; i < count; i++) to->own[i] = (chosen >> i & 1) ? x[i * dx] : y[i * dy];
    to->known = (chosen & first->known) | (~chosen & second->known);
    to->items = to->own;
    to->stride = 1;
}

/* Compute what yields to the other value where one is null. */
static void yield(Operand *a, const Operand *b, const Instruction *now, int count) {
    uint64_t keeps = ~(uint64_t)0;
    bool is_float = now->operand.as.i == TYPE_FLOAT;
    int32_t order = now->opcode == OP_LEAST ? OP_GT : OP_LT;
    if (now->opcode != OP_OR_ELSE)
        keeps =
            is_float ? ~floats_compared(order, a, b, count) : ~ints_compared(order, a, b, count);
    choose(a, a, b, a->known & (keeps | ~b->known), count);
}

static void number_of_truth(Operand *a, int count) {
    for (int i = 0; i < count; i++) a->own[i].i = (int64_t)(a->truth >> i & 1);
    a->items = a->own;
    a->stride = 1;
}

/* --- arithmetic */

static int64_t int_result(int32_t opcode, int64_t a, int64_t b) {
    int64_t result;
    switch (opcode) {
    case OP_ADD: add_overflows(a, b, &result); return result;
    case OP_SUB: subtract_overflows(a, b, &result); return result;
    case OP_MUL: multiply_overflows(a, b, &result); return result;
    default:
        if (b == 0) return 0;
        if (opcode == OP_INT_DIV) return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
        if (b == -1) return 0;
        return opcode == OP_PMOD ? int_pmod(a, b) : a % b;
    }
}

static double float_result(int32_t opcode, double a, double b) {
    switch (opcode) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_PMOD: return float_pmod(a, b);
    case OP_MOD: return fmod(a, b);
    default: return number_computed(opcode, a, b);
    }
}

/* Division by zero yields null. */
static uint64_t without_zeros(const Operand *b, bool is_float, int count) {
    uint64_t zeros = 0;
    for (int i = 0; i < count; i++) {
        Number by = b->items[i * b->stride];
        zeros |= (uint64_t)(is_float ? by.f == 0 : by.i == 0) << i;
    }
    return ~zeros;
}

static void compute(Operand *a, const Operand *b, const Instruction *now, int count) {
    bool is_float = now->operand.as.i == TYPE_FLOAT || now->opcode >= FIRST_FUNCTION;
    Py_ssize_t dx = a->stride, dy = b->stride;
    int results = dx || dy ? count : 1;
    if (DIVIDES[now->opcode]) a->known &= without_zeros(b, is_float, count);
    Number one = a->items[0]; /* which the first result may overwrite */
    const Number *x = dx ? a->items : &one, *y = b->items;
    if (is_float)
        for (int i = 0; i < results; i++)
            a->own[i].f = float_result(now->opcode, x[i * dx].f, y[i * dy].f);
    else
        for (int i = 0; i < results; i++)
            a->own[i].i = int_result(now->opcode, x[i * dx].i, y[i * dy].i);
    a->items = a->own;
    a->stride = dx | dy;
}

/* Compute -a, or the magnitude of a. */
static void negate(Operand *a, const Instruction *now, int count) {
    int results = a->stride ? count : 1;
    bool always = now->opcode == OP_NEG;
    for (int i = 0; i < results; i++) {
        Number value = a->items[i * a->stride];
        if (now->operand.as.i == TYPE_FLOAT)
            value.f = always ? -value.f : fabs(value.f);
        else if (always || value.i < 0)
            subtract_overflows(0, value.i, &value.i);
        a->own[i] = value;
    }
    a->items = a->own;
}

static void to_floats(Operand *a, int count) {
    int results = a->stride ? count : 1;
    for (int i = 0; i < results; i++) a->own[i].f = (double)a->items[i * a->stride].i;
    a->items = a->own;
}

/* Zero and negative numbers yield null. */
static uint64_t positives(const Operand *a, int count) {
    uint64_t outside = 0;
    for (int i = 0; i < count; i++) outside |= (uint64_t)(a->items[i * a->stride].f <= 0) << i;
    return ~outside;
}

static void apply(Operand *a, const Instruction *now, int count) {
    int results = a->stride ? count : 1;
    if (OF_POSITIVE[now->opcode]) a->known &= positives(a, count);
    for (int i = 0; i < results; i++) {
        double number = a->items[i * a->stride].f;
        if (now->opcode == OP_FLOOR || now->opcode == OP_CEIL)
            number_whole(now->opcode == OP_FLOOR ? floor(number) : ceil(number), &a->own[i].i);
        else if (now->opcode == OP_ROUND || now->opcode == OP_TRUNCATE)
            a->own[i].f = number_rounded(now->opcode, number, now->operand.as.i);
        else
            a->own[i].f = number_computed(now->opcode, number, 0);
    }
    a->items = a->own;
}

/* --- flags */

static void both(Operand *a, const Operand *b) {
    uint64_t no = (a->known & ~a->truth) | (b->known & ~b->truth);
    a->truth &= b->truth;
    a->known = (a->known & b->known) | no;
}

static void either(Operand *a, const Operand *b) {
    uint64_t yes = (a->known & a->truth) | (b->known & b->truth);
    a->known = (a->known & b->known) | yes;
    a->truth = yes;
}

/* --- programs */

/* Compute an operation on two values into the first, as the rule for NULL says. */
static void combine(Operand *a, const Operand *b, const Instruction *now, int count) {
    uint64_t nulls = ~a->known & ~b->known, known = a->known & b->known;
    switch (NULLS_OF[now->opcode]) {
    case NULLS_DECIDES:
        if (now->opcode == OP_OR)
            either(a, b);
        else
            both(a, b);
        return;
    case NULLS_YIELDS: yield(a, b, now, count); return;
    case NULLS_EQUALS:
        compare(a, b, now, count);
        a->truth = (a->truth & known) | nulls;
        a->known = ~(uint64_t)0;
        return;
    default: a->known = known;
    }
    if (now->opcode >= OP_LT && now->opcode <= OP_NE)
        compare(a, b, now, count);
    else
        compute(a, b, now, count);
}

/* Compute an operation on one value. */
static void change(Operand *a, const Instruction *now, int count) {
    switch (now->opcode) {
    case OP_INT_TO_FLOAT: to_floats(a, count); break;
    case OP_TRUTH_TO_INT: number_of_truth(a, count); break;
    case OP_NEG:
    case OP_ABS: negate(a, now, count); break;
    case OP_NOT: a->truth = ~a->truth; break;
    case OP_IS_NULL:
        a->truth = ~a->known;
        a->known = ~(uint64_t)0;
        break;
    default: apply(a, now, count);
    }
}

static Operand *step(Operand *top, const Batch *batch, const Instruction *now) {
    switch (now->opcode) {
    case OP_FIELD: load(++top, batch, &batch->columns[now->operand.as.i]); break;
    case OP_INT:
    case OP_FLOAT:
    case OP_NULL: constant(++top, now->operand); break;
    case OP_CHOOSE:
        top -= 2;
        choose(top, top + 1, top + 2, top->truth & top->known, batch->count);
        break;
    default:
        if (OPERANDS_OF[now->opcode] == 1)
            change(top, now, batch->count);
        else
            top--, combine(top, top + 1, now, batch->count);
    }
    return top;
}

/* --- comparisons of two columns, which nearly all conditions are */

static inline uint64_t compared_ints(const Number *items, int64_t limit, bool below, int count) {
    uint64_t truth = 0;
    if (below)
        EACH(count, items[i].i < limit);
    else
        EACH(count, items[i].i > limit);
    return truth;
}

static inline uint64_t compared_floats(const Number *items, double limit, bool below, int count) {
    uint64_t truth = 0;
    if (below)
        EACH(count, float_less(items[i].f, limit));
    else
        EACH(count, float_less(limit, items[i].f));
    return truth;
}

static inline uint64_t compared(const Bound *bound, const Number *items, Number limit, int count) {
    return bound->is_float ? compared_floats(items, limit.f, bound->asks_below, count)
                           : compared_ints(items, limit.i, bound->asks_below, count);
}

bool bound_of(
    const Program *program, const Column *columns, int32_t newest, Py_ssize_t size, Bound *bound) {
    const Instruction *code = program->code;
    if (program->size != 3 || code[0].opcode != OP_FIELD || code[1].opcode != OP_FIELD ||
        code[2].opcode < OP_LT || code[2].opcode > OP_GE)
        return false;
    const Column *a = &columns[code[0].operand.as.i], *b = &columns[code[1].operand.as.i];
    bool is_first = a->element == newest;
    if (a->valid != NULL || b->valid != NULL || is_first == (b->element == newest)) return false;
    int32_t opcode = code[2].opcode;
    bool or_equal = opcode == OP_LE || opcode == OP_GE;
    bool is_below = (opcode == OP_LT || opcode == OP_LE) == is_first;
    *bound = (Bound){.own = is_first ? a->items : b->items,
        .other = is_first ? b->items : a->items,
        .element = is_first ? b->element : a->element,
        .size = size,
        .is_float = code[2].operand.as.i == TYPE_FLOAT,
        .asks_below = is_below != or_equal,
        .is_opposite = or_equal};
    return true;
}

uint64_t bound_holds(const Bound *bound, const Py_ssize_t *places, Py_ssize_t base, int count) {
    enum { FEW = 8 };
    const Number *own = bound->own + base;
    Number limit = bound->other[places[bound->element]];
    uint64_t truth = count <= FEW && bound->size - base >= FEW ? compared(bound, own, limit, FEW)
                                                               : compared(bound, own, limit, count);
    return bound->is_opposite ? ~truth : truth;
}

bool batch_knows(int32_t opcode) {
    switch (opcode) {
    case OP_SLOT:
    case OP_TEXT:
    case OP_ADD_PASSING:
    case OP_CONCAT:
    case OP_LIKE:
    case OP_STARTS_WITH:
    case OP_PREFIX_END:
    case OP_DECIMAL:
    case OP_UNITS:
    case OP_INT_TO_DECIMAL:
    case OP_DECIMAL_TO_FLOAT:
    case OP_DECIMAL_TO_INT:
    case OP_FIT: return false;
    default: return opcode < OP_JUMP_IF_FALSE || opcode > OP_JUMP;
    }
}

uint64_t batch_holds(const Program *program, const Batch *batch, Operand *stack) {
    Operand *top = stack - 1;
    for (Py_ssize_t at = 0; at < program->size; at++) top = step(top, batch, &program->code[at]);
    return top->truth & top->known & all_of(batch->count);
}
