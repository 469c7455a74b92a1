/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns whose partial matches branch, but come to each event by a way of their own: lists of
 * partial matches, and a link from each event to the one taken before it, without versions or a
 * buffer. Mirror: engines/flink/nfa/analysis.py says which these are, nfa.py what they match.
 */
#include "base/signals.h"
#include "flink/kernel.h"

enum { NOTHING = -1 };

void own_ways_free(OwnWays *ways) {
    release_memory(ways->steps);
    release_memory(ways->changed);
    release_memory(ways->partials.items);
    release_memory(ways->following.items);
    release_memory(ways->taken.items);
    *ways = (OwnWays){0};
}

int own_ways_open(OwnWays *ways, const Pattern *pattern, int bits) {
    if (bits < 0) return 0;
    if (pattern->state_count > MOST_QUEUES || bits > MOST_KNOWN) {
        PyErr_SetString(PyExc_ValueError, "expected few states and conditions");
        return -1;
    }
    Py_ssize_t kinds = (Py_ssize_t)1 << bits;
    ways->steps = allocate_zeros(kinds * pattern->state_count, sizeof(Decision *));
    ways->changed = allocate_zeros(kinds, sizeof(uint32_t));
    if (ways->steps == NULL || ways->changed == NULL) return -1;
    ways->kinds = kinds;
    return 0;
}

/* --- the stretch at hand */

typedef struct {
    Kernel *kernel;
    OwnWays *ways;
    const Events *events;
    Py_ssize_t first; /* the row of its first event, to which places are relative */
} Stretch;

static int64_t handle_of(const Stretch *own, int32_t place) {
    const int64_t *handles = own->events->handles.items;
    return handles == NULL ? own->events->base + own->first + place : handles[own->first + place];
}

static int64_t time_of(const Stretch *own, int32_t place) {
    return ((const int64_t *)own->events->times.items)[own->first + place];
}

/* Find what an event of a new kind does in each state, the first one last. */
static int learn(const Stretch *own, int32_t place, uint64_t kind) {
    Kernel *kernel = own->kernel;
    Py_ssize_t states = kernel->pattern.state_count, words = own->events->words;
    const int64_t *bits = own->events->bits.items;
    Decision **steps = own->ways->steps + (Py_ssize_t)kind * states;
    uint32_t changed = 0;
    evaluation_begin(
        &kernel->asked, handle_of(own, place), time_of(own, place),
        words == 0 ? NULL : bits + (own->first + place) * words, words);
    for (int32_t state = (int32_t)states - 1; state >= 0; state--) {
        Decision *step = evaluation_of_runs(kernel, state);
        if (step == NULL) return -1;
        if (!step->keeps) changed |= (uint32_t)1 << state;
        steps[state] = step;
    }
    own->ways->changed[kind] = changed;
    return 0;
}

/* --- events taken, each once for every way to it */

/* Return the index of an event taken after another, with one owner; negative without memory. */
static int32_t take(Stretch *own, int32_t before, int32_t stage, int32_t place) {
    TakenEvents *taken = &own->ways->taken;
    int32_t index = taken->spare;
    if (index != NOTHING) {
        taken->spare = taken->items[index].before;
    } else {
        TakenEvent *items =
            taken->size == INT32_MAX
                ? no_memory()
                : reserve(taken->items, &taken->room, taken->size + 1, sizeof(TakenEvent));
        if (items == NULL) return NOTHING;
        taken->items = items;
        index = (int32_t)taken->size++;
    }
    taken->items[index] = (TakenEvent){before, 1, place, stage};
    if (before != NOTHING) taken->items[before].owners++;
    return index;
}

static void release(Stretch *own, int32_t index) {
    TakenEvents *taken = &own->ways->taken;
    while (index != NOTHING && --taken->items[index].owners == 0) {
        int32_t before = taken->items[index].before;
        taken->items[index].before = taken->spare;
        taken->spare = index;
        index = before;
    }
}

/* Write the events of a partial match before the end of some results. */
static void write_way(const Stretch *own, const OwnPartial *partial, Found *found, Py_ssize_t end) {
    const TakenEvent *items = own->ways->taken.items;
    for (int32_t index = partial->last; index != NOTHING; index = items[index].before) {
        found->stages[--end] = items[index].stage;
        found->handles[end] = handle_of(own, items[index].place);
    }
}

/* --- partial matches, in the order of their starts */

static int push(OwnPartials *partials, OwnPartial partial) {
    OwnPartial *items =
        reserve(partials->items, &partials->room, partials->size + 1, sizeof(OwnPartial));
    if (items == NULL) return -1;
    partials->items = items;
    partials->items[partials->size++] = partial;
    return 0;
}

/* Return when the window of a partial match ends; false if it does not. */
static bool end_of(const Stretch *own, const OwnPartial *partial, int64_t *end) {
    int64_t window = own->kernel->pattern.window_time;
    return window > 0 && !add_overflows(time_of(own, partial->start), window, end);
}

/* End the partial matches whose window has passed, and find when the next one does. */
static int pass_time(Stretch *own, int64_t time) {
    Kernel *kernel = own->kernel;
    OwnWays *ways = own->ways;
    ways->deadline = INT64_MAX;
    for (; ways->first < ways->partials.size; ways->first++) {
        const OwnPartial *partial = &ways->partials.items[ways->first];
        int64_t end;
        if (!end_of(own, partial, &end)) return 0;
        if (time < end) {
            ways->deadline = end;
            return 0;
        }
        kernel->ended.window++;
        if (kernel->pattern.handle_timeout) {
            Found *found = &kernel->found;
            if (found_room(found, partial->size) < 0) return -1;
            found->events += partial->size;
            write_way(own, partial, found, found->events);
            if (found_end(found, TIMEOUT, end) < 0) return -1;
        }
        release(own, partial->last);
    }
    return 0;
}

/* Keep the match that a partial match becomes until all of the event's are known. */
static int add_match(Stretch *own, const OwnPartial *partial, const Move *move, int32_t place) {
    Matches *matches = &own->kernel->matches;
    FoundMatch *items =
        reserve(matches->items, &matches->room, matches->size + 1, sizeof(FoundMatch));
    if (items == NULL) return -1;
    matches->items = items;
    Found *found = &matches->found;
    Py_ssize_t first = found->events, end = first + partial->size + (move->takes ? 1 : 0);
    if (found_room(found, end - first) < 0) return -1;
    found->events = end;
    items[matches->size++] = (FoundMatch){
        time_of(own, partial->start), partial->start, time_of(own, place), first, end};
    if (move->takes) {
        found->stages[--end] = move->stage;
        found->handles[end] = handle_of(own, place);
    }
    write_way(own, partial, found, end);
    return 0;
}

/* Add what a partial match becomes to those that follow, and to the matches. */
static int step_on(Stretch *own, const OwnPartial *partial, const Decision *step, int32_t place) {
    OwnWays *ways = own->ways;
    if (step->size == 0) own->kernel->ended.by_event[step->ending]++;
    for (Py_ssize_t i = 0; i < step->size; i++) {
        const Move *move = &step->moves[i];
        if (move->completes && add_match(own, partial, move, place) < 0) return -1;
        if (!move->continues) continue;
        OwnPartial next = *partial;
        next.state = move->target;
        if (move->takes) {
            next.size++;
            next.last = take(own, partial->last, move->stage, place);
            if (next.last == NOTHING) return -1;
        } else {
            ways->taken.items[next.last].owners++;
        }
        if (push(&ways->following, next) < 0) return -1;
        ways->busy |= (uint32_t)1 << next.state;
    }
    release(own, partial->last);
    return 0;
}

/* Let all partial matches take their steps. */
static int step_all(Stretch *own, Decision *const *steps, int32_t place) {
    OwnWays *ways = own->ways;
    OwnPartials before = ways->partials;
    ways->following.size = 0;
    ways->busy = 0;
    for (Py_ssize_t i = ways->first; i < before.size; i++) {
        const OwnPartial *partial = &before.items[i];
        const Decision *step = steps[partial->state];
        if (check_signals() < 0) return -1;
        if (!step->keeps) {
            if (step_on(own, partial, step, place) < 0) return -1;
            continue;
        }
        if (push(&ways->following, *partial) < 0) return -1;
        ways->busy |= (uint32_t)1 << partial->state;
    }
    ways->partials = ways->following;
    ways->following = before;
    ways->first = 0;
    return 0;
}

/* Begin a partial match, if the start state takes the event. */
static int begin(Stretch *own, const Decision *step, int32_t place) {
    OwnWays *ways = own->ways;
    for (Py_ssize_t i = 0; i < step->size; i++) {
        const Move *move = &step->moves[i];
        if (move->stays) continue;
        OwnPartial made = {move->target, place, take(own, NOTHING, move->stage, place), 1};
        if (made.last == NOTHING || push(&ways->partials, made) < 0) return -1;
        ways->busy |= (uint32_t)1 << made.state;
        int64_t end;
        if (end_of(own, &made, &end) && end < ways->deadline) ways->deadline = end;
    }
    return 0;
}

static int apply(Stretch *own, int32_t place, uint64_t kind, uint32_t changed) {
    Kernel *kernel = own->kernel;
    OwnWays *ways = own->ways;
    Decision *const *steps = ways->steps + (Py_ssize_t)kind * kernel->pattern.state_count;
    if ((changed & ways->busy) && step_all(own, steps, place) < 0) return -1;
    if (begin(own, steps[kernel->pattern.start], place) < 0) return -1;
    Key none = {0};
    return kernel->matches.size == 0 ? 0 : emit_at_once(kernel, &none);
}

/* Match events from a row on until the results are enough; return where to continue. */
static Py_ssize_t match_events(Stretch *own, Py_ssize_t row, Py_ssize_t end, Py_ssize_t most) {
    Kernel *kernel = own->kernel;
    OwnWays *ways = own->ways;
    const int64_t *times = own->events->times.items, *bits = own->events->bits.items;
    Py_ssize_t words = own->events->words;
    uint32_t start = (uint32_t)1 << kernel->pattern.start;
    uint64_t last = (uint64_t)ways->kinds - 1;
    for (Py_ssize_t at = row; at < end; at++) {
        if (at > row && kernel->found.events >= most) return at;
        if ((at & 1023) == 0 && lock_signals() < 0) return -1;
        if (times[at] >= ways->deadline && pass_time(own, times[at]) < 0) return -1;
        int32_t place = (int32_t)(at - own->first);
        uint64_t kind = words == 0 ? 0 : (uint64_t)bits[at * words] & last;
        if (ways->steps[(Py_ssize_t)kind * kernel->pattern.state_count] == NULL &&
            learn(own, place, kind) < 0)
            return -1;
        uint32_t changed = ways->changed[kind];
        if ((changed & (ways->busy | start)) && apply(own, place, kind, changed) < 0) return -1;
    }
    return pass_time(own, INT64_MAX) < 0 ? -1 : end;
}

static void forget(OwnWays *ways) {
    ways->partials.size = ways->following.size = ways->first = ways->taken.size = 0;
    ways->taken.spare = NOTHING;
    ways->busy = 0;
    ways->deadline = INT64_MAX;
}

Py_ssize_t own_ways_match(
    Kernel *kernel, const Events *events, Py_ssize_t first, Py_ssize_t row, Py_ssize_t end,
    Py_ssize_t most_events) {
    Stretch own = {kernel, &kernel->own_ways, events, first};
    if (row == first) forget(own.ways);
    Py_ssize_t at = match_events(&own, row, end, most_events);
    if (at < 0) {
        matches_empty(&kernel->matches);
        found_forget_open(&kernel->found);
    }
    if (at < 0 || at == end) forget(own.ways);
    return at;
}
