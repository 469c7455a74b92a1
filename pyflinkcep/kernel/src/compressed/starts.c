/* SPDX-License-Identifier: Apache-2.0 */
/* The events that runs began with, numbered. No mirror in Python, where runs know their start. */
#include "compressed/merged.h"

const Start *starts_at(const Starts *starts, int64_t number) {
    return &starts->items[number - starts->base];
}

/* Discard the starts whose window is over, once they are the majority. */
static void forget(Starts *starts) {
    Py_ssize_t gone = (Py_ssize_t)(starts->head - starts->base);
    Py_ssize_t kept = (Py_ssize_t)(starts->next - starts->head);
    if (gone <= kept + 64) return;
    for (Py_ssize_t i = 0; i < kept; i++) starts->items[i] = starts->items[gone + i];
    starts->base = starts->head;
}

int starts_add(Starts *starts, int64_t time, int64_t barred) {
    forget(starts);
    Py_ssize_t size = (Py_ssize_t)(starts->next - starts->base);
    Start *items = reserve(starts->items, &starts->room, size + 1, sizeof(Start));
    if (items == NULL) return -1;
    starts->items = items;
    items[size] = (Start){time, barred};
    starts->next++;
    return 0;
}

bool starts_need_sweep(Starts *starts, int64_t runs) {
    int64_t often = runs > 1024 ? runs : 1024;
    if (starts->head - starts->swept < often) return false;
    starts->swept = starts->head;
    return true;
}

void starts_free(Starts *starts) {
    release_memory(starts->items);
    *starts = (Starts){0};
}
