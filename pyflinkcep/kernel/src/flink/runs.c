/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many keys in one call: stretches of a sorted chunk, or the keys of a page of state.
 * Mirror: matching/matcher.py.
 */
#include "flink/kernel.h"

void events_close(Events *events) {
    array_close(&events->times);
    array_close(&events->handles);
    array_close(&events->bits);
}

int events_open(
    Events *events, PyObject *times, PyObject *handles, PyObject *bits, Py_ssize_t most_words) {
    if (array_of(times, 8, &events->times) < 0 || array_of(handles, 8, &events->handles) < 0 ||
        array_of(bits, 8, &events->bits) < 0)
        return -1;
    Py_ssize_t size = events->times.size;
    if (events->bits.items != NULL && size > 0) events->words = events->bits.size / size;
    if ((events->handles.items != NULL && events->handles.size != size) ||
        (events->bits.items != NULL && events->bits.size != size * events->words) ||
        events->words > most_words) {
        PyErr_SetString(PyExc_ValueError, "times, handles and bits differ in length");
        return -1;
    }
    return 0;
}

static Py_ssize_t process(
    Kernel *kernel, Key *key, const Events *events, int64_t start, int64_t end,
    Py_ssize_t most_events) {
    if (start < 0 || end < start || end > events->times.size) {
        lock_take();
        PyErr_SetString(PyExc_ValueError, "expected events within the arrays");
        return -1;
    }
    return key_process(kernel, key, events, start, end, most_events);
}

bool kernel_needs_python(const Kernel *kernel) {
    const Pattern *pattern = &kernel->pattern;
    for (Py_ssize_t i = 0; i < pattern->atom_count; i++) {
        const Atom *atom = &pattern->atoms[i];
        const Answers *answers =
            atom->word == 0 ? &kernel->asked.first : &kernel->asked.more[atom->word - 1];
        if (atom->kind == ATOM_EXPRESSION ? program_needs_python(&atom->program)
                                          : (answers->always_known & atom->bit) == 0)
            return true;
    }
    return values_need_python(&kernel->values);
}

enum { MOST_AT_ONCE = 1 << 18 };

/* Stretches of events, each of a different key, and where a run is in them. */
typedef struct {
    Events events;
    Array bounds, needed, windows; /* the lengths of windows, if not all are that of the pattern */
    Py_ssize_t stretch, row, most;
    Key *open, own; /* `own` once the key that was open before has ended */
} Run;

/* Whether a stretch has all events of a key, which are matched without an open key. */
static bool is_done_at_once(const Kernel *kernel, const Run *run, int64_t first, int64_t end) {
    bool is_wanted = ((const bool *)run->needed.items)[run->stretch];
    return (kernel->unbranched.states > 0 || kernel->own_ways.kinds > 0) && run->open == NULL &&
           is_wanted && run->stretch + 2 < run->bounds.size && end - first <= MOST_AT_ONCE;
}

/* Match events of a key, which has those from `first` to `end`. */
static int match_at_once(Kernel *kernel, Run *run, int64_t first, int64_t end) {
    if (first < 0 || run->row < first || end < run->row || end > run->events.times.size) {
        lock_take();
        PyErr_SetString(PyExc_ValueError, "expected events within the arrays");
        return -1;
    }
    if (kernel->unbranched.states == 0) {
        run->row = own_ways_match(kernel, &run->events, first, run->row, end, run->most);
        return run->row < 0 ? -1 : 0;
    }
    int status = unbranched_match(kernel, &run->events, run->row, end);
    run->row = end;
    return status;
}

/* Match stretches until the results are enough; leave the key of the last stretch open. */
static int run_stretches(Kernel *kernel, Run *run) {
    const int64_t *bound = run->bounds.items;
    const bool *wanted = run->needed.items;
    const int64_t *window = run->windows.items;
    Py_ssize_t stretches = run->bounds.size - 1;
    while (run->stretch < stretches) {
        kernel->failed = run->stretch;
        if (window != NULL) kernel->pattern.window_time = window[run->stretch];
        int64_t first = bound[run->stretch], end = bound[run->stretch + 1];
        if (is_done_at_once(kernel, run, first, end)) {
            if (match_at_once(kernel, run, first, end) < 0) return -1;
            if (run->row < end) return 0;
            run->stretch++;
            if (kernel->found.events >= run->most) return 0;
            continue;
        }
        if (run->open == NULL && wanted[run->stretch]) {
            run->open = &run->own;
            if (key_begin(run->open, kernel->pattern.start) < 0) return -1;
        }
        if (run->open != NULL) {
            run->row = process(kernel, run->open, &run->events, run->row, end, run->most);
            if (run->row < 0) return -1;
            if (run->row < end) return 0;
        }
        if (++run->stretch == stretches) return 0;
        run->row = end;
        if (run->open == NULL) continue;
        if (key_advance_watermark(kernel, run->open, INT64_MAX) < 0) return -1;
        key_clear(run->open);
        run->open = NULL;
        context_forget(kernel);
        if (kernel->found.events >= run->most) return 0;
    }
    return 0;
}

/* Return the key that a run left open as Python holds it; None if there is none. */
static PyObject *open_key(Kernel *kernel, Run *run, KeyObject *before) {
    if (run->open == NULL) return Py_NewRef(Py_None);
    if (run->open != &run->own) return Py_NewRef((PyObject *)before);
    KeyObject *object = key_object_new(kernel);
    if (object == NULL) return NULL;
    object->key = run->own;
    run->own = (Key){0};
    return (PyObject *)object;
}

PyObject *kernel_run(Kernel *kernel, PyObject *args) {
    PyObject *key_or_none, *times, *handles, *bits, *bounds, *needed, *result = NULL;
    PyObject *windows = Py_None;
    Run run = {0};
    long long base;
    int64_t window = kernel->pattern.window_time;
    if (!PyArg_ParseTuple(
            args, "OOOLOOOnnn|O", &key_or_none, &times, &handles, &base, &bits, &bounds, &needed,
            &run.stretch, &run.row, &run.most, &windows))
        return NULL;
    if (key_or_none != Py_None && !PyObject_TypeCheck(key_or_none, kernel->key_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Key or None");
        return NULL;
    }
    KeyObject *before = key_or_none == Py_None ? NULL : (KeyObject *)key_or_none;
    if (before != NULL && key_check_usable(&before->key) < 0) return NULL;
    run.open = before == NULL ? NULL : &before->key;
    run.events.base = base;
    if (events_open(&run.events, times, handles, bits, kernel->asked.words) < 0 ||
        array_of(bounds, 8, &run.bounds) < 0 || array_of(needed, 1, &run.needed) < 0 ||
        array_of(windows, 8, &run.windows) < 0)
        goto end;
    if (run.stretch < 0 || run.bounds.size < 1 || run.needed.size != run.bounds.size - 1 ||
        (run.windows.items != NULL && run.windows.size != run.needed.size)) {
        PyErr_SetString(PyExc_ValueError, "bounds, needed and stretch do not fit together");
        goto end;
    }
    if (!kernel_needs_python(kernel)) lock_leave();
    int status = run_stretches(kernel, &run);
    lock_take();
    PyObject *open = status < 0 ? NULL : open_key(kernel, &run, before);
    if (open != NULL) result = Py_BuildValue("nnN", run.stretch, run.row, open);
end:
    kernel->pattern.window_time = window;
    if (result == NULL) name_memory_error(kernel, 0);
    key_clear(&run.own);
    forget_small();
    events_close(&run.events);
    array_close(&run.bounds);
    array_close(&run.needed);
    array_close(&run.windows);
    return result;
}

/* --- pages */

typedef struct {
    Array numbers, number_ends, event_ends;
    int64_t first_held;
} Stored;

/* Return whether the ends around an item exist, and ascend from 0 to at most `most`. */
static bool bounds_good(const Array *ends, int64_t position, int64_t most) {
    if (position >= ends->size - 1) return false;
    const int64_t *items = ends->items;
    return items[position] >= 0 && items[position] <= items[position + 1] &&
           items[position + 1] <= most;
}

/* Read the state of a page's key; `position` is its place in the page. */
static int read_stored(Kernel *kernel, Key *key, const Stored *stored, int64_t position) {
    const int64_t *numbers = stored->numbers.items, *ends = stored->number_ends.items;
    const int64_t *events = stored->event_ends.items;
    int64_t most_events = INT64_MAX - (stored->first_held > 0 ? stored->first_held : 0);
    if (!bounds_good(&stored->number_ends, position, stored->numbers.size) ||
        !bounds_good(&stored->event_ends, position, most_events)) {
        Py_XDECREF(PyObject_CallMethod(kernel->helper, "damaged", NULL));
        return -1;
    }
    return key_read(
        kernel, key, numbers + ends[position], ends[position + 1] - ends[position],
        stored->first_held + events[position], events[position + 1] - events[position]);
}

typedef struct {
    Numbers items, deadlines, lengths, counts, numbers, handles;
} Written;

static int write_key(const Key *key, Written *written, Py_ssize_t item) {
    Py_ssize_t numbers = written->numbers.size, handles = written->handles.size;
    if (key_write(key, &written->numbers, &written->handles) < 0) return -1;
    numbers_put(&written->items, item);
    numbers_put(&written->deadlines, key->timer_count ? key->timers[0] : INT64_MAX);
    numbers_put(&written->lengths, written->numbers.size - numbers);
    numbers_put(&written->counts, written->handles.size - handles);
    bool failed = written->items.failed || written->deadlines.failed || written->lengths.failed ||
                  written->counts.failed;
    return failed ? -1 : 0;
}

static PyObject *written_result(Written *written) {
    Numbers *all[] = {&written->items, &written->deadlines, &written->lengths, &written->counts,
        &written->numbers, &written->handles};
    PyObject *result = PyTuple_New(6);
    for (Py_ssize_t i = 0; i < 6; i++) {
        PyObject *bytes =
            result == NULL ? NULL : bytes_of(all[i]->items, all[i]->size, sizeof(int64_t));
        if (bytes == NULL || PyTuple_SetItem(result, i, bytes) < 0) Py_CLEAR(result);
    }
    return result;
}

static void written_free(Written *written) {
    Numbers *all[] = {&written->items, &written->deadlines, &written->lengths, &written->counts,
        &written->numbers, &written->handles};
    for (Py_ssize_t i = 0; i < 6; i++) release_memory(all[i]->items);
}

typedef struct {
    int64_t position, start, end;
} Item;

static int match_item(
    Kernel *kernel, Key *key, const Stored *stored, const Events *events, Item item,
    int64_t watermark) {
    if (item.position >= 0) {
        if (read_stored(kernel, key, stored, item.position) < 0) return -1;
    } else if (key_begin(key, kernel->pattern.start) < 0) {
        return -1;
    }
    if (item.start < item.end &&
        process(kernel, key, events, item.start, item.end, PY_SSIZE_T_MAX) < 0)
        return -1;
    int status = key_advance_watermark(kernel, key, watermark);
    context_forget(kernel);
    return status;
}

PyObject *kernel_run_page(Kernel *kernel, PyObject *args) {
    PyObject *times, *handles, *bits, *objects[6], *result = NULL;
    long long base, first_held, watermark;
    Events events = {0};
    Stored stored = {0};
    Array positions = {0}, starts = {0}, ends = {0};
    Written written = {0};
    if (!PyArg_ParseTuple(
            args, "OOLOOOOOOOLL", &times, &handles, &base, &bits, &objects[0], &objects[1],
            &objects[2], &objects[3], &objects[4], &objects[5], &first_held, &watermark))
        return NULL;
    Array *arrays[] = {
        &positions, &starts, &ends, &stored.numbers, &stored.number_ends, &stored.event_ends};
    events.base = base;
    stored.first_held = first_held;
    bool good = events_open(&events, times, handles, bits, kernel->asked.words) == 0;
    for (Py_ssize_t i = 0; i < 6 && good; i++) good = array_of(objects[i], 8, arrays[i]) == 0;
    if (good && (starts.size != positions.size || ends.size != positions.size)) {
        PyErr_SetString(PyExc_ValueError, "positions, starts and ends differ in length");
        good = false;
    }
    const int64_t *position = positions.items, *start = starts.items, *stop = ends.items;
    for (Py_ssize_t i = 0; i < positions.size && good; i++) {
        Key key = {0};
        Item item = {position[i], start[i], stop[i]};
        kernel->failed = i;
        good = match_item(kernel, &key, &stored, &events, item, watermark) == 0;
        if (good && !key_is_idle(kernel, &key)) good = write_key(&key, &written, i) == 0;
        key_clear(&key);
    }
    if (good) result = written_result(&written);
    if (result == NULL) name_memory_error(kernel, 0);
    written_free(&written);
    forget_small();
    events_close(&events);
    for (Py_ssize_t i = 0; i < 6; i++) array_close(arrays[i]);
    return result;
}
