/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that may fail; a build for tests can make it fail. No mirror in Python. */
#include "base/memory.h"

#ifdef PYFLINKCEP_TEST_ALLOCATIONS
static Py_ssize_t allowed = PY_SSIZE_T_MAX, live = 0;

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

void *allocate(size_t size) {
    void *block = refused() ? NULL : PyMem_Malloc(size);
    if (block == NULL) return PyErr_NoMemory();
    count_live(1);
    return block;
}

void *allocate_zeros(Py_ssize_t count, size_t width) {
    void *block = refused() ? NULL : PyMem_Calloc((size_t)count, width);
    if (block == NULL) return PyErr_NoMemory();
    count_live(1);
    return block;
}

void *grow(void *items, Py_ssize_t *room, Py_ssize_t needed, size_t width) {
    static const Py_ssize_t least = 4;
    Py_ssize_t most = PY_SSIZE_T_MAX / (Py_ssize_t)width;
    Py_ssize_t more = *room < most / 2 ? *room * 2 : most;
    if (more < least) more = least;
    if (more < needed) more = needed;
    if (more > most || refused()) return PyErr_NoMemory();
    void *block = PyMem_Realloc(items, (size_t)more * width);
    if (block == NULL) return PyErr_NoMemory();
    if (items == NULL) count_live(1);
    *room = more;
    return block;
}

void release_memory(void *block) {
    if (block == NULL) return;
    count_live(-1);
    PyMem_Free(block);
}
