/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of the current run, what is known after each of them, and what negated components
 * forbid. Mirror: engines/sequences/runs.py, with negation in engines/sequences/runs.py.
 */
#include "sequences/backtracking.h"

/* --- events */

static size_t tally_width(const Backtracker *backtracker) {
    return sizeof(Tally) + (size_t)backtracker->automaton.values.slot_count * sizeof(Value);
}

static Tally *tally_after_event(const Backtracker *backtracker, Py_ssize_t depth) {
    return (Tally *)(backtracker->tallies + (size_t)depth * tally_width(backtracker));
}

const Tally *way_tally(const Backtracker *backtracker) {
    bool is_known = backtracker->depth > 0 && backtracker->automaton.values.slot_count > 0;
    return is_known ? tally_after_event(backtracker, backtracker->depth - 1) : NULL;
}

void way_cut(Backtracker *backtracker, Py_ssize_t depth) {
    if (backtracker->automaton.values.slot_count == 0) backtracker->depth = depth;
    while (backtracker->depth > depth) {
        Tally *tally = tally_after_event(backtracker, --backtracker->depth);
        for (Py_ssize_t i = 0; i < tally->size; i++) value_drop(tally->slots[i]);
    }
}

static int know_more(Backtracker *backtracker, int32_t component, int64_t handle) {
    const Values *values = &backtracker->automaton.values;
    if (values->slot_count == 0) return 0;
    char *tallies = reserve(
        backtracker->tallies, &backtracker->tally_room, backtracker->depth + 1,
        tally_width(backtracker));
    if (tallies == NULL) return -1;
    backtracker->tallies = tallies;
    const Tally *before = way_tally(backtracker);
    Tally *after = tally_after_event(backtracker, backtracker->depth);
    after->size = values->slot_count;
    for (Py_ssize_t i = 0; i < values->slot_count; i++)
        after->slots[i] = tally_slot_after(values, before, component, handle, i);
    return 0;
}

int way_take(Backtracker *backtracker, int32_t component, int64_t at) {
    Py_ssize_t depth = backtracker->depth;
    Taken *way = reserve(backtracker->way, &backtracker->way_room, depth + 1, sizeof(Taken));
    if (way == NULL) return -1;
    backtracker->way = way;
    if (know_more(backtracker, component, automaton_handle(&backtracker->automaton, at)) < 0)
        return -1;
    if (depth == 0 || way[depth - 1].component != component) backtracker->firsts[component] = depth;
    way[backtracker->depth++] = (Taken){at, component};
    return 0;
}

static int64_t last_event(const Backtracker *backtracker) {
    return backtracker->way[backtracker->depth - 1].at;
}

/* --- negation */

/* Return the first event in the window of another. */
static int64_t first_in_window(const Backtracker *backtracker, int64_t last) {
    const Automaton *automaton = &backtracker->automaton;
    const int64_t *times = automaton->stream.times;
    int64_t oldest, low = 0, high = last;
    if (subtract_overflows(times[last], automaton->window, &oldest)) return 0;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (times[middle] < oldest)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t next_candidate(const void *owner, int32_t absent, int64_t at) {
    const Backtracker *backtracker = owner;
    return backtracker->track.absent[absent][at];
}

/* Whether a negated component has events from `low` to before `high` that forbid the run. */
static bool forbids(Backtracker *backtracker, Py_ssize_t number, int64_t low, int64_t high) {
    const Automaton *automaton = &backtracker->automaton;
    const Negative *negative = &automaton->negatives[number];
    const Program *joint = &automaton->absent[negative->first].joint;
    const int32_t *next = backtracker->track.absent[negative->first];
    const Tally *tally = way_tally(backtracker);
    if (negative->count > 1)
        return automaton_follow(automaton, negative, next_candidate, backtracker, low, high, tally);
    for (int64_t at = next[low]; at < high; at = next[at + 1]) {
        backtracker->steps++;
        if (automaton_holds(automaton, joint, tally, automaton_handle(automaton, at))) return true;
    }
    return false;
}

bool way_is_forbidden(Backtracker *backtracker, int32_t component) {
    const Automaton *automaton = &backtracker->automaton;
    for (Py_ssize_t n = 0; n < automaton->negative_count; n++) {
        const Negative *negative = &automaton->negatives[n];
        if (negative->needs != component) continue;
        int64_t low, high;
        if (negative->gap == 0) {
            low = first_in_window(backtracker, last_event(backtracker));
            high = backtracker->start;
            if (low > high) continue;
        } else if (negative->gap == automaton->component_count) {
            low = last_event(backtracker) + 1;
            high = backtracker->end;
        } else {
            const Taken *after = &backtracker->way[backtracker->firsts[negative->gap]];
            low = (after - 1)->at + 1;
            high = after->at;
        }
        if (forbids(backtracker, n, low, high)) return true;
    }
    return false;
}

/* --- matches */

bool way_completes(Backtracker *backtracker) {
    const Automaton *automaton = &backtracker->automaton;
    int32_t count = (int32_t)automaton->component_count;
    const Program *leave = &automaton->components[count - 1].leave;
    return backtracker->way[backtracker->depth - 1].component == count - 1 &&
           automaton_holds(automaton, leave, way_tally(backtracker), 0) &&
           !way_is_forbidden(backtracker, count);
}

int way_found(Backtracker *backtracker) {
    Listed *found = &backtracker->found;
    if (listed_reserve(found, backtracker->depth) < 0) return -1;
    for (Py_ssize_t i = 0; i < backtracker->depth; i++) {
        const Taken *taken = &backtracker->way[i];
        listed_put(found, automaton_handle(&backtracker->automaton, taken->at), taken->component);
    }
    listed_end(found);
    return 0;
}

/* --- configurations */

/* Return what is known of the candidates of an undecided negated component. */
static Value candidates_known(
    const Backtracker *backtracker, Py_ssize_t number, int32_t component, int64_t at) {
    const Negative *negative = &backtracker->automaton.negatives[number];
    const int32_t *next = backtracker->track.absent[negative->first];
    if (negative->gap == 0 || component < negative->gap - 1 || component >= negative->needs)
        return value_null();
    int64_t first, end = at;
    if (component == negative->gap - 1) {
        first = next[last_event(backtracker) + 1];
    } else {
        const Taken *after = &backtracker->way[backtracker->firsts[negative->gap]];
        first = next[(after - 1)->at + 1];
        end = after->at;
    }
    if (first >= end) return value_null();
    if (!negative->judges) return value_int(0);
    return value_int(component == negative->gap - 1 ? first : first << 32 | end);
}

/* Find what distinguishes the current run, in a mode before an event, from runs that continue
   otherwise. */
static void find_known(
    const Backtracker *backtracker, int32_t component, int32_t mode, int64_t at) {
    const Automaton *automaton = &backtracker->automaton;
    const Live *live = &automaton->components[component].live[mode];
    const Tally *tally = way_tally(backtracker);
    Value *known = backtracker->known;
    for (Py_ssize_t n = 0; n < automaton->negative_count; n++)
        *known++ = candidates_known(backtracker, n, component, at);
    for (Py_ssize_t i = 0; i < live->size; i++) *known++ = tally->slots[live->slots[i]];
    while (known < backtracker->known + backtracker->failed.width) *known++ = value_null();
}

int way_was_tried(Backtracker *backtracker, int32_t component, int32_t mode, int64_t at) {
    const Automaton *automaton = &backtracker->automaton;
    Failed *failed = &backtracker->failed;
    bool starts_share = automaton->window < 0 && !automaton->minds_position;
    bool comes_again = backtracker->choice_count > 0 || starts_share;
    if (!comes_again && failed->size == 0) return 0;
    int64_t place = (at * automaton->component_count + component) << 2 | mode;
    find_known(backtracker, component, mode, at);
    if (failed_has(failed, place, backtracker->known)) return 1;
    if (!comes_again) return 0;
    for (Py_ssize_t i = 0; i < failed->width; i++) value_keep(backtracker->known[i]);
    if (failed_add(failed, place, backtracker->known) == 0) return 0;
    for (Py_ssize_t i = 0; i < failed->width; i++) value_drop(backtracker->known[i]);
    return -1;
}
