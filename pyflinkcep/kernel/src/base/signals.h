/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, such as Ctrl-C, in loops that may be long. */
#ifndef PYFLINKCEP_SIGNALS_H
#define PYFLINKCEP_SIGNALS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Let Python handle signals at each 1024th call; return -1 if a handler raises. */
static inline int check_signals(void) {
    static uint32_t calls = 0;
    return (++calls & 1023) == 0 ? PyErr_CheckSignals() : 0;
}

#endif
