/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a SEQ query with their ways, so that matches can be listed. */
#ifndef PYFLINKCEP_LISTER_H
#define PYFLINKCEP_LISTER_H

#include "compressed/ways.h"
#include "sequences/sequence.h"

/* Runs that the current event completes. */
typedef struct {
    int64_t way; /* NO_WAY if a match is one event */
    bool adds_event; /* whether the current event follows the way's last one */
    int64_t until; /* the first position that may not be their start */
} Completed;

typedef struct {
    PyObject_HEAD
    Sequence sequence;
    Py_ssize_t most;    /* runs of a partition; 0 for no bound */
    PyObject *too_many; /* raises the error for more */
    /* of the open partitions, concatenated */
    Array bounds; /* where each begins, and the last one ends */
    Array ends; /* which events may end a match, no items for all */
    bool wants_begun; /* whether to find where runs live at its end began */
    int64_t *begun; /* the handles of these events, of each partition the first */
    Py_ssize_t begun_size, begun_room;
    /* of the current partition */
    Py_ssize_t partition; /* the number of the next one */
    bool is_open;
    int64_t end;
    Ways ways;
    int64_t at, head, swept; /* the next event; the first in the window, and when last swept */
    /* by event the next, or itself, that must not precede, or follow, a match; NULL for none */
    int64_t *barred_before, *barred_after;
    Completed *ended; /* with the event before `at` */
    Py_ssize_t ended_size, ended_room;
    Walk walk;
} Lister;

/* lister_ends.c */
/* Find the events that must not precede the first one of a match, or follow the last one. */
int lister_find_barred(Lister *lister);
/* Return the first start whose matches, ending with an event, a negated event forbids. */
int64_t lister_first_forbidden(const Lister *lister, int64_t at, const Tally *tally);

/* lister.c */
extern const Payloads lister_payloads;
/* Begin with the events of partitions. */
int lister_begin(Lister *lister);
/*
 * Find the next match; its events are then in the walk, the last one first. Return 1 and
 * its length, 0 at the end of the last partition, -1 with an exception.
 */
int lister_next(Lister *lister, Py_ssize_t *length);
/* Discard the partitions. */
void lister_end(Lister *lister);

/* lister_object.c */
extern PyType_Spec lister_spec;

#endif
