/* SPDX-License-Identifier: Apache-2.0 */
/* Python's lock, by thread. No mirror in Python. */
#include "base/lock.h"

#include <time.h>

static _Thread_local PyThreadState *resting = NULL; /* of a thread that has given the lock up */
static _Thread_local Py_buffer heeded; /* the byte that this thread is told by, if any */

PyObject *lock_heed(PyObject *module, PyObject *flag) {
    (void)module;
    if (heeded.obj != NULL) PyBuffer_Release(&heeded);
    if (flag != Py_None && PyObject_GetBuffer(flag, &heeded, PyBUF_SIMPLE) < 0) return NULL;
    Py_RETURN_NONE;
}

void lock_leave(void) { resting = PyEval_SaveThread(); }

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

/* Whether a thread has worked for a while since it last asked for signals. */
static bool is_time(void) {
    enum { INTERVAL_NS = 20000000, SECOND_NS = 1000000000 };
    static _Thread_local struct timespec last = {0};
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    int64_t seconds = (int64_t)now.tv_sec - last.tv_sec;
    bool is_near = seconds >= 0 && seconds <= 1; /* or the clock was set */
    if (is_near && seconds * SECOND_NS + now.tv_nsec - last.tv_nsec < INTERVAL_NS) return false;
    last = now;
    return true;
}

/* Let other threads go on for a while, if they wait for the lock. */
static void lend(void) {
    PyThreadState *own = PyEval_SaveThread();
    PyEval_RestoreThread(own);
}

int lock_signals(void) {
    if (resting != NULL && !is_time()) return 0;
    bool given_up = lock_take();
    if (PyErr_Occurred()) return -1; /* a condition raised: Ctrl-C in a function of decimals does */
    if (!given_up && heeded.obj != NULL && is_time()) lend();
    if (heeded.obj != NULL && heeded.len > 0 && *(const uint8_t *)heeded.buf != 0) {
        PyErr_SetString(PyExc_InterruptedError, "matching was stopped");
        return -1;
    }
    if (PyErr_CheckSignals() < 0) return -1;
    lock_return(given_up);
    return 0;
}
