/* SPDX-License-Identifier: Apache-2.0 */
/* The order of matches, and what a skip strategy makes of them; see nfa/emission.py. */
#include "kernel.h"

/* --- results */

void found_event(Found *found, int32_t stage, int64_t handle) {
    if (found->events == found->event_room) {
        found->event_room = found->event_room ? found->event_room * 2 : 1024;
        size_t room = (size_t)found->event_room;
        found->stages = must_grow(found->stages, room * sizeof(int32_t));
        found->handles = must_grow(found->handles, room * sizeof(int64_t));
    }
    found->stages[found->events] = stage;
    found->handles[found->events++] = handle;
}

void found_end(Found *found, bool is_match, int64_t timestamp) {
    if (found->size == found->room) {
        found->room = found->room ? found->room * 2 : 256;
        size_t room = (size_t)found->room;
        found->kinds = must_grow(found->kinds, room);
        found->times = must_grow(found->times, room * sizeof(int64_t));
        found->ends = must_grow(found->ends, room * sizeof(int64_t));
    }
    found->kinds[found->size] = is_match;
    found->times[found->size] = timestamp;
    found->ends[found->size++] = found->events;
}

/* Add the match that a run has come to; `last_stage` is what the event at work completes it for. */
void matches_add(
    Kernel *kernel, const Partial *partial, Node *node, Version *version, int32_t last_stage) {
    Matches *matches = &kernel->matches;
    Path *path = &kernel->path;
    if (matches->size == matches->room) {
        matches->room = matches->room ? matches->room * 2 : 16;
        matches->items =
            must_grow(matches->items, (size_t)matches->room * sizeof(FoundMatch));
    }
    FoundMatch *match = &matches->items[matches->size++];
    match->start_timestamp = partial->start_timestamp;
    match->start_id = partial->start_id;
    match->first = matches->found.events;
    path_of_run(path, node, version);
    for (Py_ssize_t i = 0; i < path->size; i++)
        found_event(&matches->found, path->steps[i].stage, path->steps[i].entry->handle);
    if (last_stage >= 0) found_event(&matches->found, last_stage, kernel->handle);
    match->end = matches->found.events;
}

/* --- order */

static int compared(
    int64_t left_timestamp, int64_t left_id, int64_t right_timestamp, int64_t right_id) {
    if (left_timestamp != right_timestamp) return left_timestamp < right_timestamp ? -1 : 1;
    return (left_id > right_id) - (left_id < right_id);
}

static int by_start(const FoundMatch *left, const FoundMatch *right) {
    return compared(
        left->start_timestamp, left->start_id, right->start_timestamp, right->start_id);
}

static void sift_down_matches(FoundMatch *heap, Py_ssize_t size, Py_ssize_t index) {
    FoundMatch item = heap[index];
    while (index < size >> 1) {
        Py_ssize_t child = 2 * index + 1;
        if (child + 1 < size && by_start(&heap[child], &heap[child + 1]) > 0) child++;
        if (by_start(&item, &heap[child]) <= 0) break;
        heap[index] = heap[child];
        index = child;
    }
    heap[index] = item;
}

static void give_match(Kernel *kernel, const FoundMatch *match, int64_t timestamp) {
    const Found *events = &kernel->matches.found;
    for (Py_ssize_t i = match->first; i < match->end; i++)
        found_event(&kernel->found, events->stages[i], events->handles[i]);
    found_end(&kernel->found, true, timestamp);
}

/*
 * Give matches that began in this order as Java's priority queue does. As they are sorted, the
 * queue's array is the list itself; where all began at different events that changes nothing.
 */
void emit_at_once(Kernel *kernel, int64_t timestamp) {
    FoundMatch *heap = kernel->matches.items;
    Py_ssize_t size = kernel->matches.size;
    bool rises = true;
    for (Py_ssize_t i = 1; i < size && rises; i++) rises = by_start(&heap[i - 1], &heap[i]) < 0;
    if (rises) {
        for (Py_ssize_t i = 0; i < size; i++) give_match(kernel, &heap[i], timestamp);
    } else if (by_start(&heap[0], &heap[size - 1]) == 0) {
        give_match(kernel, &heap[0], timestamp);
        for (Py_ssize_t i = size - 1; i > 0; i--) give_match(kernel, &heap[i], timestamp);
    } else {
        while (size > 0) {
            give_match(kernel, &heap[0], timestamp);
            heap[0] = heap[--size];
            if (size > 0) sift_down_matches(heap, size, 0);
        }
    }
    kernel->matches.size = kernel->matches.found.events = 0;
}

/* --- the heap of matches that wait; see nfa/heap.py */

static int by_start_event(const Partial *left, const Partial *right) {
    return compared(
        left->start_timestamp, left->start_id, right->start_timestamp, right->start_id);
}

static void heap_add(Partials *heap, Partial item) {
    partial_push(heap, item);
    Py_ssize_t index = heap->size - 1;
    while (index > 0) {
        Py_ssize_t parent = (index - 1) >> 1;
        if (by_start_event(&item, &heap->items[parent]) >= 0) break;
        heap->items[index] = heap->items[parent];
        index = parent;
    }
    heap->items[index] = item;
}

static void sift_down(Partials *heap, Py_ssize_t index) {
    Partial item = heap->items[index];
    while (index < heap->size >> 1) {
        Py_ssize_t child = 2 * index + 1;
        if (child + 1 < heap->size &&
            by_start_event(&heap->items[child], &heap->items[child + 1]) > 0)
            child++;
        if (by_start_event(&item, &heap->items[child]) <= 0) break;
        heap->items[index] = heap->items[child];
        index = child;
    }
    heap->items[index] = item;
}

static Partial heap_poll(Partials *heap) {
    Partial first = heap->items[0], last = heap->items[--heap->size];
    if (heap->size > 0) {
        heap->items[0] = last;
        sift_down(heap, 0);
    }
    return first;
}

/* --- pruning */

typedef struct {
    const Kernel *kernel;
    int64_t timestamp, id;
    bool found, missed;
} Pruning;

static void consider(Pruning *pruning, const Entry *entry, bool smallest) {
    int order = compared(entry->timestamp, entry->id, pruning->timestamp, pruning->id);
    if (pruning->found && (smallest ? order >= 0 : order <= 0)) return;
    pruning->found = true;
    pruning->timestamp = entry->timestamp;
    pruning->id = entry->id;
}

/* Consider the first, or last, event of each stage of a way. */
static void consider_stages(Pruning *pruning, const Path *path, bool firsts) {
    bool *seen = pruning->kernel->stage_stamps;
    for (Py_ssize_t i = 0; i < path->size; i++) {
        const PathStep *step = &path->steps[firsts ? i : path->size - 1 - i];
        if (!seen[step->stage]) consider(pruning, step->entry, firsts);
        seen[step->stage] = true;
    }
    for (Py_ssize_t i = 0; i < path->size; i++) seen[path->steps[i].stage] = false;
}

static const Entry *element_of(const Kernel *kernel, const Path *path) {
    const Entry *element = NULL;
    for (Py_ssize_t i = 0; i < path->size; i++)
        if (path->steps[i].stage == kernel->skip_stage &&
            (kernel->skip_kind == SKIP_TO_LAST || element == NULL))
            element = path->steps[i].entry;
    return element;
}

/* Take a way of a match into account; give whether to look at more. */
static bool consider_path(void *context, const Path *path) {
    Pruning *pruning = context;
    const Kernel *kernel = pruning->kernel;
    if (kernel->skip_kind == SKIP_TO_NEXT || kernel->skip_kind == SKIP_PAST_LAST) {
        consider_stages(pruning, path, kernel->skip_kind == SKIP_TO_NEXT);
        return true;
    }
    const Entry *element = element_of(kernel, path);
    if (element != NULL) consider(pruning, element, false);
    if (kernel->skip_throws) {
        Pruning first = {.kernel = kernel};
        consider_stages(&first, path, true);
        pruning->missed = element == NULL || compared(pruning->timestamp, pruning->id,
                                                      first.timestamp, first.id) == 0;
    }
    return !pruning->missed;
}

static bool superfluous(const Pruning *pruning, const Partial *partial) {
    if (!partial->has_start || partial->node == NULL) return false;
    int order = compared(partial->start_timestamp, partial->start_id, pruning->timestamp,
                         pruning->id);
    int32_t kind = pruning->kernel->skip_kind;
    return kind == SKIP_TO_NEXT || kind == SKIP_PAST_LAST ? order <= 0 : order < 0;
}

static Py_ssize_t drop_superfluous(const Pruning *pruning, Key *key, Partials *partials) {
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < partials->size; i++) {
        Partial partial = partials->items[i];
        if (!superfluous(pruning, &partial)) {
            partials->items[kept++] = partial;
            continue;
        }
        buffer_release_node(&key->buffer, partial.node, partial.version);
        node_drop(partial.node);
        version_drop(partial.version);
    }
    Py_ssize_t dropped = partials->size - kept;
    partials->size = kept;
    return dropped;
}

static bool add_way(void *context, const Path *path) {
    PyObject *ways = context, *steps = PyList_New(0);
    for (Py_ssize_t i = 0; steps != NULL && i < path->size; i++) {
        const PathStep *step = &path->steps[i];
        PyObject *item = Py_BuildValue(
            "(iLL)", step->stage, (long long)step->entry->timestamp, (long long)step->entry->id);
        if (item == NULL || PyList_Append(steps, item) < 0) Py_CLEAR(steps);
        Py_XDECREF(item);
    }
    bool good = steps != NULL && PyList_Append(ways, steps) == 0;
    Py_XDECREF(steps);
    return good;
}

/* Let Python raise the error of a strategy that found nothing to skip to. */
static int raise_miss(Kernel *kernel, const Partial *match) {
    PyObject *ways = PyList_New(0);
    if (ways != NULL && paths_of_run(match->node, match->version, add_way, ways))
        Py_XDECREF(PyObject_CallMethod(kernel->helper, "skip_missed", "O", ways));
    Py_XDECREF(ways);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a skip strategy missed nothing");
    return -1;
}

/* Drop the partial matches and waiting matches that an emitted match makes superfluous. */
static int prune(Kernel *kernel, Key *key, const Partial *match) {
    Pruning pruning = {.kernel = kernel};
    paths_of_run(match->node, match->version, consider_path, &pruning);
    if (pruning.missed) return raise_miss(kernel, match);
    if (!pruning.found) return 0;
    drop_superfluous(&pruning, key, &key->partials);
    key->present_known = false;
    key_first_deadline(kernel, key);
    if (drop_superfluous(&pruning, key, &key->completed) > 0)
        for (Py_ssize_t i = (key->completed.size >> 1) - 1; i >= 0; i--)
            sift_down(&key->completed, i);
    return 0;
}

/*
 * Emit the matches that the skip strategy lets go, earliest start first. A match waits while a
 * partial match with an earlier start lives, and each emitted match prunes others.
 */
int emit(Kernel *kernel, Key *key, Partials *completed, int64_t timestamp) {
    for (Py_ssize_t i = 0; i < completed->size; i++)
        heap_add(&key->completed, completed->items[i]);
    completed->size = 0;
    int status = 0;
    while (status == 0 && key->completed.size > 0) {
        const Partial *earliest = &key->partials.items[0];
        if (earliest->has_start && by_start_event(earliest, &key->completed.items[0]) < 0) break;
        Partial match = heap_poll(&key->completed);
        status = prune(kernel, key, &match);
        if (status == 0) {
            path_of_run(&kernel->path, match.node, match.version);
            for (Py_ssize_t i = 0; i < kernel->path.size; i++)
                found_event(&kernel->found, kernel->path.steps[i].stage,
                            kernel->path.steps[i].entry->handle);
            found_end(&kernel->found, true, timestamp);
        }
        buffer_release_node(&key->buffer, match.node, match.version);
        node_drop(match.node);
        version_drop(match.version);
    }
    return status;
}
