/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for matches with the standard's meaning: depth first, in the order of preference.
 * Mirror: engines/rows/matching.py.
 *
 * A place encodes an instruction, the open rounds that have taken a row (a bit each) and the row.
 * The stack has the places of untried alternatives, and below each the place of its SPLIT, as
 * ~place, which is remembered as failed when it is popped.
 */
#include "base/signals.h"
#include "rows/search.h"

#include <string.h>

enum { UNKNOWN = 2 }; /* not evaluated yet */

static int64_t width_of(const RowSearch *search) { return search->end - search->begin + 1; }

static int64_t place_of(const RowSearch *search, int64_t number, int64_t mask, int64_t row) {
    return (number << search->loops | mask) * width_of(search) + row - search->begin;
}

/* --- what is remembered */

static int push(RowSearch *search, int64_t place) {
    int64_t *stack = reserve(search->stack, &search->room, search->depth + 1, sizeof(int64_t));
    if (stack == NULL) return -1;
    search->stack = stack;
    stack[search->depth++] = place;
    return 0;
}

static bool has_failed(const RowSearch *search, int64_t place) {
    if (search->has_flags) return search->flags[place];
    return failed_has(&search->failed, place, search->slots.now->slots);
}

/* Remember that a SPLIT has failed, with what is known at the last alternative. */
static int remember(RowSearch *search, int64_t place) {
    if (search->has_flags) {
        search->flags[place] = 1;
        return 0;
    }
    if (failed_add(&search->failed, place, slots_last(&search->slots)) < 0) return -1;
    search->slots.way_count--;
    return 0;
}

/* --- instructions */

static int raised(ProgramAnswer answer) {
    lock_take();
    if (answer == PROGRAM_OVERFLOW) PyErr_SetNone(PyExc_OverflowError);
    if (answer == PROGRAM_DIVIDED_BY_ZERO) PyErr_SetNone(PyExc_ZeroDivisionError);
    return -1;
}

/* Return 1 if a row can be mapped to a variable, 0 if not. */
static int ask(RowSearch *search, int32_t variable, int64_t row) {
    const Py_buffer *answers = &search->answers[variable];
    uint8_t *answer = answers->obj == NULL ? NULL : (uint8_t *)answers->buf + row;
    if (answer != NULL && *answer != UNKNOWN) return *answer;
    search->asked = variable;
    ProgramAnswer holds = slots_ask(&search->slots, variable, row);
    if (holds > PROGRAM_TRUE) return raised(holds);
    if (answer != NULL) *answer = holds == PROGRAM_TRUE;
    return holds == PROGRAM_TRUE;
}

/* Take a row, if its condition holds: return 1 if so, 0 if not. */
static int take(RowSearch *search, const Command *at) {
    Attempt *way = &search->way;
    ((uint8_t *)search->labels.buf)[way->row - way->start] = (uint8_t)at->first;
    slots_take(&search->slots, at->first, way->row);
    int holds = ask(search, at->first, way->row);
    slots_settle(&search->slots, at->first, holds > 0);
    if (holds <= 0) return holds;
    ((uint8_t *)search->hidden.buf)[way->row - way->start] = (uint8_t)at->second;
    way->row++;
    way->mask = ((int64_t)1 << search->loops) - 1;
    way->pc++;
    return 1;
}

/* Try the preferred alternative of a SPLIT: return 1, or 0 if all have failed before. */
static int split(RowSearch *search, const Command *at) {
    Attempt *way = &search->way;
    int64_t place = place_of(search, at->number, way->mask, way->row);
    if (has_failed(search, place)) return 0;
    if (push(search, ~place) < 0 ||
        push(search, place_of(search, at->second, way->mask, way->row)) < 0)
        return -1;
    if (!search->has_flags && slots_push(&search->slots) < 0) return -1;
    way->pc = at->first;
    return 1;
}

/* Execute one instruction: return 1 to continue, 0 if it fails. */
static int step(RowSearch *search, const Command *at) {
    Attempt *way = &search->way;
    switch (at->op) {
    case TAKE: return take(search, at);
    case SPLIT: return split(search, at);
    case JUMP: way->pc = at->first; return 1;
    case START:
    case END:
        if (at->op == START ? way->row != search->begin || !search->has_first
                            : way->row != search->end)
            return 0;
        way->pc++;
        return 1;
    case MARK:
        way->mask &= ~((int64_t)1 << at->first);
        way->pc++;
        return 1;
    default: /* CHECK */
        if (way->mask >> at->first & 1) {
            way->pc++;
            return 1;
        }
        if (at->second < 0) return 0;
        way->pc = at->second;
        return 1;
    }
}

/* Continue with another alternative: return 1, or 0 if there is none. */
static int go_back(RowSearch *search) {
    Attempt *way = &search->way;
    int64_t width = width_of(search);
    while (search->depth) {
        int64_t place = search->stack[--search->depth];
        if (place < 0) {
            if (remember(search, ~place) < 0) return -1;
            continue;
        }
        int64_t rest = place / width;
        way->row = search->begin + place % width;
        way->pc = (int32_t)(rest >> search->loops);
        way->mask = rest & (((int64_t)1 << search->loops) - 1);
        if (!search->has_flags) slots_go_back(&search->slots);
        return 1;
    }
    return 0;
}

/* Return where the preferred match ends, or one of SEARCH_*. */
static int64_t run(RowSearch *search) {
    Attempt *way = &search->way;
    for (;;) {
        const Command *at = &search->code[way->pc];
        if (at->op == ACCEPT) return way->row;
        if (check_signals() < 0) return SEARCH_FAILED;
        int goes_on = 0;
        if (at->op != TAKE || way->row < search->limit)
            goes_on = step(search, at);
        else if (way->is_open && way->row == search->end)
            return SEARCH_OPEN;
        if (goes_on == 0) {
            goes_on = go_back(search);
            if (goes_on == 0) return SEARCH_NONE;
        }
        if (goes_on < 0) return SEARCH_FAILED;
    }
}

/* --- windows */

/* Return how much later one time is than another that is not later. */
static uint64_t since(int64_t earlier, int64_t later) {
    return (uint64_t)later - (uint64_t)earlier;
}

/* Advance the limit to the first row that is too late for a match that begins with a row. */
static void set_limit(RowSearch *search, int64_t start) {
    const int64_t *times = search->times.items;
    if (times == NULL) {
        search->limit = search->end;
        return;
    }
    if (search->limit < start) search->limit = start;
    while (search->limit < search->end &&
           since(times[start], times[search->limit]) < (uint64_t)search->within)
        search->limit++;
}

/* Whether a match that begins with a row may have future rows. */
static bool is_open(const RowSearch *search, int64_t start) {
    const int64_t *times = search->times.items;
    if (!search->is_growing || times == NULL) return search->is_growing;
    return search->watermark < times[start] ||
           since(times[start], search->watermark) < (uint64_t)search->within - 1;
}

/* --- starts */

int search_turn(RowSearch *search, int64_t begin, int64_t end, bool has_first) {
    search->begin = search->limit = begin;
    search->end = end;
    search->has_first = has_first;
    if (!search->has_flags) return 0;
    Py_ssize_t count = (Py_ssize_t)place_of(search, search->splits, 0, begin);
    uint8_t *flags = reserve(search->flags, &search->flag_room, count, 1);
    if (flags == NULL) return count == 0 ? 0 : -1;
    search->flags = flags;
    memset(flags, 0, (size_t)count);
    return 0;
}

int64_t search_next(RowSearch *search, int64_t start, int64_t number) {
    for (; start < search->end; start++) {
        set_limit(search, start);
        search->way = (Attempt){.start = start, .row = start, .is_open = is_open(search, start)};
        slots_begin(&search->slots, number);
        int64_t end = run(search);
        search->depth = 0;
        slots_forget(&search->slots);
        failed_clear(&search->failed);
        if (end != SEARCH_NONE) return end;
    }
    return SEARCH_NONE;
}
