/* SPDX-License-Identifier: Apache-2.0 */
/* The state of keys as numbers and handles. Mirror: KeyState.written in engines/latest/machine.py. */
#include "latest/latest.h"

enum { RANKS = 62 }; /* that one number tells about */

typedef struct {
    int64_t *items;
    Py_ssize_t size, room;
} Numbers;

static int put(Numbers *numbers, int64_t number) {
    int64_t *items = reserve(numbers->items, &numbers->room, numbers->size + 1, sizeof(int64_t));
    if (items == NULL) return -1;
    numbers->items = items;
    items[numbers->size++] = number;
    return 0;
}

static int put_handles(Numbers *handles, const Latest *latest, const RunSlot *slot, int32_t count) {
    int64_t *items =
        reserve(handles->items, &handles->room, handles->size + count, sizeof(int64_t));
    if (items == NULL) return -1;
    handles->items = items;
    slot_handles(latest, slot, count, &items[handles->size]);
    handles->size += count;
    return 0;
}

/* Whether a key's state has more than runs. */
static bool has_marks(const LatestRule *rule, Py_ssize_t row) {
    if (!rule->has_missing) return false;
    const Extra *extra = &rule->extras[row];
    if (extra->waiting != NONE || extra->leading != NEVER) return true;
    for (int32_t rank = 0; rank < rule->size - 1; rank++) {
        Py_ssize_t at = row * (rule->size - 1) + rank;
        const Mark *mark = &rule->marks[at];
        if (rule->slots[at].is_taken && (mark->before != NEVER || mark->between != NEVER))
            return true;
    }
    return false;
}

static int write_marks(const LatestRule *rule, Py_ssize_t row, Numbers *numbers, Numbers *handles) {
    const Extra *extra = &rule->extras[row];
    int64_t count = 0;
    for (int32_t rank = 0; rank < rule->size - 1; rank++) {
        Py_ssize_t at = row * (rule->size - 1) + rank;
        if (!rule->slots[at].is_taken) continue;
        if (put(numbers, rule->marks[at].before) < 0 || put(numbers, rule->marks[at].between) < 0)
            return -1;
    }
    for (int32_t at = extra->waiting; at != NONE; at = rule->waiting[at].next) count++;
    if (put(numbers, extra->leading) < 0 || put(numbers, extra->leading_before) < 0 ||
        put(numbers, count) < 0)
        return -1;
    for (int32_t at = extra->waiting; at != NONE; at = rule->waiting[at].next) {
        if (put(numbers, rule->waiting[at].before) < 0) return -1;
        for (int32_t n = 0; n < rule->size; n++)
            if (put(handles, rule->waiting_handles[(Py_ssize_t)at * rule->size + n]) < 0) return -1;
    }
    return 0;
}

/* Write the state of a row; return 0 if there is none. */
static int write_row(
    const Latest *latest, const LatestRule *rule, Py_ssize_t row, Numbers *numbers,
    Numbers *handles) {
    bool marked = has_marks(rule, row), any = marked;
    const RunSlot *slots = &rule->slots[row * (rule->size - 1)];
    for (int32_t rank = 0; rank < rule->size - 1 && !any; rank++) any = slots[rank].is_taken;
    if (!any) return 0;
    for (int32_t low = 0; low < rule->size - 1; low += RANKS) {
        int64_t mask = 0;
        for (int32_t rank = low; rank < rule->size - 1 && rank < low + RANKS; rank++) {
            if (!slots[rank].is_taken) continue;
            mask |= INT64_C(1) << (rank - low);
            if (put_handles(handles, latest, &slots[rank], rank + 1) < 0) return -1;
        }
        if (put(numbers, mask) < 0) return -1;
    }
    return marked && write_marks(rule, row, numbers, handles) < 0 ? -1 : 1;
}

PyObject *latest_written(Latest *latest) {
    /* rules, keys, numbers, their ends, handles, their ends */
    Numbers written[6] = {{0}};
    PyObject *result = NULL;
    for (Py_ssize_t number = 0; number < latest->rule_count; number++) {
        const LatestRule *rule = &latest->rules[number];
        for (Py_ssize_t row = 0; row < rule->row_count; row++) {
            int status = write_row(latest, rule, row, &written[2], &written[4]);
            if (status < 0) goto end;
            if (status > 0 &&
                (put(&written[0], number) < 0 || put(&written[1], rule->keys[row]) < 0 ||
                    put(&written[3], written[2].size) < 0 || put(&written[5], written[4].size) < 0))
                goto end;
        }
    }
    result = PyTuple_New(6);
    for (Py_ssize_t i = 0; i < 6 && result != NULL; i++) {
        PyObject *bytes = bytes_of(written[i].items, written[i].size, sizeof(int64_t));
        if (bytes == NULL || PyTuple_SetItem(result, i, bytes) < 0) Py_CLEAR(result);
    }
end:
    for (Py_ssize_t i = 0; i < 6; i++) release_memory(written[i].items);
    return result;
}

/* --- reading */

/* What is left to read of a row. */
typedef struct {
    const int64_t *numbers, *numbers_end, *handles, *times, *handles_end;
} Rest;

static bool has_numbers(const Rest *rest, Py_ssize_t count) {
    return rest->numbers_end - rest->numbers >= count;
}

static int damaged(void) {
    PyErr_SetString(PyExc_ValueError, "ends early");
    return -1;
}

static int read_run(Latest *latest, Rest *rest, int32_t count, RunSlot *slot) {
    if (rest->handles_end - rest->handles < count) return damaged();
    *slot = (RunSlot){rest->times[0], rest->handles[0], NONE, true};
    for (int32_t n = 1; n < count; n++)
        if (slot_extend(latest, slot, rest->handles[n]) < 0) return -1;
    rest->handles += count;
    rest->times += count;
    return 0;
}

static int read_marks(LatestRule *rule, int32_t row, Rest *rest) {
    Py_ssize_t width = rule->size - 1;
    for (Py_ssize_t at = row * width; at < (row + 1) * width; at++) {
        if (!rule->slots[at].is_taken) continue;
        if (!has_numbers(rest, 2)) return damaged();
        rule->marks[at].before = *rest->numbers++;
        rule->marks[at].between = *rest->numbers++;
    }
    if (!has_numbers(rest, 3)) return damaged();
    rule->extras[row].leading = *rest->numbers++;
    rule->extras[row].leading_before = *rest->numbers++;
    int64_t count = *rest->numbers++;
    for (int64_t i = 0; i < count; i++) {
        if (!has_numbers(rest, 1) || rest->handles_end - rest->handles < rule->size)
            return damaged();
        int64_t before = *rest->numbers++, first = rest->times[0];
        if (rule_wait(
                rule, row, before == NEVER ? first : before, rest->times[rule->size - 1], before,
                rest->handles) < 0)
            return -1;
        rule->number++;
        rest->handles += rule->size;
        rest->times += rule->size;
    }
    return 0;
}

static int read_row(Latest *latest, LatestRule *rule, int64_t key, Rest *rest) {
    int32_t row = row_made(rule, key);
    if (row == NONE) return -1;
    Py_ssize_t base = row * (Py_ssize_t)(rule->size - 1);
    for (int32_t low = 0; low < rule->size - 1; low += RANKS) {
        if (!has_numbers(rest, 1)) return damaged();
        int64_t mask = *rest->numbers++;
        for (int32_t rank = low; rank < rule->size - 1 && rank < low + RANKS; rank++) {
            if (!(mask >> (rank - low) & 1)) continue;
            RunSlot *slot = &rule->slots[base + rank];
            slot_clear(latest, slot);
            const int64_t *times = rest->times;
            if (read_run(latest, rest, rank + 1, slot) < 0) return -1;
            if (rule->has_missing) rule->marks[base + rank] = (Mark){times[rank], NEVER, NEVER};
        }
    }
    return rule->has_missing && has_numbers(rest, 1) ? read_marks(rule, row, rest) : 0;
}

int latest_read(Latest *latest, const Array arrays[7]) {
    const int64_t *rules = arrays[0].items, *keys = arrays[1].items, *numbers = arrays[2].items,
                  *number_ends = arrays[3].items, *handles = arrays[4].items,
                  *handle_ends = arrays[5].items, *times = arrays[6].items;
    Py_ssize_t count = arrays[0].size;
    if (arrays[1].size != count || arrays[3].size != count || arrays[5].size != count ||
        arrays[6].size != arrays[4].size)
        return damaged();
    int64_t number = 0, handle = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (rules[i] < 0 || rules[i] >= latest->rule_count || number_ends[i] < number ||
            number_ends[i] > arrays[2].size || handle_ends[i] < handle ||
            handle_ends[i] > arrays[4].size)
            return damaged();
        Rest rest = {&numbers[number], &numbers[number_ends[i]], &handles[handle], &times[handle],
            &handles[handle_ends[i]]};
        if (read_row(latest, &latest->rules[rules[i]], keys[i], &rest) < 0) return -1;
        number = number_ends[i];
        handle = handle_ends[i];
    }
    return 0;
}
