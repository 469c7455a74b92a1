/* SPDX-License-Identifier: Apache-2.0 */
/* Spark's functions of numbers. Mirror: expressions/numbers.py. */
#include "base/functions.h"

#include "base/lock.h"
#include "base/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 800 }; /* more than any double has, before and after the point */

/* The shortest decimal that is read as a number: its digits, as of 0.digits, and an exponent. */
typedef struct {
    char digits[32]; /* one more than repr() has, for what rounding carries */
    int size;
    long exponent;
} Shortest;

static bool shortest_of(double number, Shortest *shortest) {
    char *text = PyOS_double_to_string(number, 'r', 0, 0, NULL);
    if (text == NULL) {
        PyErr_Clear(); /* memory ran out: the number stays as it is */
        return false;
    }
    bool after = false;
    shortest->size = 0;
    shortest->exponent = 0;
    const char *at = text;
    for (; *at != '\0' && *at != 'e'; at++) {
        if (*at == '.') after = true;
        if (*at < '0' || *at > '9') continue;
        bool leads = shortest->size == 0 && *at == '0';
        if (!after && !leads) shortest->exponent++;
        if (after && leads) shortest->exponent--;
        if (!leads && shortest->size < 30) shortest->digits[shortest->size++] = *at;
    }
    if (*at == 'e') shortest->exponent += strtol(at + 1, NULL, 10);
    PyMem_Free(text);
    return true;
}

/* Keep some digits, the last one rounded up if what follows is a half or more and it may be. */
static void cut(Shortest *shortest, long kept, bool up) {
    if (kept >= shortest->size) return;
    up = up && kept >= 0 && shortest->digits[kept] >= '5';
    shortest->size = kept < 0 ? 0 : (int)kept;
    for (int at = shortest->size - 1; up && at >= 0; at--) {
        up = shortest->digits[at] == '9';
        shortest->digits[at] = up ? '0' : (char)(shortest->digits[at] + 1);
    }
    if (!up) return;
    memmove(shortest->digits + 1, shortest->digits, (size_t)shortest->size);
    shortest->digits[0] = '1';
    shortest->size++;
    shortest->exponent++;
}

static double rounded(int32_t opcode, double number, int64_t digits) {
    if (!isfinite(number)) return number;
    if (digits > DIGITS || digits < -DIGITS) return digits > 0 ? number : 0.0;
    Shortest shortest;
    if (!shortest_of(number, &shortest)) return number;
    cut(&shortest, shortest.exponent + (long)digits, opcode == OP_ROUND);
    if (shortest.size == 0) return 0.0;
    char text[64];
    PyOS_snprintf(
        text, sizeof(text), "%s0.%.*se%ld", number < 0 ? "-" : "", shortest.size, shortest.digits,
        shortest.exponent);
    double found = PyOS_string_to_double(text, NULL, NULL);
    if (found == -1.0 && PyErr_Occurred()) PyErr_Clear(); /* -1.0 may be the number itself */
    return found + 0.0;
}

double number_rounded(int32_t opcode, double number, int64_t digits) {
    bool given_up = lock_take(); /* for Python writes and reads the digits */
    double found = rounded(opcode, number, digits);
    lock_return(given_up);
    return found;
}

/* Return a power by Java's rules, which differ from C's for NaN and infinite exponents. */
static double power(double base, double exponent) {
    if (isnan(exponent) || (fabs(base) == 1 && isinf(exponent))) return NAN;
    return pow(base, exponent);
}

#define CASE(opcode, value)                                                                        \
    case opcode: return value;

double number_computed(int32_t opcode, double a, double b) {
    switch (opcode) {
        NUMBER_FUNCTIONS(CASE)
    default: return NAN;
    }
}

bool number_whole(double number, int64_t *whole) {
    const double end = 9223372036854775808.0;
    if (isnan(number))
        *whole = 0;
    else if (number >= end)
        *whole = INT64_MAX;
    else
        *whole = number < -end ? INT64_MIN : (int64_t)number;
    return !(number > end || number < -end);
}

static int64_t remainder_of(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

int64_t int_pmod(int64_t a, int64_t b) {
    int64_t found = remainder_of(a, b);
    if (found >= 0) return found;
    return remainder_of((int64_t)((uint64_t)found + (uint64_t)b), b);
}

double float_pmod(double a, double b) {
    double found = fmod(a, b);
    return found < 0 ? fmod(found + b, b) : found;
}
