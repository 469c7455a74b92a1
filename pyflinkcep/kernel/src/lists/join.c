/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches of single events from ordered lists: depth first, testing as many candidates of an
 * element at once as a word has bits. Mirror: EventLists in engines/lists/matching.py.
 */
#include "base/signals.h"
#include "lists/join.h"

static int64_t time_at(const List *list, Py_ssize_t at) {
    return ((const int64_t *)list->times.items)[at];
}

static int64_t position_at(const List *list, Py_ssize_t at) {
    return ((const int64_t *)list->positions.items)[at];
}

static int64_t key_at(const List *list, Py_ssize_t at) {
    return list->keys.items == NULL ? 0 : ((const int64_t *)list->keys.items)[at];
}

/* --- ranges of candidates */

/* What the candidates next to a bound event share: its key, and bounds on time and order. */
typedef struct {
    const List *list;
    int64_t key, time, barrier;
    bool has_time, has_barrier, is_forward;
} Reach;

static bool is_in(const Reach *reach, Py_ssize_t at) {
    const List *list = reach->list;
    if (key_at(list, at) != reach->key) return false;
    if (reach->is_forward)
        return (!reach->has_time || time_at(list, at) <= reach->time) &&
               (!reach->has_barrier || list->order[at] <= reach->barrier);
    return (!reach->has_time || time_at(list, at) >= reach->time) &&
           (!reach->has_barrier || list->order[at] >= reach->barrier);
}

enum { FIRST_WIDTH = 4 };

/* Return where the candidates from `low` on end: by doubling strides, then by bisection. */
static Py_ssize_t end_of_reach(const Reach *reach, Py_ssize_t low) {
    Py_ssize_t high = reach->list->size;
    for (Py_ssize_t width = FIRST_WIDTH; low < high; width *= 2) {
        Py_ssize_t probe = (high - low > width ? low + width : high) - 1;
        if (!is_in(reach, probe)) {
            high = probe;
            break;
        }
        low = probe + 1;
    }
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (is_in(reach, middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Return where the candidates before `high` begin. */
static Py_ssize_t begin_of_reach(const Reach *reach, Py_ssize_t high) {
    Py_ssize_t low = 0;
    for (Py_ssize_t width = FIRST_WIDTH; low < high; width *= 2) {
        Py_ssize_t probe = high > width ? high - width : 0;
        if (!is_in(reach, probe)) {
            low = probe + 1;
            break;
        }
        high = probe;
    }
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (is_in(reach, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

/* Move past the items of a key up to an order; four at once, since there are few. */
static Py_ssize_t past_order(const int64_t *order, Py_ssize_t at, Py_ssize_t size, int64_t most) {
    for (; size - at >= 4; at += 4) {
        int passed = (order[at] <= most) + (order[at + 1] <= most) + (order[at + 2] <= most) +
                     (order[at + 3] <= most);
        if (passed < 4) return at + passed;
    }
    while (at < size && order[at] <= most) at++;
    return at;
}

static bool is_before(const List *to, Py_ssize_t at, int64_t key, int64_t most) {
    int64_t other = key_at(to, at);
    return other == key ? to->order[at] <= most : other < key;
}

void list_link(const List *from, const List *to, bool is_forward, int64_t *links) {
    bool has_keys = from->keys.items != NULL && to->keys.items != NULL;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < from->size; i++) {
        int64_t most = from->order[i], key = key_at(from, i);
        bool is_first = !is_forward && most == INT64_MIN; /* nothing is earlier */
        if (!is_forward && !is_first) most--;
        if (has_keys)
            while (at < to->size && is_before(to, at, key, most) &&
                   !(is_first && key_at(to, at) == key))
                at++;
        else if (!is_first)
            at = past_order(to->order, at, to->size, most);
        links[i] = at;
    }
}

/*
 * Return where the candidates of a step end if its window counts from the event bound first: these
 * come in ascending order, so the end only advances.
 */
static Py_ssize_t next_edge(const Reach *reach, Level *level) {
    const List *list = reach->list;
    while (level->edge < list->size) {
        int64_t key = key_at(list, level->edge);
        if (key > reach->key) break;
        if (key == reach->key && reach->has_time && time_at(list, level->edge) > reach->time) break;
        level->edge++;
    }
    return level->edge;
}

static void open_level(Join *join, Py_ssize_t depth) {
    const Step *step = &join->steps[depth];
    Level *level = &join->levels[depth];
    level->passing = 0;
    if (depth == 0) {
        level->at = 0;
        level->end = join->lists[step->element].size;
        return;
    }
    const List *near = &join->lists[step->neighbour], *far = &join->lists[step->far];
    Py_ssize_t beside = join->bound[step->neighbour];
    Py_ssize_t link = (Py_ssize_t)step->links[beside];
    Reach reach = {.list = &join->lists[step->element],
        .key = key_at(near, beside),
        .is_forward = step->is_forward};
    int64_t edge = time_at(far, join->bound[step->far]);
    if (join->window >= 0)
        reach.has_time = step->is_forward ? !add_overflows(edge, join->window, &reach.time)
                                          : !subtract_overflows(edge, join->window, &reach.time);
    reach.has_barrier = step->barriers.items != NULL;
    if (reach.has_barrier) reach.barrier = ((const int64_t *)step->barriers.items)[beside];
    if (step->is_forward && step->far == join->steps[0].element && !reach.has_barrier) {
        level->at = link;
        level->end = next_edge(&reach, level);
        return;
    }
    level->at = step->is_forward ? link : begin_of_reach(&reach, link);
    level->end = step->is_forward ? end_of_reach(&reach, link) : link;
}

/* --- the join */

/* Test the next candidates of a level; return false if there are none. */
static bool ask_more(Join *join, Py_ssize_t depth) {
    const Step *step = &join->steps[depth];
    Level *level = &join->levels[depth];
    if (level->at >= level->end) return false;
    Py_ssize_t rest = level->end - level->at;
    int count = rest < BATCH ? (int)rest : BATCH;
    level->base = level->at;
    level->at += count;
    uint64_t passing = ~(uint64_t)0 >> (BATCH - count);
    for (Py_ssize_t i = 0; i < step->bound_count; i++)
        passing &= bound_holds(&step->bounds[i], join->bound, level->base, count);
    Batch batch = {.columns = join->columns,
        .bound = join->bound,
        .newest = step->element,
        .base = level->base,
        .count = count};
    for (Py_ssize_t i = 0; i < step->clause_count && passing != 0; i++)
        passing &= batch_holds(&step->clauses[i], &batch, join->stack);
    level->passing = passing;
    level->met += count;
    return true;
}

/* Write a row for each candidate of the last level that passed, up to the room left. */
static Py_ssize_t write_rows(Join *join, Level *level, int64_t *rows, Py_ssize_t most) {
    int32_t element = join->steps[join->depth].element;
    const int64_t *positions = (const int64_t *)join->lists[element].positions.items + level->base;
    const int64_t *row = join->row;
    Py_ssize_t width = join->list_count, written = 0;
    uint64_t passing = level->passing;
    for (; passing != 0 && written < most; written++, passing &= passing - 1) {
        for (Py_ssize_t i = 0; i < width; i++) rows[i] = row[i];
        rows[element] = positions[lowest_bit(passing)];
        rows += width;
    }
    level->passing = passing;
    return written;
}

Py_ssize_t join_rows(Join *join, int64_t *rows, Py_ssize_t most) {
    Py_ssize_t size = 0, width = join->list_count;
    while (join->depth >= 0 && size < most) {
        if (check_signals() < 0) return -1;
        Level *level = &join->levels[join->depth];
        if (level->passing == 0) {
            if (!ask_more(join, join->depth)) join->depth--;
            continue;
        }
        if (join->depth + 1 == join->step_count) {
            size += write_rows(join, level, rows + size * width, most - size);
            continue;
        }
        int32_t element = join->steps[join->depth].element;
        Py_ssize_t place = level->base + lowest_bit(level->passing);
        level->passing &= level->passing - 1;
        join->bound[element] = place;
        join->row[element] = position_at(&join->lists[element], place);
        open_level(join, ++join->depth);
    }
    return size;
}

void join_begin(Join *join) {
    join->depth = 0;
    open_level(join, 0);
}
