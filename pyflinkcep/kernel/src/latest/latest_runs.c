/* SPDX-License-Identifier: Apache-2.0 */
/* How runs grow, wait and become matches. Mirror: engines/latest/machine.py. */
#include "latest/latest.h"

#include <stdlib.h>

/* --- matches */

/* Make room for one more match, and return where its handles go. */
static int64_t *found_next(LatestFound *found, int32_t rule, int64_t key, int32_t size) {
    int32_t *rules = reserve(found->rules, &found->rule_room, found->size + 1, sizeof(int32_t));
    if (rules == NULL) return NULL;
    found->rules = rules;
    int64_t *keys = reserve(found->keys, &found->key_room, found->size + 1, sizeof(int64_t));
    if (keys == NULL) return NULL;
    found->keys = keys;
    int64_t *ends = reserve(found->ends, &found->end_room, found->size + 1, sizeof(int64_t));
    if (ends == NULL) return NULL;
    found->ends = ends;
    int64_t *handles =
        reserve(found->handles, &found->handle_room, found->handle_count + size, sizeof(int64_t));
    if (handles == NULL) return NULL;
    found->handles = handles;
    int64_t *own = &handles[found->handle_count];
    found->handle_count += size;
    rules[found->size] = rule;
    keys[found->size] = key;
    ends[found->size++] = found->handle_count;
    return own;
}

/* Make room for a match whose place in the order is not known yet. */
static int64_t *told_next(Latest *latest, int64_t number, int64_t key, int32_t size) {
    Told *told = reserve(latest->told, &latest->told_room, latest->told_count + 1, sizeof(Told));
    if (told == NULL) return NULL;
    latest->told = told;
    int64_t *handles = reserve(
        latest->told_handles, &latest->told_handle_room, latest->told_handle_count + size,
        sizeof(int64_t));
    if (handles == NULL) return NULL;
    latest->told_handles = handles;
    told[latest->told_count++] = (Told){number, key, latest->told_handle_count};
    latest->told_handle_count += size;
    return &handles[latest->told_handle_count - size];
}

static int by_number(const void *left, const void *right) {
    int64_t a = ((const Told *)left)->number, b = ((const Told *)right)->number;
    return (a > b) - (a < b);
}

int rule_tell(Latest *latest, int32_t rule) {
    int32_t size = latest->rules[rule].size;
    if (latest->told_count > 1)
        qsort(latest->told, (size_t)latest->told_count, sizeof(Told), by_number);
    for (Py_ssize_t i = 0; i < latest->told_count; i++) {
        int64_t *handles = found_next(&latest->found, rule, latest->told[i].key, size);
        if (handles == NULL) return -1;
        for (int32_t n = 0; n < size; n++)
            handles[n] = latest->told_handles[latest->told[i].at + n];
    }
    latest->told_count = latest->told_handle_count = 0;
    return 0;
}

/* --- runs that wait */

static void waiting_free(LatestRule *rule, int32_t at) {
    rule->waiting[at].row = NONE;
    rule->waiting[at].next = rule->free_waiting;
    rule->free_waiting = at;
}

int rule_wait(
    LatestRule *rule, int32_t row, int64_t since, int64_t last, int64_t before,
    const int64_t *handles) {
    int32_t at = rule->free_waiting;
    if (at != NONE)
        rule->free_waiting = rule->waiting[at].next;
    else {
        Waiting *waiting =
            reserve(rule->waiting, &rule->waiting_room, rule->waiting_count + 1, sizeof(Waiting));
        if (waiting == NULL) return -1;
        rule->waiting = waiting;
        int64_t *own = reserve(
            rule->waiting_handles, &rule->waiting_handle_room,
            (rule->waiting_count + 1) * rule->size, sizeof(int64_t));
        if (own == NULL) return -1;
        rule->waiting_handles = own;
        at = (int32_t)rule->waiting_count++;
    }
    rule->waiting[at] = (Waiting){since, last, before, rule->number, NONE, row};
    for (int32_t n = 0; n < rule->size; n++)
        rule->waiting_handles[(Py_ssize_t)at * rule->size + n] = handles[n];
    Extra *extra = &rule->extras[row];
    if (extra->waiting == NONE)
        extra->waiting = at;
    else
        rule->waiting[extra->last_waiting].next = at;
    extra->last_waiting = at;
    return 0;
}

static int tell_waiting(Latest *latest, LatestRule *rule, int32_t at) {
    const Waiting *one = &rule->waiting[at];
    int64_t *handles = told_next(latest, one->number, rule->keys[one->row], rule->size);
    if (handles == NULL) return -1;
    for (int32_t n = 0; n < rule->size; n++)
        handles[n] = rule->waiting_handles[(Py_ssize_t)at * rule->size + n];
    return 0;
}

/* Whether no event of the trailing steps can stop a match any more. */
static bool is_decided(const LatestRule *rule, const Waiting *one, int64_t time, bool inclusive) {
    if (time < one->since) return false;
    if (inclusive && time == INT64_MAX) return true; /* no event will come */
    uint64_t passed = elapsed(one->since, time);
    return inclusive ? passed >= rule->maxspan : passed > rule->maxspan;
}

/*
 * Tell the runs of a key that are decided, and stop those that an event of a trailing step, if it
 * `is_trailing`, comes after; the others go on waiting.
 */
static int settle(
    Latest *latest, LatestRule *rule, int32_t row, int64_t time, bool inclusive, bool is_trailing) {
    Extra *extra = &rule->extras[row];
    int32_t at = extra->waiting, kept = NONE;
    extra->waiting = NONE;
    while (at != NONE) {
        Waiting *one = &rule->waiting[at];
        int32_t next = one->next;
        bool is_told = is_decided(rule, one, time, inclusive);
        if (is_told && tell_waiting(latest, rule, at) < 0) return -1;
        if (is_told || (is_trailing && one->last < time))
            waiting_free(rule, at);
        else {
            one->next = NONE;
            if (kept == NONE)
                extra->waiting = at;
            else
                rule->waiting[kept].next = at;
            extra->last_waiting = kept = at;
        }
        at = next;
    }
    return 0;
}

int rule_advance(Latest *latest, LatestRule *rule, int64_t time, bool inclusive) {
    for (Py_ssize_t at = 0; at < rule->waiting_count; at++) {
        const Waiting *one = &rule->waiting[at];
        if (one->row != NONE && is_decided(rule, one, time, inclusive) &&
            settle(latest, rule, one->row, time, inclusive, false) < 0)
            return -1;
    }
    return 0;
}

/* --- events */

/* A run has all its events. */
static int complete(
    Latest *latest, LatestRule *rule, int32_t row, int64_t key, const RunSlot *run,
    const Mark *mark) {
    int32_t size = rule->size;
    if (!rule->has_missing) {
        int64_t *handles = found_next(&latest->found, (int32_t)(rule - latest->rules), key, size);
        if (handles == NULL) return -1;
        slot_handles(latest, run, size, handles);
        return 0;
    }
    bool is_match = mark->between != BROKEN, waits = false;
    int64_t since = mark->before == NEVER ? run->first : mark->before;
    if (is_match && !(rule->leads && mark->before == NEVER)) {
        waits = rule->trails;
        if (rule->leads && !waits) is_match = elapsed(since, mark->last) > rule->maxspan;
    }
    if (is_match) {
        int64_t *handles = told_next(latest, rule->number, key, size);
        if (handles == NULL) return -1;
        slot_handles(latest, run, size, handles);
        if (waits) {
            latest->told_count--;
            latest->told_handle_count -= size;
            if (row == NONE && (row = row_made(rule, key)) == NONE) return -1;
            if (rule_wait(rule, row, since, mark->last, mark->before, handles) < 0) return -1;
        }
    }
    rule->number++;
    return 0;
}

/* An event begins a run. */
static int begin(Latest *latest, LatestRule *rule, int64_t handle, int64_t time, int64_t key) {
    int32_t row = rule->size > 1 ? row_made(rule, key) : row_of(rule, key);
    if (row == NONE && rule->size > 1) return -1;
    RunSlot run = {time, handle, NONE, true};
    Mark mark = {time, NEVER, NEVER};
    if (rule->has_missing && row != NONE) {
        const Extra *extra = &rule->extras[row];
        mark.before = extra->leading == time ? extra->leading_before : extra->leading;
    }
    if (rule->size == 1) return complete(latest, rule, row, key, &run, &mark);
    Py_ssize_t at = row * (Py_ssize_t)(rule->size - 1);
    rule->slots[at] = run;
    if (rule->has_missing) rule->marks[at] = mark;
    return 0;
}

/* An event continues the run of the rank before, which leaves its place whatever follows. */
static int go_on(
    Latest *latest, LatestRule *rule, int32_t rank, int64_t handle, int64_t time, int64_t key) {
    int32_t row = row_of(rule, key);
    if (row == NONE) return 0;
    Py_ssize_t at = row * (Py_ssize_t)(rule->size - 1) + rank - 1;
    RunSlot *slot = &rule->slots[at];
    if (!slot->is_taken) return 0;
    if (elapsed(slot->first, time) > rule->maxspan) {
        slot_clear(latest, slot);
        return 0;
    }
    if (slot_extend(latest, slot, handle) < 0) return -1;
    Mark mark = {0};
    if (rule->has_missing) {
        mark = rule->marks[at];
        mark.last = time;
        if (mark.between != BROKEN)
            mark.between = mark.between != NEVER && mark.between < time ? BROKEN : NEVER;
    }
    if (rank == rule->size - 1) {
        int status = complete(latest, rule, row, key, slot, &mark);
        slot_clear(latest, &rule->slots[at]);
        return status;
    }
    slot_clear(latest, slot + 1);
    slot[1] = *slot;
    slot->is_taken = false;
    if (rule->has_missing) rule->marks[at + 1] = mark;
    return 0;
}

/* An event satisfies a missing step, or `until`. */
static int meet(
    Latest *latest, LatestRule *rule, const LatestStep *step, int64_t time, int64_t key) {
    int32_t row = step->role == ROLE_LEADING ? row_made(rule, key) : row_of(rule, key);
    if (row == NONE) return step->role == ROLE_LEADING ? -1 : 0;
    Py_ssize_t at = row * (Py_ssize_t)(rule->size - 1);
    if (step->role == ROLE_UNTIL) {
        for (int32_t rank = 0; rank < rule->size - 1; rank++)
            slot_clear(latest, &rule->slots[at + rank]);
        return 0;
    }
    if (step->role == ROLE_TRAILING) return settle(latest, rule, row, time, false, true);
    if (step->role == ROLE_LEADING) {
        Extra *extra = &rule->extras[row];
        if (extra->leading == NEVER || extra->leading < time) {
            extra->leading_before = extra->leading;
            extra->leading = time;
        }
        return 0;
    }
    Mark *mark = &rule->marks[at + step->rank];
    if (rule->slots[at + step->rank].is_taken && mark->between == NEVER && mark->last < time)
        mark->between = time;
    return 0;
}

int rule_offer(
    Latest *latest, LatestRule *rule, const LatestStep *step, int64_t handle, int64_t time,
    int64_t key) {
    if (step->role != ROLE_TAKES) return meet(latest, rule, step, time, key);
    if (step->rank == 0) return begin(latest, rule, handle, time, key);
    return go_on(latest, rule, step->rank, handle, time, key);
}

/* --- garbage */

static bool is_garbage(const LatestRule *rule, int64_t from, int64_t time) {
    return time >= from && elapsed(from, time) >= rule->maxspan;
}

void rule_prune(Latest *latest, LatestRule *rule, int64_t time) {
    Py_ssize_t width = rule->size - 1;
    if (rule->maxspan == UINT64_MAX) return;
    for (Py_ssize_t i = 0; i < rule->row_count * width; i++)
        if (rule->slots[i].is_taken && is_garbage(rule, rule->slots[i].first, time))
            slot_clear(latest, &rule->slots[i]);
    for (Py_ssize_t row = 0; rule->has_missing && row < rule->row_count; row++) {
        Extra *extra = &rule->extras[row];
        if (extra->leading_before != NEVER && is_garbage(rule, extra->leading_before, time))
            extra->leading_before = NEVER;
        if (extra->leading != NEVER && is_garbage(rule, extra->leading, time))
            extra->leading = NEVER;
    }
}
