/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs at a component by the value that an equality asks of the next event: an event that fails
 * a clause `field = slot` of an edge changes no run by that edge, if the strategies let runs skip it.
 * Plain Python (engines/sequences/runs.py) asks all runs instead; so do few runs here.
 */
#include "sequences/joined.h"

static const Py_ssize_t MANY = 32; /* runs that are worth looking up */

/* --- which events find their runs */

void joined_prepare(Joined *joined, const Automaton *automaton, Py_ssize_t component) {
    static const Equality none = {-1, -1};
    bool is_last = component + 1 == automaton->component_count;
    joined->equal[BEGIN_EDGE] = is_last ? none : automaton->components[component + 1].begin_equal;
    joined->equal[TAKE_EDGE] = automaton->components[component].take_equal;
    joined->is_usable = !automaton_is_restless(automaton, component) &&
                        (is_last || !automaton_is_restless(automaton, component + 1));
}

int joined_answers(
    Joined *joined, const Automaton *automaton, Py_ssize_t component, const RunList *runs) {
    if (!joined->is_usable || has_bit(automaton->closes, component)) return 0;
    bool begins = has_bit(automaton->begins, component + 1);
    bool takes = has_bit(automaton->takes, component);
    if ((begins && joined->equal[BEGIN_EDGE].slot < 0) ||
        (takes && joined->equal[TAKE_EDGE].slot < 0))
        return 0;
    if (joined->is_open) return 1;
    if (runs->size < MANY) return 0;
    joined->is_open = true;
    for (Py_ssize_t i = 0; i < runs->size; i++)
        if (joined_put(joined, runs->items[i]) < 0) return -1;
    return 1;
}

/* --- values */

/* Return the hash of a value, never 0; 0 for NULL. Equal values of any types have the same. */
static uint64_t key_of(Value value) {
    if (value.kind == VALUE_NULL || value.kind == VALUE_OVERFLOWED) return 0;
    if (value.kind == VALUE_INT) value = value_float((double)value.as.i);
    uint64_t hash = value_hash(0x51ED27, value);
    hash ^= hash >> 32;
    return hash == 0 ? 1 : hash;
}

void joined_ask(Joined *joined, const Automaton *automaton, Py_ssize_t component, Py_ssize_t at) {
    bool fits[JOINED_EDGES] = {
        has_bit(automaton->begins, component + 1), has_bit(automaton->takes, component)};
    for (int edge = 0; edge < JOINED_EDGES; edge++) {
        joined->asked[edge] = 0;
        if (!fits[edge]) continue;
        Value value = values_field(
            &automaton->values, joined->equal[edge].field, automaton_handle(automaton, at));
        joined->asked[edge] = key_of(value);
        value_drop(value);
    }
}

static Run **place_of(const Joined *joined, int edge, uint64_t hash) {
    return &joined->places[edge][hash & (uint64_t)(joined->room - 1)];
}

Run *joined_first(const Joined *joined, int edge) {
    return joined->asked[edge] == 0 ? NULL : *place_of(joined, edge, joined->asked[edge]);
}

bool joined_meets(const Joined *joined, const Run *run, int edge) {
    if (run->links->hash[edge] != joined->asked[edge]) return false;
    uint64_t begin = joined->asked[BEGIN_EDGE];
    return edge == BEGIN_EDGE || begin == 0 || run->links->hash[BEGIN_EDGE] != begin;
}

/* --- runs */

static void link_edge(Joined *joined, Run *run, int edge) {
    Links *links = run->links;
    if (links->hash[edge] == 0) return;
    Run **place = place_of(joined, edge, links->hash[edge]);
    links->before[edge] = NULL;
    links->after[edge] = *place;
    if (*place != NULL) (*place)->links->before[edge] = run;
    *place = run;
}

static void unlink_edge(Joined *joined, Run *run, int edge) {
    Links *links = run->links;
    if (links->hash[edge] == 0) return;
    Run *before = links->before[edge], *after = links->after[edge];
    if (before != NULL)
        before->links->after[edge] = after;
    else
        *place_of(joined, edge, links->hash[edge]) = after;
    if (after != NULL) after->links->before[edge] = before;
}

/* Make room for twice as many runs. */
static int widen(Joined *joined) {
    Joined wider = *joined;
    wider.room = joined->room ? joined->room * 2 : 64;
    for (int edge = 0; edge < JOINED_EDGES; edge++)
        wider.places[edge] = allocate_zeros(wider.room, sizeof(Run *));
    if (wider.places[BEGIN_EDGE] == NULL || wider.places[TAKE_EDGE] == NULL) {
        for (int edge = 0; edge < JOINED_EDGES; edge++) release_memory(wider.places[edge]);
        return -1;
    }
    for (int edge = 0; edge < JOINED_EDGES; edge++) {
        for (Py_ssize_t i = 0; i < joined->room; i++)
            for (Run *run = joined->places[edge][i], *next; run != NULL; run = next) {
                next = run->links->after[edge];
                link_edge(&wider, run, edge);
            }
        release_memory(joined->places[edge]);
    }
    *joined = wider;
    return 0;
}

int joined_put(Joined *joined, Run *run) {
    if (!joined->is_open) return 0;
    if (joined->size >= joined->room && widen(joined) < 0) return -1;
    Links *links = allocate(sizeof(Links));
    if (links == NULL) return -1;
    run->links = links;
    for (int edge = 0; edge < JOINED_EDGES; edge++) {
        int32_t slot = joined->equal[edge].slot;
        links->hash[edge] = slot < 0 ? 0 : key_of(run->tally->slots[slot]);
        link_edge(joined, run, edge);
    }
    joined->size++;
    return 0;
}

void joined_remove(Joined *joined, Run *run) {
    if (run->links == NULL) return;
    for (int edge = 0; edge < JOINED_EDGES; edge++) unlink_edge(joined, run, edge);
    release_memory(run->links);
    run->links = NULL;
    joined->size--;
}

void joined_clear(Joined *joined) {
    for (int edge = 0; edge < JOINED_EDGES; edge++) {
        release_memory(joined->places[edge]);
        joined->places[edge] = NULL;
    }
    joined->room = joined->size = 0;
    joined->is_open = false;
}
