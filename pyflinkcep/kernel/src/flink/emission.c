/* SPDX-License-Identifier: Apache-2.0 */
/* The order of matches, and after-match skipping. Mirror: engines/flink/nfa/partial_matches.py. */
#include "base/signals.h"
#include "flink/kernel.h"

/* --- order */

static int compared(
    int64_t left_timestamp, int64_t left_id, int64_t right_timestamp, int64_t right_id) {
    if (left_timestamp != right_timestamp) return left_timestamp < right_timestamp ? -1 : 1;
    return (left_id > right_id) - (left_id < right_id);
}

static int by_start(const FoundMatch *left, const FoundMatch *right) {
    return compared(left->start_timestamp, left->start_id, right->start_timestamp, right->start_id);
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

/* Check for signals; a key whose matches are not all emitted cannot continue. */
static int check_signals_of(Key *key) {
    if (check_signals() == 0) return 0;
    partials_clear(&key->partials);
    return -1;
}

static int give_match(Kernel *kernel, Key *key, const FoundMatch *match) {
    if (check_signals_of(key) < 0) return -1;
    const Found *events = &kernel->matches.found;
    Found *found = &kernel->found;
    if (found_room(found, match->end - match->first) < 0) return -1;
    for (Py_ssize_t i = match->first; i < match->end; i++) {
        found->stages[found->events] = events->stages[i];
        found->handles[found->events++] = events->handles[i];
    }
    return found_end(found, MATCH, match->time);
}

/* Emit the rest of the matches as Java's priority queue does. */
static int give_from_heap(Kernel *kernel, Key *key, FoundMatch *heap, Py_ssize_t size) {
    while (size > 0) {
        if (give_match(kernel, key, &heap[0]) < 0) return -1;
        heap[0] = heap[--size];
        if (size > 0) sift_down_matches(heap, size, 0);
    }
    return 0;
}

int emit_at_once(Kernel *kernel, Key *key) {
    FoundMatch *heap = kernel->matches.items;
    Py_ssize_t size = kernel->matches.size;
    bool rises = true;
    int status = 0;
    for (Py_ssize_t i = 1; i < size && rises; i++) rises = by_start(&heap[i - 1], &heap[i]) < 0;
    if (rises) {
        for (Py_ssize_t i = 0; i < size && status == 0; i++)
            status = give_match(kernel, key, &heap[i]);
    } else if (by_start(&heap[0], &heap[size - 1]) == 0) {
        status = give_match(kernel, key, &heap[0]);
        for (Py_ssize_t i = size - 1; i > 0 && status == 0; i--)
            status = give_match(kernel, key, &heap[i]);
    } else {
        status = give_from_heap(kernel, key, heap, size);
    }
    matches_empty(&kernel->matches);
    return status;
}

/* --- the heap of waiting matches; mirror: engines/flink/nfa/partial_matches.py */

static int by_start_event(const Partial *left, const Partial *right) {
    return compared(left->start_timestamp, left->start_id, right->start_timestamp, right->start_id);
}

bool starts_before(const Partial *left, const Partial *right) {
    return by_start_event(left, right) < 0;
}

static int heap_add(Partials *heap, Partial item) {
    if (partial_push(heap, item) < 0) return -1;
    Py_ssize_t index = heap->size - 1;
    while (index > 0) {
        Py_ssize_t parent = (index - 1) >> 1;
        if (by_start_event(&item, &heap->items[parent]) >= 0) break;
        heap->items[index] = heap->items[parent];
        index = parent;
    }
    heap->items[index] = item;
    return 0;
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
    bool *seen = pruning->kernel->work.stage_stamps;
    for (Py_ssize_t i = 0; i < path->size; i++) {
        const PathStep *step = &path->steps[firsts ? i : path->size - 1 - i];
        if (!seen[step->stage]) consider(pruning, step->entry, firsts);
        seen[step->stage] = true;
    }
    for (Py_ssize_t i = 0; i < path->size; i++) seen[path->steps[i].stage] = false;
}

static const Entry *element_of(const Pattern *pattern, const Path *path) {
    const Entry *element = NULL;
    for (Py_ssize_t i = 0; i < path->size; i++)
        if (path->steps[i].stage == pattern->skip_stage &&
            (pattern->skip_kind == SKIP_TO_LAST || element == NULL))
            element = path->steps[i].entry;
    return element;
}

/* Consider a way of a match; return whether to consider more. */
static int consider_path(void *context, const Path *path) {
    Pruning *pruning = context;
    const Pattern *pattern = &pruning->kernel->pattern;
    if (pattern->skip_kind == SKIP_TO_NEXT || pattern->skip_kind == SKIP_PAST_LAST) {
        consider_stages(pruning, path, pattern->skip_kind == SKIP_TO_NEXT);
        return 1;
    }
    const Entry *element = element_of(pattern, path);
    if (element != NULL) consider(pruning, element, false);
    if (pattern->skip_throws) {
        Pruning first = {.kernel = pruning->kernel};
        consider_stages(&first, path, true);
        pruning->missed = element == NULL ||
                          compared(pruning->timestamp, pruning->id, first.timestamp, first.id) == 0;
    }
    return !pruning->missed;
}

static bool superfluous(const Pruning *pruning, const Partial *partial) {
    if (!partial->has_start || partial->node == NULL) return false;
    int order =
        compared(partial->start_timestamp, partial->start_id, pruning->timestamp, pruning->id);
    int32_t kind = pruning->kernel->pattern.skip_kind;
    return kind == SKIP_TO_NEXT || kind == SKIP_PAST_LAST ? order <= 0 : order < 0;
}

/* Drop superfluous items from a list; return how many, -1 if memory runs out. */
static Py_ssize_t drop_superfluous(const Pruning *pruning, Key *key, Partials *partials) {
    Py_ssize_t kept = 0, before = partials->size;
    int status = 0;
    for (Py_ssize_t i = 0; i < before; i++) {
        Partial partial = partials->items[i];
        if (!superfluous(pruning, &partial))
            partials->items[kept++] = partial;
        else if (partial_release(key, &partial) < 0)
            status = -1;
    }
    partials->size = kept;
    return status < 0 ? -1 : before - kept;
}

static int add_way(void *context, const Path *path) {
    PyObject *ways = context, *steps = PyList_New(0);
    for (Py_ssize_t i = 0; steps != NULL && i < path->size; i++) {
        const PathStep *step = &path->steps[i];
        PyObject *item = Py_BuildValue(
            "(iLL)", step->stage, (long long)step->entry->timestamp, (long long)step->entry->id);
        if (item == NULL || PyList_Append(steps, item) < 0) Py_CLEAR(steps);
        Py_XDECREF(item);
    }
    int status = steps != NULL && PyList_Append(ways, steps) == 0 ? 1 : -1;
    Py_XDECREF(steps);
    return status;
}

/* Let Python raise the error of a strategy that found nothing to skip to. */
static int raise_miss(Kernel *kernel, const Partial *match) {
    lock_take();
    PyObject *ways = PyList_New(0);
    if (ways != NULL && paths_of_run(match->node, match->version, add_way, ways) >= 0)
        Py_XDECREF(PyObject_CallMethod(kernel->helper, "skip_missed", "O", ways));
    Py_XDECREF(ways);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a skip strategy missed nothing");
    return -1;
}

/*
 * Drop the partial matches and waiting matches that an emitted match makes superfluous. What is not
 * after `done` was dropped before, by other matches of the same emission.
 */
static int prune(Kernel *kernel, Key *key, const Partial *match, Pruning *done) {
    Pruning pruning = {.kernel = kernel};
    if (paths_of_run(match->node, match->version, consider_path, &pruning) < 0) return -1;
    if (pruning.missed) return raise_miss(kernel, match);
    if (!pruning.found) return 0;
    if (done->found && compared(pruning.timestamp, pruning.id, done->timestamp, done->id) <= 0)
        return 0;
    *done = pruning;
    Py_ssize_t ended = drop_superfluous(&pruning, key, &key->partials);
    if (ended < 0) return -1;
    key->present_known = false;
    key_first_deadline(kernel, key);
    Py_ssize_t dropped = drop_superfluous(&pruning, key, &key->completed);
    if (dropped > 0) ended += dropped;
    kernel->ended.skipped += ended;
    for (Py_ssize_t i = (key->completed.size >> 1) - 1; i >= 0 && dropped > 0; i--)
        sift_down(&key->completed, i);
    return dropped < 0 ? -1 : 0;
}

static int emit_match(
    Kernel *kernel, Key *key, const Partial *match, Pruning *done, int64_t timestamp) {
    if (prune(kernel, key, match, done) < 0 ||
        context_path(kernel, match->node, match->version) < 0 ||
        found_path(&kernel->found, &kernel->work.path) < 0)
        return -1;
    return found_end(&kernel->found, MATCH, timestamp);
}

static int add_completed(Key *key, Partials *completed) {
    for (Py_ssize_t i = 0; i < completed->size; i++)
        if (heap_add(&key->completed, completed->items[i]) < 0) {
            partials_forget(completed, i);
            return -1;
        }
    completed->size = 0;
    return 0;
}

int emit(Kernel *kernel, Key *key, Partials *completed, int64_t timestamp) {
    Pruning done = {.kernel = kernel};
    int status = add_completed(key, completed);
    while (status == 0 && key->completed.size > 0) {
        const Partial *earliest = &key->partials.items[0];
        if (earliest->has_start && starts_before(earliest, &key->completed.items[0])) break;
        Partial match = heap_poll(&key->completed);
        status = emit_match(kernel, key, &match, &done, timestamp);
        if (partial_release(key, &match) < 0 || (status == 0 && check_signals_of(key) < 0))
            status = -1;
    }
    return status;
}
