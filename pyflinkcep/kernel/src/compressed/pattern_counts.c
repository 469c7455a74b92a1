/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel.count: the matches of a pattern by event, not listed; engines/compressed/patterns.py uses it. */
#include "base/signals.h"
#include "compressed/pattern_runs.h"

typedef struct {
    Events events;
    Array bounds; /* where the events of each key begin, and where those of the last end */
    int64_t held; /* how many events of each key were processed before */
    bool has_before;
    int64_t before, watermark; /* the time reached before the new ones; the time at the end */
} Shown;

/* Advance time, and discard what ends by it, since that was counted before. */
static int pass_again(PatternRuns *runs, const Shown *shown) {
    int status = shown->has_before ? pattern_runs_advance(runs, shown->before) : 0;
    ended_clear(&runs->now);
    return status;
}

/* Process the events from `start` to `end`, all of one key. */
static int count_key(
    PatternRuns *runs, const Shown *shown, int64_t start, int64_t end, Counted *counted) {
    const int64_t *times = shown->events.times.items, *bits = shown->events.bits.items;
    Py_ssize_t words = shown->events.words;
    /* What the watermark ends at the time of the last event ends with that event. */
    bool joins = end > start && times[end - 1] == shown->watermark;
    ended_clear(&runs->now);
    for (int64_t at = start; at < end; at++) {
        if (check_signals() < 0) return -1;
        if (at == start + shown->held && pass_again(runs, shown) < 0) return -1;
        evaluation_begin(
            &runs->kernel->asked, at, times[at], words == 0 ? NULL : bits + at * words, words);
        /* Once per time, as in operator.c. */
        bool is_later = at == start || times[at] != times[at - 1];
        if (is_later && pattern_runs_advance(runs, times[at]) < 0) return -1;
        if (pattern_runs_show(runs) < 0) return -1;
        if (joins && at + 1 == end) continue;
        if (at >= start + shown->held && counted_add(counted, at, &runs->now) < 0) return -1;
        ended_clear(&runs->now);
    }
    if (end == start + shown->held && pass_again(runs, shown) < 0) return -1;
    if (pattern_runs_advance(runs, shown->watermark) < 0) return -1;
    return counted_add(counted, joins ? end - 1 : -end, &runs->now);
}

static int count_keys(PatternRuns *runs, const Shown *shown, Counted *counted) {
    const int64_t *bounds = shown->bounds.items;
    for (Py_ssize_t key = 0; key < shown->bounds.size - 1; key++) {
        int64_t start = bounds[key], end = bounds[key + 1];
        if (start < 0 || end < start || end > shown->events.times.size) {
            PyErr_SetString(PyExc_ValueError, "expected events within the arrays");
            return -1;
        }
        runs->kernel->failed = key;
        if (key > 0) pattern_runs_clear(runs);
        if (count_key(runs, shown, start, end, counted) < 0) return -1;
    }
    return 0;
}

static PyObject *time_or_none(bool is_known, int64_t time) {
    return is_known ? PyLong_FromLongLong(time) : Py_NewRef(Py_None);
}

static PyObject *count(Kernel *kernel, const Shown *shown, PyObject *live, Weighing weighing) {
    PatternRuns runs;
    Counted counted = {0};
    PyObject *result = NULL;
    if (pattern_runs_open(&runs, kernel, live) == 0 &&
        counted_open(&counted, true, weighing.weights != NULL) == 0) {
        runs.weighing = weighing;
        if (count_keys(&runs, shown, &counted) == 0) {
            int64_t begun = 0, deadline = 0;
            bool has_begun = pattern_runs_begun(&runs, &begun);
            bool ends = pattern_runs_deadline(&runs, &deadline);
            result = Py_BuildValue(
                "NNN", counted_result(&counted), time_or_none(has_begun, begun),
                time_or_none(ends, deadline));
        }
    }
    evaluation_end(&kernel->asked);
    pattern_runs_close(&runs);
    counted_close(&counted);
    return result;
}

PyObject *kernel_count(Kernel *kernel, PyObject *args) {
    PyObject *live, *times, *bits, *bounds, *before, *weighed, *result = NULL;
    long long held, watermark;
    int stage, seeks_greatest;
    Shown shown = {0};
    Array weights = {0};
    if (!PyArg_ParseTuple(
            args, "O!OOOLOLOip", &PyTuple_Type, &live, &times, &bits, &bounds, &held, &before,
            &watermark, &weighed, &stage, &seeks_greatest))
        return NULL;
    shown.held = held;
    shown.watermark = watermark;
    shown.has_before = before != Py_None;
    if (shown.has_before) shown.before = PyLong_AsLongLong(before);
    bool good = !PyErr_Occurred() &&
                events_open(&shown.events, times, Py_None, bits, kernel->asked.words) == 0 &&
                array_of(bounds, sizeof(int64_t), &shown.bounds) == 0 &&
                array_of(weighed, sizeof(uint64_t), &weights) == 0;
    if (good && weights.items != NULL && weights.size != shown.events.times.size) {
        PyErr_SetString(PyExc_ValueError, "expected as many weights as events");
        good = false;
    }
    if (good)
        result = count(kernel, &shown, live, (Weighing){weights.items, stage, seeks_greatest});
    if (result == NULL) name_memory_error(kernel, 0);
    events_close(&shown.events);
    array_close(&shown.bounds);
    array_close(&weights);
    return result;
}
