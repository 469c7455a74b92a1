/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions on single events of a partition, evaluated beforehand. Mirror: Track.of in
 * engines/sequences/runs.py, and the table of next begins there.
 */
#include "base/signals.h"
#include "sequences/backtracking.h"

static const int64_t EVERY = -1;

/* --- tables */

/* Fill a table: events that have some bit of one mask or of the other. */
static void find_next(
    int32_t *table, Py_ssize_t size, const int64_t *one, int64_t one_mask, const int64_t *other,
    int64_t other_mask) {
    int32_t next = (int32_t)size;
    table[size + 1] = table[size] = next;
    for (Py_ssize_t at = size - 1; at >= 0; at--) {
        if (((one[at] & one_mask) | (other[at] & other_mask)) != 0) next = (int32_t)at;
        table[at] = next;
    }
}

static void find_places(Track *track, const Automaton *automaton) {
    Py_ssize_t size = automaton->stream.size, count = automaton->component_count;
    int32_t *places = track->places;
    for (Py_ssize_t c = 0; c < count; c++, places += size + 2) {
        int64_t own = (int64_t)1 << c;
        find_next(places, size, track->begins, own, track->takes, 0);
        track->begun[c] = track->changed[c] = places;
        if (!automaton->components[c].loops) continue;
        places += size + 2;
        find_next(places, size, track->begins, own << 1, track->takes, own);
        track->changed[c] = places;
    }
    for (Py_ssize_t n = 0; n < automaton->absent_count; n++, places += size + 2) {
        find_next(places, size, track->absents, (int64_t)1 << n, track->absents, 0);
        track->absent[n] = places;
    }
}

static Py_ssize_t table_count(const Automaton *automaton) {
    Py_ssize_t count = automaton->component_count + automaton->absent_count;
    for (Py_ssize_t c = 0; c < automaton->component_count; c++)
        count += automaton->components[c].loops;
    return count;
}

/* --- a partition */

static int reserve_bits(int64_t **bits, Py_ssize_t *room, Py_ssize_t size) {
    int64_t *items = reserve(*bits, room, size, sizeof(int64_t));
    if (items == NULL) return size == 0 ? 0 : -1;
    *bits = items;
    return 0;
}

static int make_room(Track *track, const Automaton *automaton) {
    Py_ssize_t size = automaton->stream.size;
    if (size >= INT32_MAX - 1) {
        lock_take();
        PyErr_SetString(PyExc_ValueError, "expected fewer than 2^31 - 2 events");
        return -1;
    }
    Py_ssize_t all = table_count(automaton) * (size + 2);
    int32_t *places = reserve(track->places, &track->place_room, all, sizeof(int32_t));
    if (places == NULL) return -1;
    track->places = places;
    if (reserve_bits(&track->begins, &track->begins_room, size) < 0 ||
        reserve_bits(&track->takes, &track->takes_room, size) < 0)
        return -1;
    return reserve_bits(&track->absents, &track->absents_room, size);
}

int track_turn(Track *track, Automaton *automaton) {
    if (make_room(track, automaton) < 0) return -1;
    for (Py_ssize_t at = 0; at < automaton->stream.size; at++) {
        if (check_signals() < 0) return -1;
        automaton_ask_alone(automaton, at, EVERY);
        track->begins[at] = automaton->begins;
        track->takes[at] = automaton->takes;
        track->absents[at] = automaton->absents;
    }
    find_places(track, automaton);
    return 0;
}

int track_read(Track *track, const Automaton *automaton) {
    Py_ssize_t count = automaton->component_count;
    track->begun = allocate_zeros(count, sizeof(int32_t *));
    track->changed = allocate_zeros(count, sizeof(int32_t *));
    track->absent = allocate_zeros(automaton->absent_count, sizeof(int32_t *));
    bool is_ready = track->begun != NULL && track->changed != NULL && track->absent != NULL;
    return is_ready ? 0 : -1;
}

void track_free(Track *track) {
    release_memory(track->begins);
    release_memory(track->takes);
    release_memory(track->absents);
    release_memory(track->places);
    release_memory(track->begun);
    release_memory(track->changed);
    release_memory(track->absent);
}
