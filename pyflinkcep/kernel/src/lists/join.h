/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered lists of events, and the steps that join them. */
#ifndef PYFLINKCEP_JOIN_H
#define PYFLINKCEP_JOIN_H

#include "base/arrays.h"
#include "lists/batch.h"

/* The candidate events of an element, by key and order. */
typedef struct {
    Array positions, times, keys; /* no keys if all events have one key */
    const int64_t *order;         /* the positions, or the times if equal times have no order */
    Py_ssize_t size;
} List;

/* How an element joins the bound ones: its neighbour among them, and their other end. */
typedef struct {
    int32_t element, neighbour, far;
    bool is_forward; /* whether the element comes after its neighbour */
    int64_t *links; /* by item of the neighbour where the element's candidates begin, or end */
    Array barriers; /* by item of the neighbour the greatest order of its candidates; or none */
    Bound *bounds; /* the conditions that are simple comparisons, and the others */
    Program *clauses;
    Py_ssize_t bound_count, clause_count;
} Step;

/* The state of the join at an element. */
typedef struct {
    Py_ssize_t at, end; /* candidates not yet tested */
    Py_ssize_t edge; /* where the window of the event bound first ends */
    Py_ssize_t base;
    uint64_t passing; /* of the candidates from `base` on, those not yet bound */
    int64_t met; /* candidates tested so far */
} Level;

typedef struct {
    PyObject_HEAD
    List *lists; /* by element */
    Column *columns;
    Array *column_data; /* two for each column: its values, and which of them are not null */
    Step *steps;
    Level *levels;
    Py_ssize_t *bound; /* by element its index in its list */
    int64_t *row; /* by element its position */
    Operand *stack;
    Py_ssize_t list_count, column_count, step_count, depth;
    int64_t window; /* negative for none */
} Join;

/* join.c */
/*
 * For each item of a list find where in another list the later ones begin, or the earlier ones
 * end. Both are sorted by key and order.
 */
void list_link(const List *from, const List *to, bool is_forward, int64_t *links);
/* Begin at the first event. */
void join_begin(Join *join);
/* Write up to `most` more matches, a position for each element; return how many, or -1. */
Py_ssize_t join_rows(Join *join, int64_t *rows, Py_ssize_t most);

/* join_object.c */
extern PyType_Spec join_spec;
/* links(from, to, is_forward, by_time) -> for each item of a list where another's begin or end */
PyObject *module_links(PyObject *module, PyObject *args);

/* split.c */
/*
 * split(codes, lists, count, low, high): the positions of events by the list that their code
 * belongs to; only of those from low to high, unless these are None.
 */
PyObject *module_split(PyObject *module, PyObject *args);

#endif
