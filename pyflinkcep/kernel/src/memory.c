/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, with no way on where there is none. */
#include "kernel.h"

void *must_alloc(size_t size) {
    void *block = PyMem_Malloc(size);
    if (block == NULL) Py_FatalError("pyflinkcep: out of memory");
    return block;
}

void *must_grow(void *block, size_t size) {
    block = PyMem_Realloc(block, size);
    if (block == NULL) Py_FatalError("pyflinkcep: out of memory");
    return block;
}

void release_memory(void *block) { PyMem_Free(block); }
