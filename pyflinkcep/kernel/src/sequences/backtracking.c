/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches of a SEQ query by depth-first search: one active run, its forks on a stack. Mirror:
 * DepthFirstSearch in engines/sequences/runs.py, with one difference: events that cannot change a run are skipped at once,
 * by tables of the next that may.
 */
#include "sequences/backtracking.h"

#include "base/lock.h"

static const int64_t OFTEN = 1 << 16; /* steps between checks for signals */
static const Py_ssize_t MOST_FAILED = 1 << 30;
static const Py_ssize_t MOST_SHARED = 1 << 18; /* configurations kept between starts, at least */

static int push(Backtracker *backtracker, Choice choice) {
    Choice *choices = reserve(
        backtracker->choices, &backtracker->choice_room, backtracker->choice_count + 1,
        sizeof(Choice));
    if (choices == NULL) return -1;
    backtracker->choices = choices;
    choices[backtracker->choice_count++] = choice;
    return 0;
}

/* --- a run */

/* Return the first event from a position on that may change a run. */
static int64_t next_change(
    const Backtracker *backtracker, int32_t component, int32_t mode, int64_t from) {
    const Automaton *automaton = &backtracker->automaton;
    if ((mode & LOOPING && automaton_is_restless(automaton, component)) ||
        (mode & WAITING && automaton_is_restless(automaton, component + 1)))
        return from;
    const Track *track = &backtracker->track;
    return mode & LOOPING ? track->changed[component][from] : track->begun[component + 1][from];
}

static Edges edges_at(Backtracker *backtracker, int32_t component, int32_t mode, int64_t at) {
    Automaton *automaton = &backtracker->automaton;
    automaton->begins = backtracker->track.begins[at];
    automaton->takes = backtracker->track.takes[at];
    backtracker->met++;
    return automaton_edges(
        automaton, component, mode, way_tally(backtracker), automaton_handle(automaton, at));
}

/* Whether the window has events that may begin the missing components. */
static bool may_end(const Backtracker *backtracker, int32_t component, int64_t at) {
    const Automaton *automaton = &backtracker->automaton;
    for (Py_ssize_t c = component + 1; c < automaton->component_count; c++) {
        at = backtracker->track.begun[c][at + 1];
        if (at >= backtracker->end) return false;
    }
    return true;
}

/* Push all that a run may do with events of its window, the last on top. */
static int try_all(Backtracker *backtracker, int32_t component, int32_t mode, int64_t at) {
    Py_ssize_t depth = backtracker->depth;
    while (mode != 0) {
        at = next_change(backtracker, component, mode, at + 1);
        if (at >= backtracker->end) return 0;
        Edges edges = edges_at(backtracker, component, mode, at);
        backtracker->steps++;
        if (edges.begins && push(backtracker, (Choice){at, depth, component + 1, 0}) < 0) return -1;
        if (edges.takes && push(backtracker, (Choice){at, depth, component, 0}) < 0) return -1;
        mode = edges.mode;
    }
    return 0;
}

/* Push what a run may do with the next event: begin, wait, take, skip; the last on top. */
static int try_next(Backtracker *backtracker, int32_t component, int32_t mode, int64_t at) {
    Py_ssize_t depth = backtracker->depth;
    at = next_change(backtracker, component, mode, at + 1);
    if (at >= backtracker->end) {
        if (backtracker->is_open) backtracker->stops = true;
        return 0;
    }
    int was_tried = way_was_tried(backtracker, component, mode, at);
    if (was_tried != 0) return was_tried < 0 ? -1 : 0;
    Edges edges = edges_at(backtracker, component, mode, at);
    if (edges.mode & LOOPING && push(backtracker, (Choice){at, depth, component, LOOPING}) < 0)
        return -1;
    if (edges.takes && push(backtracker, (Choice){at, depth, component, 0}) < 0) return -1;
    if (edges.mode & WAITING && push(backtracker, (Choice){at, depth, component, WAITING}) < 0)
        return -1;
    return edges.begins ? push(backtracker, (Choice){at, depth, component + 1, 0}) : 0;
}

/* --- starts */

/* Finish a start whose first match is found. */
static void leave_start(Backtracker *backtracker) {
    if (backtracker->output == NOT_OVERLAPPING)
        backtracker->next_start = backtracker->way[backtracker->depth - 1].at + 1;
    backtracker->choice_count = 0;
    failed_clear(&backtracker->failed);
}

/* Whether an event may be the last of a match. */
static bool may_be_last(const Backtracker *backtracker, int64_t at) {
    const uint8_t *may_end = backtracker->may_end.items;
    const int64_t *bounds = backtracker->bounds.items;
    return may_end == NULL || may_end[bounds[backtracker->partition] + at];
}

/* Do what is on top of the stack. */
static int go_on(Backtracker *backtracker) {
    Choice choice = backtracker->choices[--backtracker->choice_count];
    int32_t component = choice.component, mode = choice.mode;
    bool is_all = backtracker->output == ALL;
    way_cut(backtracker, choice.depth);
    if (mode == 0) {
        const Automaton *automaton = &backtracker->automaton;
        bool loops = automaton->components[component].loops;
        if (way_take(backtracker, component, choice.at) < 0) return -1;
        bool begins = backtracker->firsts[component] == choice.depth;
        if (begins && way_is_forbidden(backtracker, component)) return 0;
        if (way_completes(backtracker)) {
            if (may_be_last(backtracker, choice.at) && way_found(backtracker) < 0) return -1;
            if (!is_all) {
                leave_start(backtracker);
                return 0;
            }
        }
        if (component + 1 == automaton->component_count && !loops) return 0;
        if (!backtracker->is_open && !may_end(backtracker, component, choice.at)) return 0;
        mode = loops ? LOOPING : WAITING;
    }
    if (is_all) return try_all(backtracker, component, mode, choice.at);
    return try_next(backtracker, component, mode, choice.at);
}

/* Return how much later one time is than another that is not later. */
static uint64_t since(int64_t earlier, int64_t later) {
    return (uint64_t)later - (uint64_t)earlier;
}

/* Find where the window of a start ends, and whether more events may arrive within it. */
static void set_window(Backtracker *backtracker) {
    const Automaton *automaton = &backtracker->automaton;
    const int64_t *times = automaton->stream.times;
    int64_t first = times[backtracker->start], size = automaton->stream.size;
    backtracker->is_open = backtracker->is_growing;
    if (automaton->window < 0) {
        backtracker->end = size;
        return;
    }
    uint64_t window = (uint64_t)automaton->window;
    while (backtracker->end < size && since(first, times[backtracker->end]) <= window)
        backtracker->end++;
    backtracker->is_open &=
        backtracker->watermark < first || since(first, backtracker->watermark) < window;
}

/*
 * Whether what failed for one start is remembered for the next. There are at most two
 * configurations for an event and component, unless runs differ in what conditions read; then there
 * may be as many as starts times events.
 */
static bool starts_share(const Backtracker *backtracker) {
    const Automaton *automaton = &backtracker->automaton;
    if (automaton->window >= 0 || automaton->minds_position) return false;
    Py_ssize_t size = backtracker->failed.size;
    return size <= MOST_SHARED || size / (2 * automaton->component_count) <= automaton->stream.size;
}

/* Begin with the next start: return 1, or 0 if none is decided. */
static int begin_next(Backtracker *backtracker) {
    const Automaton *automaton = &backtracker->automaton;
    if (backtracker->next_start >= automaton->stream.size) return 0;
    int64_t start = backtracker->track.begun[0][backtracker->next_start];
    if (start >= automaton->stream.size) return 0;
    backtracker->start = start;
    backtracker->next_start = start + 1;
    if (backtracker->end <= start) backtracker->end = start + 1;
    set_window(backtracker);
    if (backtracker->is_open && automaton->waits_for_end) {
        backtracker->stops = true;
        return 0;
    }
    if (!starts_share(backtracker)) failed_clear(&backtracker->failed);
    return push(backtracker, (Choice){.at = start}) < 0 ? -1 : 1;
}

/* Continue in the current partition: return 1, or 0 if there is nothing left to try. */
static int advance(Backtracker *backtracker) {
    if (backtracker->choice_count == 0) {
        int has_begun = begin_next(backtracker);
        if (has_begun <= 0) return has_begun;
    }
    return go_on(backtracker) < 0 ? -1 : 1;
}

/* --- partitions */

/* Open the next partition: return 1, or 0 if all are done. */
static int next_partition(Backtracker *backtracker) {
    Automaton *automaton = &backtracker->automaton;
    const Stream *whole = &backtracker->whole;
    if (backtracker->partition + 2 >= backtracker->bounds.size) return 0;
    const int64_t *bounds = backtracker->bounds.items;
    int64_t begin = bounds[++backtracker->partition];
    automaton->stream = *whole;
    automaton->stream.size = (Py_ssize_t)(bounds[backtracker->partition + 1] - begin);
    automaton->stream.times += begin;
    automaton->stream.codes += begin;
    if (whole->handles != NULL) automaton->stream.handles += begin;
    if (whole->starts != NULL) automaton->stream.starts += begin;
    backtracker->next_start = backtracker->end = 0;
    failed_clear(&backtracker->failed);
    return track_turn(&backtracker->track, automaton) < 0 ? -1 : 1;
}

/* Finish a partition at a start that later events decide. */
static int leave_partition(Backtracker *backtracker) {
    int64_t *undecided = reserve(
        backtracker->undecided, &backtracker->undecided_room, backtracker->undecided_count + 1,
        sizeof(int64_t));
    if (undecided == NULL) return -1;
    backtracker->undecided = undecided;
    undecided[backtracker->undecided_count++] =
        automaton_handle(&backtracker->automaton, backtracker->start);
    backtracker->choice_count = 0;
    backtracker->next_start = backtracker->automaton.stream.size;
    backtracker->stops = false;
    return 0;
}

int backtracker_run(Backtracker *backtracker, Py_ssize_t enough) {
    while (backtracker->found.events < enough) {
        if (++backtracker->steps >= OFTEN) {
            backtracker->steps = 0;
            if (lock_signals() < 0) return -1;
        }
        int status = advance(backtracker);
        if (status >= 0 && backtracker->stops) {
            status = leave_partition(backtracker);
        } else if (status == 0) {
            status = next_partition(backtracker);
            if (status == 0) return 0;
        }
        if (status < 0) return -1;
    }
    return 0;
}

static bool fits(const Backtracker *backtracker) {
    const Array *bounds = &backtracker->bounds, *may_end = &backtracker->may_end;
    const int64_t *items = bounds->items;
    Py_ssize_t size = backtracker->whole.size;
    if (bounds->size == 0 || items[0] != 0 || items[bounds->size - 1] != size) return false;
    for (Py_ssize_t i = 1; i < bounds->size; i++)
        if (items[i] < items[i - 1]) return false;
    bool has_places = bounds->size <= 2 || backtracker->whole.handles != NULL;
    return has_places && (may_end->items == NULL || may_end->size == size);
}

int backtracker_turn(Backtracker *backtracker, PyObject *bounds, PyObject *may_end) {
    backtracker->whole = backtracker->automaton.stream;
    backtracker->automaton.stream.size = 0;
    backtracker->partition = -1;
    backtracker->next_start = backtracker->undecided_count = 0;
    if (array_of(bounds, sizeof(int64_t), &backtracker->bounds) < 0 ||
        array_of(may_end, 1, &backtracker->may_end) < 0)
        return -1;
    if (!fits(backtracker)) {
        PyErr_SetString(PyExc_ValueError, "expected arrays as long as there are events");
        return -1;
    }
    return 0;
}

void backtracker_end(Backtracker *backtracker) {
    way_cut(backtracker, 0);
    backtracker->choice_count = 0;
    listed_clear(&backtracker->found);
    backtracker->stops = false;
    failed_clear(&backtracker->failed);
    array_close(&backtracker->bounds);
    array_close(&backtracker->may_end);
    automaton_close(&backtracker->automaton);
}

int backtracker_read(Backtracker *backtracker) {
    const Automaton *automaton = &backtracker->automaton;
    Py_ssize_t count = automaton->component_count, width = 0;
    for (Py_ssize_t c = 0; c < count; c++)
        for (int mode = 0; mode < 4; mode++)
            if (automaton->components[c].live[mode].size > width)
                width = automaton->components[c].live[mode].size;
    backtracker->failed.width = width + automaton->negative_count;
    backtracker->failed.most = MOST_FAILED;
    backtracker->known = allocate_zeros(backtracker->failed.width, sizeof(Value));
    backtracker->firsts = allocate_zeros(count, sizeof(Py_ssize_t));
    if (backtracker->known == NULL || backtracker->firsts == NULL) return -1;
    return track_read(&backtracker->track, automaton);
}

void backtracker_free(Backtracker *backtracker) {
    backtracker_end(backtracker);
    failed_free(&backtracker->failed);
    track_free(&backtracker->track);
    automaton_free(&backtracker->automaton);
    release_memory(backtracker->known);
    release_memory(backtracker->way);
    release_memory(backtracker->tallies);
    release_memory(backtracker->firsts);
    release_memory(backtracker->choices);
    release_memory(backtracker->undecided);
    listed_free(&backtracker->found);
}
