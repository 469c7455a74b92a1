/* SPDX-License-Identifier: Apache-2.0 */
/* Python's lock, by thread. No mirror in Python. */
#include "base/lock.h"

static _Thread_local PyThreadState *resting = NULL; /* of a thread that has given the lock up */
static _Thread_local const volatile bool *stopping = NULL;

void lock_leave(const volatile bool *stop) {
    stopping = stop;
    resting = PyEval_SaveThread();
}

bool lock_take(void) {
    if (resting == NULL) return false;
    PyThreadState *own = resting;
    resting = NULL;
    PyEval_RestoreThread(own);
    return true;
}

void lock_return(bool was_given_up) {
    if (was_given_up) resting = PyEval_SaveThread();
}

int lock_signals(void) {
    bool given_up = lock_take();
    if (given_up && *stopping) {
        PyErr_SetString(PyExc_InterruptedError, "matching was stopped");
        return -1;
    }
    if (PyErr_CheckSignals() < 0) return -1;
    lock_return(given_up);
    return 0;
}
