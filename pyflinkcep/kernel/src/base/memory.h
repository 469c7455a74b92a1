/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that may fail, and arithmetic that may overflow.
 *
 * In all files of the kernel a function that can fail returns -1, or NULL for a pointer, and has
 * set an exception. Once memory has run out, the current key is cleared: see operator.c.
 */
#ifndef PYFLINKCEP_MEMORY_H
#define PYFLINKCEP_MEMORY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Raise MemoryError; return NULL. */
void *no_memory(void);
/* Return a block; NULL with MemoryError if there is none. */
void *allocate(size_t size);
/* Return a block of a few words, quickly if this thread has released one of its size. */
void *allocate_small(size_t size);
/* Release it, to be used again. */
void release_small(void *block, size_t size);
/* Free what this thread keeps to be used again. */
void forget_small(void);
/* Return an array of zeros, which may have no items. */
void *allocate_zeros(Py_ssize_t count, size_t width);
/* Like reserve, if the room is too small; it at least doubles. */
void *grow(void *items, Py_ssize_t *room, Py_ssize_t needed, size_t width);
/* Free a block; NULL is none. */
void release_memory(void *block);

/* Return `items`, or where they have moved, with room for `needed`; NULL leaves them as they are. */
static inline void *reserve(void *items, Py_ssize_t *room, Py_ssize_t needed, size_t width) {
    return needed <= *room ? items : grow(items, room, needed, width);
}

/* Each computes in two's complement and returns whether the result is out of range. */

static inline bool add_overflows(int64_t a, int64_t b, int64_t *sum) {
    *sum = (int64_t)((uint64_t)a + (uint64_t)b);
    return ((a ^ *sum) & (b ^ *sum)) < 0;
}

static inline bool subtract_overflows(int64_t a, int64_t b, int64_t *difference) {
    *difference = (int64_t)((uint64_t)a - (uint64_t)b);
    return ((a ^ b) & (a ^ *difference)) < 0;
}

static inline bool multiply_overflows(int64_t a, int64_t b, int64_t *product) {
    *product = (int64_t)((uint64_t)a * (uint64_t)b);
    if (a == 0 || b == 0) return false;
    if (a == -1 || b == -1) return a == INT64_MIN || b == INT64_MIN;
    return *product / b != a;
}

#ifdef PYFLINKCEP_TEST_ALLOCATIONS
/* fail_after(count): let only `count` more allocations succeed. */
PyObject *memory_fail_after(PyObject *module, PyObject *count);
/* live() -> the number of blocks now allocated */
PyObject *memory_live(PyObject *module, PyObject *unused);
#endif

#endif
