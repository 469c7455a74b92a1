/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, such as Ctrl-C, in loops that may be long. */
#ifndef PYFLINKCEP_SIGNALS_H
#define PYFLINKCEP_SIGNALS_H

#include "base/lock.h"

#include <stdint.h>

/* Let Python handle signals at each 1024th call; return -1 if a handler raises. */
static inline int check_signals(void) {
    static _Thread_local uint32_t calls = 0;
    return (++calls & 1023) == 0 ? lock_signals() : 0;
}

#endif
