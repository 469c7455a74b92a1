/* SPDX-License-Identifier: Apache-2.0 */
/* The search for matches with the standard's meaning, and what it knows of the match. */
#ifndef PYFLINKCEP_SEARCH_H
#define PYFLINKCEP_SEARCH_H

#include "base/failed.h"
#include "base/fields.h"

/* --- search_slots.c */

/* What is known of the current match, and of the untried alternatives. */
typedef struct {
    Values values;
    Fields fields;
    int32_t *fields_seen; /* by slot and variable: the field that the slot takes, or SEES_NOTHING */
    bool *changes; /* by variable: whether taking a row changes a slot */
    Program *programs; /* by variable; without instructions every row is accepted */
    Tally *now, *next; /* `next` once a row is taken, until its condition holds */
    Py_ssize_t variables, program_count;
    bool has_number; /* whether the first slot is the number of the match */
    Value *ways; /* the slots of all untried alternatives, concatenated */
    Py_ssize_t way_count, way_room;
} Slots;

enum { SEES_NOTHING = -2 };

/* Read slots and programs; fields are read separately, since they belong to rows. */
int slots_read(Slots *slots, PyObject *specs, PyObject *programs, Py_ssize_t variables);
/* Release all memory. */
void slots_free(Slots *slots);
/* Begin with a match without rows. */
void slots_begin(Slots *slots, int64_t number);
/* Compute the slots if a row is taken; slots_settle() must follow. */
void slots_take(Slots *slots, int32_t variable, int64_t row);
/* Continue with the row taken, or without it. */
void slots_settle(Slots *slots, int32_t variable, bool holds);
/* Push what is known now for another alternative. */
int slots_push(Slots *slots);
/* Return what is known at the last alternative, NULL if there are no slots. */
Value *slots_last(const Slots *slots);
/* Restore what was pushed last, and leave it on the stack. */
void slots_go_back(Slots *slots);
/* Clear the stack. */
void slots_forget(Slots *slots);
/* Evaluate whether a row can be mapped to a variable, once it is taken. */
ProgramAnswer slots_ask(Slots *slots, int32_t variable, int64_t row);

/* --- search.c */

typedef struct {
    int32_t op, first, second, number; /* `number` of a SPLIT among the SPLITs */
} Command;

typedef struct {
    int64_t start, row, mask;
    int32_t pc;
    bool is_open;
} Attempt;

typedef struct {
    PyObject_HEAD
    Command *code;
    Py_ssize_t code_size, splits;
    int loops;
    int64_t begin, end; /* the rows of the partition */
    bool has_first; /* whether the first of them is the partition's first */
    int64_t limit; /* the first row that is too late */
    int64_t within, watermark;
    bool is_growing; /* whether more rows may arrive, all after the watermark */
    Slots slots;
    Failed failed;
    bool has_flags; /* whether failed places are marked for good, since there are no slots */
    uint8_t *flags;
    Py_ssize_t flag_room;
    Array times; /* without items if there is no window */
    Py_buffer labels, hidden, *answers; /* an answer for each row, of some variables */
    Py_ssize_t rows, answer_count;
    int64_t *stack;
    Py_ssize_t depth, room;
    Attempt way;
    int asked; /* the variable whose condition was evaluated last */
    Py_ssize_t partition; /* of those that are listed, the one that is searched */
    bool is_turned; /* whether its rows are selected */
} RowSearch;

/* Select the rows of a partition. */
int search_turn(RowSearch *search, int64_t begin, int64_t end, bool has_first);
/*
 * Find the first match that begins at a row or later: return where it ends, or one of SEARCH_*; its
 * start is in search->way.
 */
int64_t search_next(RowSearch *search, int64_t start, int64_t number);

enum { SEARCH_NONE = -2, SEARCH_OPEN = -1, SEARCH_FAILED = -3 };

enum { TAKE, SPLIT, JUMP, START, END, MARK, CHECK, ACCEPT }; /* of engines/rows/program.py */

/* search_object.c */
extern PyType_Spec search_spec;

#endif
