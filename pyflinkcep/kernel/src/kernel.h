/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the compiled kernel share.
 *
 * The kernel is the plain path of nfa/, sharedbuffer/ and operator/ once more, with the same names
 * and the same steps: it runs the tables that nfa/steps.py works out, on the same versioned
 * buffer, and writes the same state. A difference in an answer or in state is a bug here.
 *
 * Two kinds of counts must not be mixed up: `locks` is the reference count of Flink's buffer, which
 * decides what a run may still walk; `memory` counts C pointers and decides what is freed.
 */
#ifndef PYFLINKCEP_KERNEL_H
#define PYFLINKCEP_KERNEL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#define NO_STATE -1
#define GONE -2

void *must_alloc(size_t size);
void *must_grow(void *block, size_t size);
void release_memory(void *block);

/* --- version.c: Dewey numbers */

typedef struct Version {
    struct Version *parent;
    uint64_t code; /* a hash of all digits */
    int64_t digit;
    int64_t memory;
    int32_t length;
} Version;

Version *version_following(Version *parent, int64_t digit);
Version *version_increase(Version *version, int64_t times);
Version *version_add_stage(Version *version);
Version *version_keep(Version *version);
void version_drop(Version *version);
bool version_same(const Version *left, const Version *right);
bool version_compatible(const Version *version, const Version *other);

/* --- values.c: what expressions over earlier stages need */

typedef struct {
    union {
        int64_t i;
        double f;
    } as;
    uint8_t kind; /* one of VALUE_* */
} Value;

enum { VALUE_NULL, VALUE_INT, VALUE_FLOAT, VALUE_OVERFLOWED };

typedef struct {
    int32_t opcode;
    Value operand;
} Instruction;

typedef struct {
    Py_ssize_t size;
    Instruction *code;
    Value *stack; /* room for a run of it */
} Program;

typedef struct {
    int32_t stage; /* negative for all stages */
    int32_t function;
    int32_t field; /* -1 to count events whatever they hold */
    int32_t count; /* of FIRST: the slot that counts the stage's events */
    bool is_float;
} Slot;

typedef struct {
    const void *data; /* int64_t or double */
    const uint8_t *valid; /* a byte for each row, NULL when no value is null */
    bool is_float;
} Field;

typedef enum { VALUES_OK, VALUES_OVERFLOW, VALUES_DIVIDED_BY_ZERO } ValuesError;

typedef struct {
    Py_ssize_t fields, slot_count;
    Slot *slots;
    Field *columns;
    int64_t base, rows; /* the handle of the columns' first row, and how many there are */
    bool ansi;
} Values;

void values_update(
    const Values *values, const Value *before, int32_t stage, int64_t handle, Value *after);
ValuesError values_holds(
    const Values *values, const Program *program, const Value *slots, int64_t handle, bool *holds);

/* arrays.c: arrays of numbers that Python hands over, and bytes that it gets */
typedef struct {
    Py_buffer buffer;
    const void *items; /* NULL for None */
    Py_ssize_t size;
} Array;

int array_of(PyObject *object, Py_ssize_t width, Array *array);
void array_close(Array *array);
PyObject *bytes_of(const void *items, Py_ssize_t size, size_t width);

/* --- buffer.c: the shared buffer */

struct Node;
struct Entry;

typedef struct {
    int64_t locks;
    struct Node *target; /* NULL at the beginning of a match */
    Version *version;
    Value *values; /* what the way up to here comes to, slot by slot; NULL without slots */
    uint64_t serial; /* tells edges apart */
} Edge;

typedef struct Node {
    int64_t locks;
    struct Entry *entry;
    struct Node *next_of_entry;
    struct Node *next_to_free;
    Edge *edges; /* `own`, or a block of its own when there are more */
    int32_t edge_count, edge_room;
    int32_t memory;
    int32_t stage;
    int32_t number; /* while state is written: its place, else GONE */
    bool alive;
    Edge own;
} Node;

typedef struct Entry {
    int64_t timestamp, id;
    int64_t handle;
    int64_t locks;
    int32_t memory;
    bool listed;
    struct Entry *before, *after; /* in order of registration */
    Node *first_node, *last_node;
} Entry;

typedef struct {
    Entry *first, *last;
    int64_t entries;
    int64_t timestamp, event_count;
    bool has_timestamp;
    bool unsorted; /* ids do not rise in order of registration: a clock stepped back */
} Buffer;

typedef struct {
    int32_t stage;
    Entry *entry;
} PathStep;

typedef struct {
    PathStep *steps; /* oldest first */
    Py_ssize_t size, room;
} Path;

extern uint64_t buffer_serials;

Node *node_keep(Node *node);
void node_drop(Node *node);
Entry *buffer_append(Buffer *buffer, int64_t timestamp, int64_t id, int64_t handle, int64_t locks);
Node *entry_append(Entry *entry, int32_t stage, int64_t locks, bool alive);
Edge *node_append(Node *node, int64_t locks, Node *target, Version *version);
Entry *buffer_register(Buffer *buffer, int64_t handle, int64_t timestamp);
Node *buffer_put(
    const Values *values, int32_t stage, Entry *entry, Node *previous, Version *version);
Node *buffer_extend(
    Buffer *buffer, const Values *values, int32_t stage, Entry *entry, Node *previous,
    Version *version, Version *following);
void buffer_relabel(Buffer *buffer, Node *node, Version *old, Version *now);
void buffer_lock_node(Node *node, const Version *version);
void buffer_release_node(Buffer *buffer, Node *node, Version *version);
void buffer_release_event(Buffer *buffer, Entry *entry);
void buffer_clear(Buffer *buffer);
Edge *node_edge(Node *node, const Version *version, Py_ssize_t *ways);
bool path_of_run(Path *path, Node *node, Version *version);
typedef bool (*PathVisitor)(void *context, const Path *path);
bool paths_of_run(Node *node, Version *version, PathVisitor visit, void *context);
void path_push(Path *path, int32_t stage, Entry *entry);

/* --- tables.c: the decisions of nfa/steps.py, fetched when they are first needed */

typedef struct {
    int32_t target, stage;
    int64_t increase;
    bool takes, stays, continues, completes, adds_stage;
} Move;

struct Decision;

typedef struct Decision {
    bool is_step;
    /* an Ask */
    int32_t atom;
    PyObject *ask;
    struct Decision *yes, *no;
    /* a Step */
    Py_ssize_t size;
    Move *moves;
    bool keeps, takes, keeps_event, completes;
    const Move *single;
} Decision;

enum { ATOM_OF_EVENT, ATOM_OF_MATCH, ATOM_EXPRESSION };

typedef struct {
    int32_t kind;
    uint64_t bit;
    PyObject *function;
    Program program;
} Atom;

typedef struct {
    int64_t gap_ms;
    int32_t stage;
    bool is_pending;
    Decision *first;
} State;

/* --- the run state of a key */

typedef struct {
    Version *version;
    Node *node;
    int64_t start_timestamp, start_id;
    int32_t state;
    bool has_start;
} Partial;

typedef struct {
    Partial *items;
    Py_ssize_t size, room;
} Partials;

typedef struct {
    Buffer buffer;
    Partials partials, completed; /* `completed` is a heap by start event */
    int64_t *timers;
    Py_ssize_t timer_count, timer_room;
    int64_t deadline;
    int32_t *present; /* the states that partial matches are in, rising */
    int32_t present_count, present_room;
    bool never, is_new_start, present_known;
} Key;

typedef struct {
    uint8_t *kinds; /* 1 a match, 0 a timeout */
    int64_t *times;
    int64_t *ends; /* where each one's events end */
    Py_ssize_t size, room;
    int32_t *stages;
    int64_t *handles;
    Py_ssize_t events, event_room;
    int64_t dropped;
} Found;

typedef struct {
    int64_t start_timestamp, start_id;
    Py_ssize_t first, end; /* of its events */
} FoundMatch;

/* Matches of one event, or of one advance of time, that nothing holds back. */
typedef struct {
    FoundMatch *items;
    Py_ssize_t size, room;
    Found found; /* of which only the events are used */
} Matches;

void found_event(Found *found, int32_t stage, int64_t handle);
void found_end(Found *found, bool is_match, int64_t timestamp);

enum { SKIP_NONE, SKIP_TO_NEXT, SKIP_PAST_LAST, SKIP_TO_FIRST, SKIP_TO_LAST };

typedef struct {
    PyObject_HEAD
    PyObject *helper; /* kernel/helper.py's, for everything that needs Python */
    PyObject *stage_names;
    PyObject *context; /* what users' conditions get */
    PyObject *view; /* from a handle to the event as users' conditions see it */
    State *states;
    Atom *atoms;
    Py_ssize_t state_count, atom_count, stage_count;
    int32_t start, final;
    int64_t window_time;
    bool has_gaps, handle_timeout, processing_time, skip_throws, drop_oldest, sets_timers;
    int32_t skip_kind, skip_stage;
    uint64_t always_known;
    int64_t limit;
    Values values;
    Array *field_data, *field_valid; /* what `values.columns` points into */
    Found found, late;
    Matches matches;
    /* the event at work, and the partial match that is asked */
    uint64_t known, holds;
    int64_t handle, timestamp;
    PyObject *row;
    Py_ssize_t failed; /* the stretch or item that an error came from */
    Node *asked_node;
    Version *asked_version;
    PyObject *paths; /* by edge, what conditions saw of the way to it: stage to list of events */
    Py_ssize_t paths_size; /* the events in them */
    /* room that events share */
    Decision **by_state;
    bool *stamps, *stage_stamps;
    Decision **steps;
    Py_ssize_t step_room;
    Partials following, done;
    Path path;
} Kernel;

/* tables.c */
int kernel_read_states(Kernel *kernel, PyObject *states);
int kernel_read_atoms(Kernel *kernel, PyObject *atoms);
int kernel_read_slots(Kernel *kernel, PyObject *slots);
int kernel_visit_tables(Kernel *kernel, visitproc visit, void *arg);
void kernel_clear_functions(Kernel *kernel);
void kernel_free_tables(Kernel *kernel);
Decision *decision_first(Kernel *kernel, int32_t state);
Decision *decision_following(Kernel *kernel, Decision *decision, bool holds);

/* evaluation.c */
void evaluation_begin(Kernel *kernel, int64_t handle, int64_t timestamp, uint64_t bits);
void evaluation_end(Kernel *kernel);
Decision *evaluation_of_event(Kernel *kernel, int32_t state);
Decision *evaluation_of_match(Kernel *kernel, Partial *partial, Decision *decision);

/* context.c */
extern PyTypeObject ContextType;
PyObject *context_new(Kernel *kernel);
void context_forget(Kernel *kernel);
int context_ambiguous(Kernel *kernel, const Node *node, Py_ssize_t ways);

/* nfa.c */
void key_begin(Kernel *kernel, Key *key);
void key_clear(Key *key);
void partial_push(Partials *partials, Partial partial);
void key_first_deadline(Kernel *kernel, Key *key);
int key_advance(Kernel *kernel, Key *key, int64_t timestamp);
int key_apply(Kernel *kernel, Key *key);
void key_drop_oldest(Kernel *kernel, Key *key, Py_ssize_t count);

/* emission.c */
void matches_add(
    Kernel *kernel, const Partial *partial, Node *node, Version *version, int32_t last_stage);
void emit_at_once(Kernel *kernel, int64_t timestamp);
int emit(Kernel *kernel, Key *key, Partials *completed, int64_t timestamp);

/* operator.c */
Py_ssize_t key_process(
    Kernel *kernel, Key *key, const int64_t *times, const int64_t *handles, int64_t base,
    const int64_t *bits, Py_ssize_t start, Py_ssize_t end, Py_ssize_t most_results);
int key_advance_watermark(Kernel *kernel, Key *key, int64_t timestamp);
bool key_is_idle(const Kernel *kernel, const Key *key);

/* snapshot.c */
typedef struct {
    int64_t *items;
    Py_ssize_t size, room;
} Numbers;

void numbers_put(Numbers *numbers, int64_t number);
void key_write(const Key *key, Numbers *numbers, Numbers *handles);
int key_read(
    Kernel *kernel, Key *key, const int64_t *numbers, Py_ssize_t size, int64_t first_handle,
    int64_t handle_count);

/* runs.c */
PyObject *kernel_run(Kernel *kernel, PyObject *args);
PyObject *kernel_run_page(Kernel *kernel, PyObject *args);

/* module.c */
typedef struct {
    PyObject_HEAD
    Key key;
} KeyObject;

extern PyTypeObject KeyType;
KeyObject *key_object_new(void);

#endif
