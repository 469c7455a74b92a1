/* SPDX-License-Identifier: Apache-2.0 */
/* Made by kernel/opcodes.py from expressions/program.py, which says what they mean. */
#ifndef PYFLINKCEP_RULES_H
#define PYFLINKCEP_RULES_H

#include "base/opcodes.h"

#include <stdbool.h>
#include <stdint.h>

enum { OPCODES = OP_LOG2 + 1, FIRST_FUNCTION = OP_SQRT };

/* What NULL does to the result of an operation. */
enum {
    NULLS_SPREADS = 0,
    NULLS_YIELDS = 1,
    NULLS_EQUALS = 2,
    NULLS_DECIDES = 3,
    NULLS_ASKED = 4,
};

static const uint8_t NULLS_OF[OPCODES] = {
    [OP_INT_TO_FLOAT] = NULLS_SPREADS,
    [OP_TRUTH_TO_INT] = NULLS_SPREADS,
    [OP_NEG] = NULLS_SPREADS,
    [OP_ABS] = NULLS_SPREADS,
    [OP_ADD] = NULLS_SPREADS,
    [OP_SUB] = NULLS_SPREADS,
    [OP_MUL] = NULLS_SPREADS,
    [OP_ADD_PASSING] = NULLS_YIELDS,
    [OP_DIV] = NULLS_SPREADS,
    [OP_INT_DIV] = NULLS_SPREADS,
    [OP_MOD] = NULLS_SPREADS,
    [OP_PMOD] = NULLS_SPREADS,
    [OP_FLOOR] = NULLS_SPREADS,
    [OP_CEIL] = NULLS_SPREADS,
    [OP_ROUND] = NULLS_SPREADS,
    [OP_TRUNCATE] = NULLS_SPREADS,
    [OP_SQRT] = NULLS_SPREADS,
    [OP_SIGN] = NULLS_SPREADS,
    [OP_POWER] = NULLS_SPREADS,
    [OP_EXP] = NULLS_SPREADS,
    [OP_LN] = NULLS_SPREADS,
    [OP_LOG10] = NULLS_SPREADS,
    [OP_LOG2] = NULLS_SPREADS,
    [OP_LT] = NULLS_SPREADS,
    [OP_LE] = NULLS_SPREADS,
    [OP_GT] = NULLS_SPREADS,
    [OP_GE] = NULLS_SPREADS,
    [OP_EQ] = NULLS_SPREADS,
    [OP_NE] = NULLS_SPREADS,
    [OP_EQ_NULLSAFE] = NULLS_EQUALS,
    [OP_LEAST] = NULLS_YIELDS,
    [OP_GREATEST] = NULLS_YIELDS,
    [OP_OR_ELSE] = NULLS_YIELDS,
    [OP_NOT] = NULLS_SPREADS,
    [OP_AND] = NULLS_DECIDES,
    [OP_OR] = NULLS_DECIDES,
    [OP_IS_NULL] = NULLS_ASKED,
    [OP_CONCAT] = NULLS_SPREADS,
    [OP_LIKE] = NULLS_SPREADS,
    [OP_STARTS_WITH] = NULLS_SPREADS,
    [OP_PREFIX_END] = NULLS_SPREADS,
    [OP_UNITS] = NULLS_SPREADS,
    [OP_INT_TO_DECIMAL] = NULLS_SPREADS,
    [OP_DECIMAL_TO_INT] = NULLS_SPREADS,
    [OP_FIT] = NULLS_SPREADS,
    [OP_AGGREGATE] = NULLS_SPREADS,
    [OP_DECIMAL_TO_FLOAT] = NULLS_SPREADS,
    [OP_LISTED] = NULLS_SPREADS,
};

/* How many values an operation computes one of; 0 for other instructions. */
static const uint8_t OPERANDS_OF[OPCODES] = {
    [OP_INT_TO_FLOAT] = 1,
    [OP_TRUTH_TO_INT] = 1,
    [OP_NEG] = 1,
    [OP_ABS] = 1,
    [OP_ADD] = 2,
    [OP_SUB] = 2,
    [OP_MUL] = 2,
    [OP_ADD_PASSING] = 2,
    [OP_DIV] = 2,
    [OP_INT_DIV] = 2,
    [OP_MOD] = 2,
    [OP_PMOD] = 2,
    [OP_FLOOR] = 1,
    [OP_CEIL] = 1,
    [OP_ROUND] = 1,
    [OP_TRUNCATE] = 1,
    [OP_SQRT] = 1,
    [OP_SIGN] = 1,
    [OP_POWER] = 2,
    [OP_EXP] = 1,
    [OP_LN] = 1,
    [OP_LOG10] = 1,
    [OP_LOG2] = 1,
    [OP_LT] = 2,
    [OP_LE] = 2,
    [OP_GT] = 2,
    [OP_GE] = 2,
    [OP_EQ] = 2,
    [OP_NE] = 2,
    [OP_EQ_NULLSAFE] = 2,
    [OP_LEAST] = 2,
    [OP_GREATEST] = 2,
    [OP_OR_ELSE] = 2,
    [OP_NOT] = 1,
    [OP_AND] = 2,
    [OP_OR] = 2,
    [OP_IS_NULL] = 1,
    [OP_CONCAT] = 2,
    [OP_LIKE] = 1,
    [OP_STARTS_WITH] = 2,
    [OP_PREFIX_END] = 1,
    [OP_UNITS] = 1,
    [OP_INT_TO_DECIMAL] = 1,
    [OP_DECIMAL_TO_INT] = 1,
    [OP_FIT] = 1,
    [OP_AGGREGATE] = 1,
    [OP_DECIMAL_TO_FLOAT] = 1,
    [OP_LISTED] = 1,
};

/* A second operand of zero is an error or NULL. */
static const bool DIVIDES[OPCODES] = {
    [OP_DIV] = true,
    [OP_INT_DIV] = true,
    [OP_MOD] = true,
    [OP_PMOD] = true,
};

/* The result is NULL for zero and negative numbers. */
static const bool OF_POSITIVE[OPCODES] = {
    [OP_LN] = true,
    [OP_LOG10] = true,
    [OP_LOG2] = true,
};

/* The functions of the doubles a and b. */
#define NUMBER_FUNCTIONS(CASE) \
    CASE(OP_SQRT, sqrt(a)) \
    CASE(OP_SIGN, a > 0 ? 1.0 : a < 0 ? -1.0 : a) \
    CASE(OP_POWER, power(a, b)) \
    CASE(OP_EXP, exp(a)) \
    CASE(OP_LN, log(a)) \
    CASE(OP_LOG10, log10(a)) \
    CASE(OP_LOG2, log2(a))

/* NaN equals itself and is greater than all other numbers. */
static inline bool float_less(double a, double b) { return ((a < b) | ((b != b) & (a == a))); }

static inline bool float_equal(double a, double b) { return ((a == b) | ((a != a) & (b != b))); }

#endif
