/* SPDX-License-Identifier: Apache-2.0 */
/* Spark's functions of numbers. Mirror: expressions/number_functions.py. */
#ifndef PYFLINKCEP_FUNCTIONS_H
#define PYFLINKCEP_FUNCTIONS_H

#include "base/memory.h"

double number_rounded(int32_t opcode, double number, int64_t digits);
double number_computed(int32_t opcode, double a, double b);
bool number_whole(double number, int64_t *whole);
int64_t int_pmod(int64_t a, int64_t b);
double float_pmod(double a, double b);

#endif
