/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that may fail; a build for tests can make it fail. Python's own allocator is not used,
 * since it needs the lock. No mirror in Python.
 */
#include "base/memory.h"

#include "base/lock.h"

#include <stdlib.h>

#ifdef PYFLINKCEP_TEST_ALLOCATIONS
static _Atomic Py_ssize_t allowed = PY_SSIZE_T_MAX, live = 0; /* threads allocate too */

PyObject *memory_fail_after(PyObject *module, PyObject *count) {
    (void)module;
    allowed = PyLong_AsSsize_t(count);
    if (allowed == -1 && PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

PyObject *memory_live(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromSsize_t(live);
}

static bool refused(void) { return allowed-- <= 0; }

static void count_live(Py_ssize_t change) { live += change; }
#else
static inline bool refused(void) { return false; }

static inline void count_live(Py_ssize_t change) { (void)change; }
#endif

void *no_memory(void) {
    lock_take();
    return PyErr_NoMemory();
}

void *allocate(size_t size) {
    void *block = refused() ? NULL : malloc(size > 0 ? size : 1);
    if (block == NULL) return no_memory();
    count_live(1);
    return block;
}

#ifdef PYFLINKCEP_TEST_ALLOCATIONS
void *allocate_small(size_t size) { return allocate(size); }

void release_small(void *block, size_t size) {
    (void)size;
    release_memory(block);
}

void forget_small(void) {}
#else
typedef struct Spare {
    struct Spare *next;
} Spare;

enum { STEP = 16, SIZES = 13, MOST_SPARE = 1 << 10 };

/* Blocks of each size that are free again, by thread: matching makes and drops them all the time. */
static _Thread_local struct {
    Spare *first;
    Py_ssize_t count;
} spares[SIZES];

void *allocate_small(size_t size) {
    size_t step = (size + STEP - 1) / STEP;
    if (step >= SIZES) return allocate(size);
    Spare *spare = spares[step].first;
    if (spare == NULL) return allocate(step * STEP);
    spares[step].first = spare->next;
    spares[step].count--;
    return spare;
}

void release_small(void *block, size_t size) {
    size_t step = (size + STEP - 1) / STEP;
    if (step >= SIZES || spares[step].count >= MOST_SPARE) {
        release_memory(block);
        return;
    }
    Spare *spare = block;
    spare->next = spares[step].first;
    spares[step].first = spare;
    spares[step].count++;
}

void forget_small(void) {
    for (size_t step = 0; step < SIZES; step++) {
        for (Spare *spare = spares[step].first, *next; spare != NULL; spare = next) {
            next = spare->next;
            release_memory(spare);
        }
        spares[step].first = NULL;
        spares[step].count = 0;
    }
}
#endif

void *allocate_zeros(Py_ssize_t count, size_t width) {
    void *block = refused() ? NULL : calloc(count > 0 ? (size_t)count : 1, width);
    if (block == NULL) return no_memory();
    count_live(1);
    return block;
}

void *grow(void *items, Py_ssize_t *room, Py_ssize_t needed, size_t width) {
    static const Py_ssize_t least = 4;
    Py_ssize_t most = PY_SSIZE_T_MAX / (Py_ssize_t)width;
    Py_ssize_t more = *room < most / 2 ? *room * 2 : most;
    if (more < least) more = least;
    if (more < needed) more = needed;
    if (more > most || refused()) return no_memory();
    void *block = realloc(items, (size_t)more * width);
    if (block == NULL) return no_memory();
    if (items == NULL) count_live(1);
    *room = more;
    return block;
}

void release_memory(void *block) {
    if (block == NULL) return;
    count_live(-1);
    free(block);
}
