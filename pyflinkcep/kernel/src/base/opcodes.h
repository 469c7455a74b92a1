/* SPDX-License-Identifier: Apache-2.0 */
/* Made by kernel/opcodes.py from expressions/program.py, which says what they mean. */
#ifndef PYFLINKCEP_OPCODES_H
#define PYFLINKCEP_OPCODES_H

/* The compiled module tells it, so that one of other numbers is refused. */
#define OPERATIONS 782640227

/* The opcodes of programs. */
enum {
    OP_FIELD = 0,
    OP_SLOT = 1,
    OP_INT = 2,
    OP_FLOAT = 3,
    OP_TEXT = 4,
    OP_NULL = 5,
    OP_INT_TO_FLOAT = 6,
    OP_TRUTH_TO_INT = 7,
    OP_DECIMAL = 8,
    OP_NEG = 10,
    OP_ADD = 11,
    OP_SUB = 12,
    OP_MUL = 13,
    OP_DIV = 14,
    OP_MOD = 15,
    OP_ABS = 16,
    OP_INT_DIV = 17,
    OP_ADD_PASSING = 18,
    OP_PMOD = 19,
    OP_LT = 20,
    OP_LE = 21,
    OP_GT = 22,
    OP_GE = 23,
    OP_EQ = 24,
    OP_NE = 25,
    OP_EQ_NULLSAFE = 26,
    OP_LEAST = 27,
    OP_GREATEST = 28,
    OP_NOT = 30,
    OP_AND = 31,
    OP_OR = 32,
    OP_IS_NULL = 33,
    OP_JUMP_IF_FALSE = 40,
    OP_JUMP_IF_TRUE = 41,
    OP_JUMP_IF_NOT_NULL = 42,
    OP_JUMP_UNLESS = 43,
    OP_JUMP = 44,
    OP_OR_ELSE = 45,
    OP_CHOOSE = 46,
    OP_CONCAT = 50,
    OP_LIKE = 51,
    OP_STARTS_WITH = 52,
    OP_PREFIX_END = 53,
    OP_FLOOR = 60,
    OP_CEIL = 61,
    OP_ROUND = 62,
    OP_TRUNCATE = 63,
    OP_UNITS = 66,
    OP_INT_TO_DECIMAL = 67,
    OP_DECIMAL_TO_FLOAT = 68,
    OP_DECIMAL_TO_INT = 69,
    OP_FIT = 70,
    OP_LISTED = 71,
    OP_AGGREGATE = 72,
    OP_SQRT = 80,
    OP_SIGN = 81,
    OP_POWER = 82,
    OP_EXP = 83,
    OP_LN = 84,
    OP_LOG10 = 85,
    OP_LOG2 = 86,
};

/* The types of values. */
enum {
    TYPE_INT = 0,
    TYPE_FLOAT = 1,
    TYPE_TEXT = 2,
    TYPE_DECIMAL = 3,
    TYPE_LIST = 4,
};

/* What a slot accumulates. */
enum {
    SLOT_COUNT = 0,
    SLOT_FIRST = 1,
    SLOT_LAST = 2,
    SLOT_SUM = 3,
    SLOT_MIN = 4,
    SLOT_MAX = 5,
    SLOT_MEAN = 6,
    SLOT_MOMENT = 7,
    SLOT_LIST = 8,
};

#endif
