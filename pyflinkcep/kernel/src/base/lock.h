/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's lock, which matching gives up where it needs no objects, so that all cores can match.
 *
 * A function that needs Python takes the lock first. One that fails keeps it, since an exception is
 * set; one that succeeds gives it back as it was.
 */
#ifndef PYFLINKCEP_LOCK_H
#define PYFLINKCEP_LOCK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* heed(flag): end the work of this thread with an exception once a byte is not 0; None for never */
PyObject *lock_heed(PyObject *module, PyObject *flag);
/* Go on without Python's lock. */
void lock_leave(void);
/* Take Python's lock; return whether this thread had given it up. */
bool lock_take(void);
/* Give it up again, if it was. */
void lock_return(bool was_given_up);
/*
 * Let Python handle signals; return -1 if a handler raises, or the work is to stop. A thread that has
 * given the lock up takes it for that at most fifty times a second, since it may have to wait for it.
 * One that heeds a byte and needs the lock lends it as often: the main thread, which alone hears
 * signals, may wait for it.
 */
int lock_signals(void);

#endif
