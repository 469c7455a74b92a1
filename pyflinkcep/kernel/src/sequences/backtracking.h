/* SPDX-License-Identifier: Apache-2.0 */
/* The depth-first search for matches of a SEQ query. */
#ifndef PYFLINKCEP_BACKTRACKING_H
#define PYFLINKCEP_BACKTRACKING_H

#include "base/failed.h"
#include "compressed/listed.h"
#include "sequences/automaton.h"

/* --- backtracking_track.c */

/*
 * Which conditions each event of a partition passes alone. The tables have for each position the
 * first event from there on that passes something, or the number of events.
 */
typedef struct {
    int64_t *begins, *takes, *absents; /* by event a bit for each component, or absent event */
    Py_ssize_t begins_room, takes_room, absents_room;
    int32_t *places; /* of all tables */
    Py_ssize_t place_room;
    const int32_t **begun; /* by component, which may begin it */
    const int32_t **changed; /* by component, which its loop may take or the next may begin with */
    const int32_t **absent; /* by absent event, which are candidates */
} Track;

/* Make room for what is known of a partition, by component. */
int track_read(Track *track, const Automaton *automaton);
/* Begin with the events that the automaton has been opened for. */
int track_turn(Track *track, Automaton *automaton);
/* Release all memory. */
void track_free(Track *track);

/* --- backtracking.c */

typedef struct {
    int64_t at;
    int32_t component;
} Taken;

/* What is left to try: the run with the way's first `depth` events takes one more, or continues. */
typedef struct {
    int64_t at; /* the event that it takes, or the last that it has skipped */
    Py_ssize_t depth;
    int32_t component, mode; /* no mode: it takes the event */
} Choice;

typedef struct {
    PyObject_HEAD
    Automaton automaton;
    Track track;
    Failed failed; /* configurations */
    Value *known; /* room for what distinguishes configurations */
    /* which matches are requested */
    int32_t output;
    Array bounds; /* where partitions begin, and where the last one ends */
    Array may_end; /* by event of all partitions whether it may be a match's last; or no items */
    Stream whole; /* the events of all partitions, concatenated */
    Py_ssize_t partition; /* the current one */
    bool is_growing; /* whether more events may arrive, all after the watermark */
    int64_t watermark;
    /* the current start */
    int64_t start, end; /* its event, and where its window ends */
    bool is_open; /* whether more events may arrive in its window */
    int64_t next_start;
    bool stops; /* whether later events decide the start, so that the search stops there */
    int64_t *undecided; /* such starts, by handle */
    Py_ssize_t undecided_count, undecided_room;
    Taken *way; /* the events of the current run */
    char *tallies; /* after each of them */
    Py_ssize_t depth, way_room, tally_room;
    Py_ssize_t *firsts; /* by component where on the way its first event is */
    Choice *choices;
    Py_ssize_t choice_count, choice_room;
    Listed found;
    int64_t met; /* how often an event was tried on a run */
    int64_t steps;
} Backtracker;

enum { ALL, ONE_PER_START, NOT_OVERLAPPING }; /* as engines/sequences/evaluation.py numbers them */

/* Make room for what a query needs. */
int backtracker_read(Backtracker *backtracker);
/* Begin with the events that the automaton has been opened for. */
int backtracker_turn(Backtracker *backtracker, PyObject *bounds, PyObject *may_end);
/* Find matches until they have enough events, or there are no more. */
int backtracker_run(Backtracker *backtracker, Py_ssize_t enough);
/* Discard the current run and the partitions. */
void backtracker_end(Backtracker *backtracker);
/* Release all memory. */
void backtracker_free(Backtracker *backtracker);

/* --- backtracking_way.c */

/* Return what is known of the current run; NULL if nothing is. */
const Tally *way_tally(const Backtracker *backtracker);
/* Go back to the run with the way's first events. */
void way_cut(Backtracker *backtracker, Py_ssize_t depth);
/* Let the current run take an event for a component. */
int way_take(Backtracker *backtracker, int32_t component, int64_t at);
/*
 * Whether a negated component decided by the beginning of a component forbids the current run;
 * those at an end, and others that need the whole match, come after the last component.
 */
bool way_is_forbidden(Backtracker *backtracker, int32_t component);
/* Whether the current run, which has just taken an event, is a match. */
bool way_completes(Backtracker *backtracker);
/* Add the way of the current run to the matches. */
int way_found(Backtracker *backtracker);
/*
 * Return 1 if the current run's configuration has been tried. Otherwise return 0, and remember it
 * if it may recur.
 */
int way_was_tried(Backtracker *backtracker, int32_t component, int32_t mode, int64_t at);

/* backtracking_object.c */
extern PyType_Spec backtracker_spec;

#endif
