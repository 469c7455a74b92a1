/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs distinguished by one value, in its order. Mirror: the runs of engines/sequences/runs.py, where
 * each of them is visited for every event.
 */
#include "sequences/ladder.h"

#include <stdlib.h>
#include <string.h>

/* Return the first place of at least some rank. */
static Py_ssize_t place_of(const Ladder *ladder, int32_t rank) {
    Py_ssize_t low = 0, high = ladder->size;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (ladder->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ladder_has(const Ladder *ladder, int32_t rank) {
    Py_ssize_t place = place_of(ladder, rank);
    return place < ladder->size && ladder->ranks[place] == rank;
}

int ladder_sum_below(
    const Ladder *ladder, int32_t rank, bool or_equal, int64_t since, Counts *sum) {
    Py_ssize_t places = place_of(ladder, rank);
    if (or_equal && places < ladder->size && ladder->ranks[places] == rank) places++;
    for (; places > 0; places &= places - 1)
        if (counts_add(sum, &ladder->tree[places], since) < 0) return -1;
    return 0;
}

int ladder_put(Ladder *ladder, int32_t rank, const Counts *runs, int64_t since) {
    if (counts_add(&ladder->whole, runs, since) < 0) return -1;
    if (rank < 0) return 0;
    Py_ssize_t place = place_of(ladder, rank);
    if (counts_add(&ladder->own[place], runs, since) < 0) return -1;
    for (Py_ssize_t node = place + 1; node <= ladder->size; node += node & -node)
        if (counts_add(&ladder->tree[node], runs, since) < 0) return -1;
    return 0;
}

static int by_value(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void free_places(Ladder *ladder) {
    for (Py_ssize_t i = 0; i < ladder->size && ladder->own != NULL; i++)
        counts_free(&ladder->own[i]);
    for (Py_ssize_t i = 0; i <= ladder->size && ladder->tree != NULL; i++)
        counts_free(&ladder->tree[i]);
    release_memory(ladder->ranks);
    release_memory(ladder->own);
    release_memory(ladder->tree);
    ladder->ranks = NULL;
    ladder->own = ladder->tree = NULL;
    ladder->size = 0;
}

/* Build a ladder's tree from its places. */
static int add_up(Ladder *ladder, int64_t since) {
    for (Py_ssize_t node = 1; node <= ladder->size; node++) {
        if (counts_add(&ladder->tree[node], &ladder->own[node - 1], since) < 0) return -1;
        Py_ssize_t above = node + (node & -node);
        if (above <= ladder->size &&
            counts_add(&ladder->tree[above], &ladder->tree[node], since) < 0)
            return -1;
    }
    return 0;
}

static bool is_alive(const Counts *runs, int64_t since) {
    return runs->size > 0 && counts_end(runs) > since;
}

Py_ssize_t ladder_alive(const Ladder *ladder, int64_t since) {
    Py_ssize_t alive = 0;
    for (Py_ssize_t i = 0; i < ladder->size; i++) alive += is_alive(&ladder->own[i], since);
    return alive;
}

/* Return the distinct ranks of live runs and future events, sorted. */
static int32_t *ranks_wanted(
    const Ladder *ladder, const int32_t *coming, Py_ssize_t count, int64_t since,
    Py_ssize_t *size) {
    int32_t *ranks = allocate_zeros(ladder->size + count, sizeof(int32_t));
    if (ranks == NULL) return NULL;
    Py_ssize_t all = 0, kept = 0;
    for (Py_ssize_t i = 0; i < ladder->size; i++)
        if (is_alive(&ladder->own[i], since)) ranks[all++] = ladder->ranks[i];
    for (Py_ssize_t i = 0; i < count; i++) ranks[all++] = coming[i];
    if (all > 0) qsort(ranks, (size_t)all, sizeof(int32_t), by_value);
    for (Py_ssize_t i = 0; i < all; i++)
        if (kept == 0 || ranks[kept - 1] != ranks[i]) ranks[kept++] = ranks[i];
    *size = kept;
    return ranks;
}

int ladder_make_room(Ladder *ladder, const int32_t *coming, Py_ssize_t count, int64_t since) {
    Ladder wider = {0};
    wider.ranks = ranks_wanted(ladder, coming, count, since, &wider.size);
    if (wider.ranks == NULL) return -1;
    wider.own = allocate_zeros(wider.size, sizeof(Counts));
    wider.tree = wider.own == NULL ? NULL : allocate_zeros(wider.size + 1, sizeof(Counts));
    if (wider.tree == NULL) {
        free_places(&wider);
        return -1;
    }
    for (Py_ssize_t i = 0; i < ladder->size; i++) {
        Py_ssize_t place = place_of(&wider, ladder->ranks[i]);
        if (place >= wider.size || wider.ranks[place] != ladder->ranks[i]) continue;
        wider.own[place] = ladder->own[i];
        ladder->own[i] = (Counts){0};
    }
    free_places(ladder);
    ladder->ranks = wider.ranks;
    ladder->own = wider.own;
    ladder->tree = wider.tree;
    ladder->size = wider.size;
    return add_up(ladder, since);
}

void ladder_free(Ladder *ladder) {
    free_places(ladder);
    counts_free(&ladder->whole);
    counts_free(&ladder->fresh);
}
