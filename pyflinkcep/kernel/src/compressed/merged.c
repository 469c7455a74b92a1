/* SPDX-License-Identifier: Apache-2.0 */
/* Merged runs, by state and by what distinguishes them. Mirror: Runs.key in engines/sequences/runs.py. */
#include "compressed/merged.h"

#include <math.h>
#include <string.h>

/* --- what distinguishes runs */

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

uint64_t value_hash(uint64_t hash, Value value) {
    uint64_t word = 0;
    if (value.kind == VALUE_TEXT) {
        word = (uint64_t)PyObject_Hash(value.as.text);
    } else if (value.kind == VALUE_FLOAT) {
        double number = value.as.f == 0 ? 0 : isnan(value.as.f) ? (double)NAN : value.as.f;
        memcpy(&word, &number, sizeof(word));
    } else if (value.kind == VALUE_INT) {
        word = (uint64_t)value.as.i;
    }
    return mixed(hash, word + value.kind);
}

static uint64_t spans_hash(uint64_t hash, const Spans *spans) {
    for (Py_ssize_t i = 0; spans != NULL && i < spans->size; i++) {
        const Span *span = &spans->items[i];
        hash = mixed(
            mixed(mixed(hash, (uint64_t)span->negative), (uint64_t)span->low),
            (uint64_t)span->high);
    }
    return hash;
}

static bool spans_equal(const Spans *one, const Spans *other) {
    if (one == NULL || other == NULL) return one == other;
    if (one->size != other->size) return false;
    for (Py_ssize_t i = 0; i < one->size; i++) {
        const Span *a = &one->items[i], *b = &other->items[i];
        if (a->negative != b->negative || a->low != b->low || a->high != b->high) return false;
    }
    return true;
}

void run_identify(Run *run, const Value *known, Py_ssize_t size) {
    uint64_t state = (uint64_t)run->state << 8 | (uint64_t)run->mode << 1 | run->is_marked;
    run->hash = mixed(0x51ED27 ^ (uint64_t)run->previous, state);
    run->hash = spans_hash(run->hash, run->spans);
    for (Py_ssize_t i = 0; i < size; i++) run->hash = value_hash(run->hash, known[i]);
}

void run_recognize(Run *run, const Live *live, Value *known) {
    for (Py_ssize_t i = 0; i < live->size; i++) known[i] = run->tally->slots[live->slots[i]];
    run_identify(run, known, live->size);
}

static bool knows(const Run *run, const Live *live, const Value *known) {
    for (Py_ssize_t i = 0; i < live->size; i++) {
        Value own = run->tally->slots[live->slots[i]];
        if (own.kind != known[i].kind) return false;
        if (own.kind != VALUE_NULL && value_compare(own, known[i]) != 0) return false;
    }
    return true;
}

/* --- tables */

Run *table_find(const RunTable *table, const Run *like, const Live *live, const Value *known) {
    if (table->room == 0) return NULL;
    Run *run = table->places[like->hash & (uint64_t)(table->room - 1)];
    for (; run != NULL; run = run->next)
        if (run->hash == like->hash && run->state == like->state && run->mode == like->mode &&
            run->is_marked == like->is_marked && run->previous == like->previous &&
            spans_equal(run->spans, like->spans) && knows(run, live, known))
            return run;
    return NULL;
}

static void link_run(RunTable *table, Run *run) {
    Run **place = &table->places[run->hash & (uint64_t)(table->room - 1)];
    run->next = *place;
    *place = run;
}

static int table_widen(RunTable *table) {
    Py_ssize_t room = table->room ? table->room * 2 : 16;
    RunTable wider = {allocate_zeros(room, sizeof(Run *)), room, table->size};
    if (wider.places == NULL) return -1;
    for (Py_ssize_t i = 0; i < table->room; i++)
        for (Run *run = table->places[i], *next; run != NULL; run = next) {
            next = run->next;
            link_run(&wider, run);
        }
    release_memory(table->places);
    *table = wider;
    return 0;
}

int table_put(RunTable *table, Run *run) {
    if (table->size >= table->room && table_widen(table) < 0) return -1;
    link_run(table, run);
    table->size++;
    return 0;
}

void table_remove(RunTable *table, Run *run) {
    Run **place = &table->places[run->hash & (uint64_t)(table->room - 1)];
    while (*place != run) place = &(*place)->next;
    *place = run->next;
    table->size--;
}

void table_free(RunTable *table) {
    release_memory(table->places);
    *table = (RunTable){0};
}

/* --- lists */

int list_put(RunList *list, Run *run) {
    Run **items = reserve(list->items, &list->room, list->size + 1, sizeof(Run *));
    if (items == NULL) return -1;
    list->items = items;
    run->place = list->size;
    items[list->size++] = run;
    return 0;
}

void list_remove(RunList *list, Run *run) {
    Run *last = list->items[--list->size];
    list->items[run->place] = last;
    last->place = run->place;
}

void list_free(RunList *list) {
    while (list->size > 0) run_free(list->items[--list->size]);
    release_memory(list->items);
    *list = (RunList){0};
}

void run_free(Run *run) {
    if (run == NULL) return;
    tally_free(run->tally);
    release_memory(run->spans);
    release_memory(run->links);
    counts_free(&run->counts);
    counts_free(&run->weights);
    release_small(run, sizeof(Run));
}
