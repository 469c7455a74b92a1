/* SPDX-License-Identifier: Apache-2.0 */
/* The ways of runs. Mirror: NodePayloads in engines/compressed/counting.py; its unions are heaps here. */
#include "compressed/ways.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int32_t rank_of(const Ways *ways, int64_t number) {
    return number == NO_WAY ? 0 : way_at(ways, number)->rank;
}

static int put(Ways *ways, Way way, int64_t *number) {
    Way *items = reserve(ways->items, &ways->room, ways->size + 1, sizeof(Way));
    if (items == NULL) return -1;
    ways->items = items;
    *number = ways->base + ways->size;
    items[ways->size++] = way;
    return 0;
}

int ways_add(Ways *ways, int32_t component, int64_t at, int64_t previous, int64_t *number) {
    Way way = {.previous = previous, .one = NO_WAY, .other = NO_WAY};
    bool begins = previous == NO_WAY;
    way.latest = begins ? at : way_at(ways, previous)->latest;
    way.earliest = begins ? at : way_at(ways, previous)->earliest;
    way.at = at;
    way.component = component;
    way.rank = 1;
    return put(ways, way, number);
}

int ways_meld(Ways *ways, int64_t one, int64_t other, int64_t head, int64_t *melded) {
    *melded = one;
    if (!ways_live(ways, other, head)) return 0;
    *melded = other;
    if (!ways_live(ways, one, head)) return 0;
    bool swaps = way_at(ways, one)->latest < way_at(ways, other)->latest;
    Way root = *way_at(ways, swaps ? other : one);
    root.earliest = least(root.earliest, way_at(ways, swaps ? one : other)->earliest);
    if (ways_meld(ways, root.other, swaps ? one : other, head, &root.other) < 0) return -1;
    if (!ways_live(ways, root.one, head)) root.one = NO_WAY;
    if (rank_of(ways, root.one) < rank_of(ways, root.other)) {
        int64_t high = root.other;
        root.other = root.one;
        root.one = high;
    }
    root.rank = rank_of(ways, root.other) + 1;
    return put(ways, root, melded);
}

void ways_forget(Ways *ways, int64_t head, int64_t at) {
    if (head < ways->marked_at) return;
    Py_ssize_t gone = (Py_ssize_t)(ways->mark - ways->base);
    ways->size -= gone;
    for (Py_ssize_t i = 0; i < ways->size; i++) ways->items[i] = ways->items[gone + i];
    ways->base += gone;
    ways->mark = ways->base + ways->size;
    ways->marked_at = at;
}

void ways_clear(Ways *ways) {
    ways->base += ways->size;
    ways->mark = ways->base;
    ways->size = 0;
}

void ways_free(Ways *ways) {
    release_memory(ways->items);
    *ways = (Ways){0};
}

static void reach(const Ways *ways, uint8_t *reached, int64_t number) {
    if (number >= ways->base) reached[number - ways->base] = 1;
}

int64_t ways_earliest(const Ways *ways, uint8_t *reached, int64_t head) {
    int64_t earliest = INT64_MAX;
    for (Py_ssize_t i = ways->size - 1; i >= 0; i--) {
        const Way *way = &ways->items[i];
        if (!reached[i] || way->latest < head) continue;
        if (way->previous == NO_WAY) earliest = least(earliest, way->at);
        reach(ways, reached, way->previous);
        reach(ways, reached, way->one);
        reach(ways, reached, way->other);
    }
    return earliest;
}
