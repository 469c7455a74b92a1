/* SPDX-License-Identifier: Apache-2.0 */
/* A depth-first walk along ways. Mirror: paths in engines/compressed/counting.py. */
#include "base/signals.h"
#include "compressed/ways.h"

static bool is_wanted(const Walk *walk, const Ways *ways, int64_t number) {
    return ways_live(ways, number, walk->head) && way_at(ways, number)->earliest < walk->until;
}

static int put_branch(Walk *walk, const Ways *ways, int64_t number, Py_ssize_t depth) {
    if (!is_wanted(walk, ways, number)) return 0;
    Branch *branches = reserve(walk->branches, &walk->room, walk->size + 1, sizeof(Branch));
    if (branches == NULL) return -1;
    walk->branches = branches;
    branches[walk->size++] = (Branch){number, depth};
    return 0;
}

static int put_event(Walk *walk, Py_ssize_t depth, WayEvent event) {
    WayEvent *events = reserve(walk->events, &walk->event_room, depth + 1, sizeof(WayEvent));
    if (events == NULL) return -1;
    walk->events = events;
    events[depth] = event;
    return 0;
}

int walk_begin(Walk *walk, const Ways *ways, int64_t number, const WayEvent *last) {
    walk->size = 0;
    if (last != NULL && put_event(walk, 0, *last) < 0) return -1;
    return put_branch(walk, ways, number, last != NULL);
}

/*
 * Go back along a branch to a first event; push the other branches. Return the length of the way, 0
 * if its start is excluded, -1 with an exception.
 */
static Py_ssize_t go_back(Walk *walk, const Ways *ways, Branch branch) {
    int64_t number = branch.number;
    for (Py_ssize_t depth = branch.depth;; depth++) {
        const Way *way = way_at(ways, number);
        if (put_branch(walk, ways, way->other, depth) < 0 ||
            put_branch(walk, ways, way->one, depth) < 0 ||
            put_event(walk, depth, (WayEvent){way->at, way->component}) < 0)
            return -1;
        number = way->previous;
        if (number == NO_WAY) return way->at < walk->until ? depth + 1 : 0;
        if (way_at(ways, number)->earliest >= walk->until) return 0;
    }
}

int walk_next(Walk *walk, const Ways *ways, Py_ssize_t *length) {
    *length = 0;
    while (*length == 0 && walk->size > 0) {
        if (check_signals() < 0) return -1;
        *length = go_back(walk, ways, walk->branches[--walk->size]);
    }
    return *length < 0 ? -1 : *length > 0;
}

void walk_free(Walk *walk) {
    release_memory(walk->branches);
    release_memory(walk->events);
    *walk = (Walk){0};
}
