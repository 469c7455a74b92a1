/* SPDX-License-Identifier: Apache-2.0 */
/* Spark's functions of numbers. Mirror: expressions/numbers.py. */
#ifndef PYFLINKCEP_FUNCTIONS_H
#define PYFLINKCEP_FUNCTIONS_H

#include "base/memory.h"

/* Return a number with some digits after the point; halves are rounded away from zero by OP_ROUND. */
double number_rounded(int32_t opcode, double number, int64_t digits);
/* Return a function of one number, or two, that makes another. */
double number_computed(int32_t opcode, double a, double b);
/* Find a number without a fraction as an integer, 0 for NaN; false if it is out of range, and then
   the nearest one. */
bool number_whole(double number, int64_t *whole);
/* Return the remainder that is not negative for a positive divisor, which is not zero. */
int64_t int_pmod(int64_t a, int64_t b);
/* Return the same of doubles. */
double float_pmod(double a, double b);

#endif
