/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of which no partial match branches: queues of partial matches by state, without versions
 * or a buffer. Mirror: engines/flink/nfa/analysis.py says which these are, nfa.py what they match.
 */
#include "base/signals.h"
#include "flink/kernel.h"

#include <string.h>

enum { STAYS, ENDS, TAKES };

void unbranched_free(Unbranched *own) {
    for (int32_t state = 0; state < own->states; state++) release_memory(own->queues[state].rows);
    release_memory(own->queues);
    release_memory(own->stages);
    release_memory(own->takes);
    release_memory(own->ends);
    release_memory(own->partials);
    release_memory(own->keys);
    *own = (Unbranched){0};
}

int unbranched_read(Unbranched *own, PyObject *stages, PyObject *actions) {
    Py_ssize_t states = PyTuple_Size(stages), size = PyBytes_Size(actions);
    if (states < 0 || size < 0) return -1;
    if (states == 0) return 0;
    if (states > MOST_QUEUES || size % states != 0) {
        PyErr_SetString(PyExc_ValueError, "expected an action for each state");
        return -1;
    }
    own->events = size / states;
    own->partials = allocate_zeros(states, sizeof(int64_t));
    own->keys = allocate_zeros(states, sizeof(int64_t));
    if (own->partials == NULL || own->keys == NULL) return -1;
    own->queues = allocate_zeros(states, sizeof(Queue));
    if (own->queues != NULL) own->states = (int32_t)states;
    own->stages = allocate_zeros(states, sizeof(int32_t));
    own->takes = allocate_zeros(own->events, sizeof(uint32_t));
    own->ends = allocate_zeros(own->events, sizeof(uint32_t));
    const char *action = PyBytes_AsString(actions);
    if (own->queues == NULL || own->stages == NULL || own->takes == NULL || own->ends == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < size; i++) {
        uint32_t bit = (uint32_t)1 << i % states;
        if (action[i] == TAKES) own->takes[i / states] |= bit;
        if (action[i] == ENDS) own->ends[i / states] |= bit;
    }
    for (Py_ssize_t state = 0; state < states; state++) {
        own->stages[state] = (int32_t)PyLong_AsLong(PyTuple_GetItem(stages, state));
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

/* --- the stretch at hand */

typedef struct {
    Kernel *kernel;
    const Events *events;
    int64_t deadline; /* when the oldest partial match ends */
    uint32_t busy; /* the states that have partial matches, and the start */
    uint32_t reached; /* the states that some have taken an event in */
} Stretch;

static int64_t handle_of(const Stretch *own, int64_t place) {
    const int64_t *handles = own->events->handles.items;
    return handles == NULL ? own->events->base + place : handles[place];
}

static int64_t time_of(const Stretch *own, int64_t place) {
    return ((const int64_t *)own->events->times.items)[place];
}

/* Give a partial match, with one more event unless its place is negative. */
static int give(
    const Stretch *own, const int64_t *row, int32_t width, int64_t place, uint8_t kind,
    int64_t time) {
    const int32_t *stages = own->kernel->unbranched.stages;
    Found *found = &own->kernel->found;
    if (found_room(found, width + 1) < 0) return -1;
    Py_ssize_t at = found->events;
    for (int32_t i = 0; i < width; i++, at++) {
        found->stages[at] = stages[i];
        found->handles[at] = handle_of(own, row[i]);
    }
    if (place >= 0) {
        found->stages[at] = stages[width];
        found->handles[at++] = handle_of(own, place);
    }
    found->events = at;
    return found_end(found, kind, time);
}

/* Give that a partial match reaches a stage, if it is the first event for it. */
static int give_first(const Stretch *own, const int64_t *row, int32_t width, int64_t place) {
    const int32_t *stages = own->kernel->unbranched.stages;
    if (!own->kernel->gives_reached) return 0;
    for (int32_t i = 0; i < width; i++)
        if (stages[i] == stages[width]) return 0;
    return give(own, row, width, place, REACHED, time_of(own, place));
}

/* Note that some partial matches take an event in a state, each of which is given otherwise. */
static void count(Stretch *own, int32_t width, Py_ssize_t partials) {
    Unbranched *table = &own->kernel->unbranched;
    table->partials[width] += partials;
    table->keys[width] += !(own->reached >> width & 1);
    own->reached |= (uint32_t)1 << width;
}

/* --- queues: of a state with `width` events before it */

static void empty(Stretch *own, int32_t width) {
    Queue *queue = &own->kernel->unbranched.queues[width];
    queue->first = queue->size = 0;
    own->busy &= ~((uint32_t)1 << width);
}

/* Return room for `count` more rows at the end of a queue. */
static int64_t *more_rows(Stretch *own, int32_t width, Py_ssize_t count) {
    Queue *queue = &own->kernel->unbranched.queues[width];
    if (queue->first > queue->size / 2) {
        queue->size -= queue->first;
        memmove(
            queue->rows, queue->rows + queue->first * width,
            (size_t)(queue->size * width) * sizeof(int64_t));
        queue->first = 0;
    }
    Py_ssize_t needed = (queue->size + count) * width;
    int64_t *rows = reserve(queue->rows, &queue->room, needed, sizeof(int64_t));
    if (rows == NULL) return NULL;
    queue->rows = rows;
    rows += queue->size * width;
    queue->size += count;
    own->busy |= (uint32_t)1 << width;
    return rows;
}

/* Let all partial matches of a state take an event. */
static int take(Stretch *own, int32_t width, int64_t place) {
    Unbranched *table = &own->kernel->unbranched;
    Queue *queue = &table->queues[width];
    bool completes = width == table->states - 1;
    Py_ssize_t partials = queue->size - queue->first;
    int64_t *to = completes ? NULL : more_rows(own, width + 1, partials);
    if (!completes && to == NULL) return -1;
    const int64_t *row = queue->rows + queue->first * width;
    if (table->counts) count(own, width, partials);
    for (Py_ssize_t i = 0; i < partials; i++, row += width) {
        if (!table->counts && give_first(own, row, width, place) < 0) return -1;
        if (completes) {
            if (!table->counts && give(own, row, width, place, MATCH, time_of(own, place)) < 0)
                return -1;
            continue;
        }
        for (int32_t at = 0; at < width; at++) *to++ = row[at];
        *to++ = place;
    }
    empty(own, width);
    return 0;
}

/* --- time */

/* Return when the window of a partial match ends; false if it does not. */
static bool end_of(const Stretch *own, const int64_t *row, int64_t *end) {
    int64_t window = own->kernel->pattern.window_time;
    return window > 0 && !add_overflows(time_of(own, row[0]), window, end);
}

/* End the partial matches whose window has passed: those that began first come first. */
static int pass_time(Stretch *own, int64_t time) {
    Kernel *kernel = own->kernel;
    own->deadline = INT64_MAX;
    for (int32_t width = kernel->unbranched.states - 1; width > 0; width--) {
        Queue *queue = &kernel->unbranched.queues[width];
        for (; queue->first < queue->size; queue->first++) {
            const int64_t *row = queue->rows + queue->first * width;
            int64_t end;
            if (!end_of(own, row, &end)) break;
            if (time < end) {
                if (end < own->deadline) own->deadline = end;
                break;
            }
            kernel->ended.window++;
            if (kernel->pattern.handle_timeout && !kernel->unbranched.counts &&
                give(own, row, width, -1, TIMEOUT, end) < 0)
                return -1;
        }
        if (queue->first == queue->size) empty(own, width);
    }
    return 0;
}

/* Let an event move, end or begin partial matches. */
static int apply(Stretch *own, uint32_t takes, uint32_t ends, int64_t place) {
    Kernel *kernel = own->kernel;
    for (int32_t width = kernel->unbranched.states - 1; width > 0; width--) {
        uint32_t bit = (uint32_t)1 << width;
        if (!(own->busy & bit)) continue;
        if (takes & bit) {
            if (take(own, width, place) < 0) return -1;
        } else if (ends & bit) {
            Queue *queue = &kernel->unbranched.queues[width];
            kernel->ended.by_event[0] += queue->size - queue->first;
            empty(own, width);
        }
    }
    if (!(takes & 1)) return 0;
    int64_t *row = more_rows(own, 1, 1), end;
    if (row == NULL) return -1;
    if (kernel->unbranched.counts)
        count(own, 0, 1);
    else if (give_first(own, NULL, 0, place) < 0)
        return -1;
    *row = place;
    if (end_of(own, row, &end) && end < own->deadline) own->deadline = end;
    return 0;
}

static int match_events(Stretch *own, Py_ssize_t start, Py_ssize_t end) {
    const Unbranched *table = &own->kernel->unbranched;
    const int64_t *times = own->events->times.items, *bits = own->events->bits.items;
    Py_ssize_t words = own->events->words;
    uint64_t last = (uint64_t)table->events - 1;
    for (Py_ssize_t at = start; at < end; at++) {
        if ((at & 1023) == 0 && lock_signals() < 0) return -1;
        if (times[at] >= own->deadline && pass_time(own, times[at]) < 0) return -1;
        uint64_t event = words == 0 ? 0 : (uint64_t)bits[at * words] & last;
        uint32_t takes = table->takes[event], ends = table->ends[event];
        if (((takes | ends) & own->busy) && apply(own, takes, ends, at) < 0) return -1;
    }
    return pass_time(own, INT64_MAX);
}

int unbranched_match(Kernel *kernel, const Events *events, Py_ssize_t start, Py_ssize_t end) {
    Stretch own = {.kernel = kernel, .events = events, .deadline = INT64_MAX, .busy = 1};
    int status = match_events(&own, start, end);
    for (int32_t width = 1; width < kernel->unbranched.states; width++) empty(&own, width);
    if (status < 0) found_forget_open(&kernel->found);
    return status;
}

PyObject *kernel_count_reached(Kernel *kernel, PyObject *unused) {
    (void)unused;
    kernel->unbranched.counts = true;
    Py_RETURN_NONE;
}

PyObject *kernel_reached(Kernel *kernel, PyObject *unused) {
    const Unbranched *own = &kernel->unbranched;
    (void)unused;
    PyObject *result = PyList_New(0);
    for (int32_t state = 0; state < own->states && result != NULL; state++) {
        bool is_first = true;
        for (int32_t before = 0; before < state; before++)
            is_first = is_first && own->stages[before] != own->stages[state];
        if (!is_first) continue;
        PyObject *row = Py_BuildValue(
            "iLL", (int)own->stages[state], (long long)own->partials[state],
            (long long)own->keys[state]);
        if (row == NULL || PyList_Append(result, row) < 0) Py_CLEAR(result);
        Py_XDECREF(row);
    }
    return result;
}
